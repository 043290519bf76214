import { test } from 'tap'
import type { Deployment, DeploymentSpec } from '../../../../api/workloads/deployment.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const path = '/apis/apps/v1/namespaces/default/deployments'
const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } }
const deployment = (spec: Partial<DeploymentSpec> = {}): Deployment => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default', labels },
  spec: { selector: { matchLabels: labels }, template, ...spec },
})
const made = (spec?: Partial<DeploymentSpec>): Deployment => create('deployments', deployment(spec)) as Deployment
const refused = (spec: Partial<DeploymentSpec>) => causes(() => made(spec))
const rolling = (rollingUpdate: NonNullable<DeploymentSpec['strategy']>['rollingUpdate']) =>
  refused({ strategy: { type: 'RollingUpdate', rollingUpdate } })

test('a write of the status leaves the labels as they are', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', path, { body: deployment() }), { code: 201 })
  const written = await ask('PATCH', `${path}/web/status`, {
    type: patchTypes.strategic,
    body: {
      metadata: { labels: { app: 'other', more: 'b' }, annotations: { by: 'hand' } },
      status: { replicas: 1, readyReplicas: 1 },
    },
  })
  t.match(written, { code: 200, body: { metadata: { annotations: { by: 'hand' } }, status: { readyReplicas: 1 } } })
  const { metadata } = written.body as { metadata: { labels: unknown } }
  t.same(metadata.labels, labels)
})

test('a Deployment gets its defaults, and no status that it brings', async (t) => {
  const brought = create('deployments', { ...deployment(), status: { replicas: 9 } }) as Deployment
  t.match(brought.spec, {
    replicas: 1,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
    template: { spec: { restartPolicy: 'Always' } },
  })
  t.same(brought.status, {})
  const given = { replicas: 0, revisionHistoryLimit: 2, progressDeadlineSeconds: 30 }
  t.match(made(given).spec, given)
  const strategy = { rollingUpdate: { maxUnavailable: 1, maxSurge: 2 } }
  t.same(made({ strategy }).spec.strategy, { type: 'RollingUpdate', ...strategy })
  t.same(made({ strategy: { type: 'Recreate' } }).spec.strategy, { type: 'Recreate' })
})

test('a rolling update must be able to replace a pod', async (t) => {
  const at = 'spec.strategy.rollingUpdate'
  t.same(rolling({ maxUnavailable: 0, maxSurge: 0 }), [
    `${at}.maxUnavailable: Invalid value: 0: may not be 0 when \`maxSurge\` is 0`,
  ])
  t.same(rolling({ maxUnavailable: 0, maxSurge: '150%' }), [])
  t.same(rolling({ maxUnavailable: '100%', maxSurge: 0 }), [])
  t.match(rolling({ maxUnavailable: '101%' }), [/maxUnavailable: Invalid value: "101%": must not be greater than 100%/])
  t.match(rolling({ maxSurge: -1 }), [/maxSurge: Invalid value: -1/])
  t.match(refused({ strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } }), [
    `${at}: Forbidden: may not be specified when strategy \`type\` is 'Recreate'`,
  ])
  t.match(refused({ strategy: { type: 'BlueGreen' } }), [
    /^spec.strategy: Unsupported value: .*: supported values: "Recreate", "RollingUpdate"$/,
  ])
})

test('counts, deadline, selector and template are checked', async (t) => {
  const negative = { replicas: -1, minReadySeconds: -1, revisionHistoryLimit: -1 }
  t.same(
    refused(negative).map((cause) => cause.split(':')[0]),
    ['spec.replicas', 'spec.minReadySeconds', 'spec.revisionHistoryLimit'],
  )
  t.same(refused({ minReadySeconds: 600 }), [
    'spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds',
  ])
  t.same(refused({ minReadySeconds: 599 }), [])
  t.match(refused({ progressDeadlineSeconds: -1 }), [
    /^spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0$/,
    /must be greater than minReadySeconds$/,
  ])
  t.match(refused({ selector: { matchLabels: { app: 'other' } } }), [/`selector` does not match template `labels`$/])
  t.match(refused({ selector: {} }), [/^spec.selector: Invalid value: .*: empty selector is invalid for deployment$/])
  t.match(refused({ template: { ...template, spec: { ...template.spec, activeDeadlineSeconds: 5 } } }), [
    /^spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported$/,
  ])
  const both = { ...labels, tier: 'front' }
  const moved = deployment({
    selector: { matchLabels: { tier: 'front' } },
    template: { ...template, metadata: { labels: both } },
  })
  t.match(
    causes(() => update('deployments', made(), moved)),
    [/^spec.selector: Invalid value: .*: field is immutable$/],
  )
  t.same(
    causes(() => update('deployments', made(), deployment({ replicas: 5 }))),
    [],
  )
  t.match(
    causes(() => update('deployments', made(), deployment({ replicas: -5 }))),
    [/^spec.replicas: Invalid value: -5/],
  )
})

test('a Deployment is served with its columns, its scale, and a status that is checked', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', path, { body: deployment({ replicas: 3 }) }), { code: 201 })
  const row = async () => (await ask('GET', path, { accept: tables })).body
  const columns = ['Name', 'Ready', 'Up-to-date', 'Available', 'Age', 'Containers', 'Images', 'Selector']
  t.match(await row(), {
    columnDefinitions: columns.map((name) => ({ name })),
    rows: [{ cells: ['web', '0/3', 0, 0, /s$/, 'main', 'web:1', 'app=web'] }],
  })
  const report = async (status: object) =>
    await ask('PATCH', `${path}/web/status`, { type: patchTypes.merge, body: { status } })
  const status = { replicas: 3, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 1, collisionCount: 2 }
  t.match(await report(status), { code: 200, body: { status } })
  t.match(await row(), { rows: [{ cells: ['web', '2/3', 3, 1] }] })
  t.match(await report({ collisionCount: 1 }), {
    code: 422,
    body: { message: /status.collisionCount: Invalid value: 1: cannot be decremented$/ },
  })
  t.match(await report({ collisionCount: null }), { code: 422, body: { message: /collisionCount: Invalid value: 0/ } })
  t.match(await report({ collisionCount: 2 }), { code: 200 })
  t.match(await report({ readyReplicas: 4 }), { code: 422, body: { message: /status.readyReplicas/ } })
  t.match(await report({ updatedReplicas: 4 }), { code: 422, body: { message: /status.updatedReplicas/ } })
  t.match(await report({ unavailableReplicas: -1 }), { code: 422, body: { message: /status.unavailableReplicas/ } })
  t.match(await ask('GET', `${path}/web/scale`), {
    body: { kind: 'Scale', spec: { replicas: 3 }, status: { replicas: 3, selector: 'app=web' } },
  })
})

test('a field that is empty is stored as an absent one, and stays with who applied it', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/apps/v1/namespaces/default/deployments/web'
  const labels = { app: 'web' }
  const applied = (env: readonly object[]) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1', env }] } },
    },
  })
  const apply = async (env: readonly object[], fieldManager = 'me') =>
    await ask('PATCH', `${path}?fieldManager=${fieldManager}`, { type: patchTypes.apply, body: applied(env) })
  const first = await apply([{ name: 'A', value: '' }])
  t.match(first, { code: 201, body: { spec: { template: { spec: { containers: [{ env: [{ name: 'A' }] }] } } } } })
  t.notOk(JSON.stringify((first.body as { spec?: object }).spec).includes('"value"'))
  t.match(await apply([{ name: 'A', value: '' }]), { code: 200, body: { metadata: { generation: 1 } } })
  t.match(await apply([{ name: 'A' }]), { code: 200, body: { metadata: { generation: 1 } } })
  t.match(await apply([{ name: 'A', value: 'b' }]), { code: 200, body: { metadata: { generation: 2 } } })
  t.match(await apply([]), { code: 200, body: { metadata: { generation: 3 } } })
})
