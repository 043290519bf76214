import { test } from 'tap'
import type { DaemonSet, DaemonSetSpec } from '../../../../api/workloads/daemon-set.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const path = '/apis/apps/v1/namespaces/default/daemonsets'
const generation = 'deprecated.daemonset.template.generation'
const template = (image = 'log:1') => ({
  metadata: { labels: { app: 'log' } },
  spec: { containers: [{ name: 'main', image }] },
})
const daemonSet = (spec: Partial<DaemonSetSpec> = {}, metadata: DaemonSet['metadata'] = {}): DaemonSet => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'log', namespace: 'default', ...metadata },
  spec: { selector: { matchLabels: { app: 'log' } }, template: template(), ...spec },
})
const made = (...given: Parameters<typeof daemonSet>): DaemonSet =>
  create('daemonsets', daemonSet(...given)) as DaemonSet
const refused = (...given: Parameters<typeof daemonSet>) => causes(() => made(...given))
const rolling = (rollingUpdate: NonNullable<DaemonSetSpec['updateStrategy']>['rollingUpdate']) =>
  refused({ updateStrategy: { type: 'RollingUpdate', rollingUpdate } })

test('a DaemonSet gets its defaults, and a status that it cannot bring', async (t) => {
  const set = { ...daemonSet(), status: { numberReady: 9, observedGeneration: 3 } }
  t.match(create('daemonsets', set), {
    metadata: { annotations: { [generation]: '1' } },
    spec: {
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      revisionHistoryLimit: 10,
      template: { spec: { restartPolicy: 'Always', terminationGracePeriodSeconds: 30 } },
    },
    status: {
      currentNumberScheduled: 0,
      desiredNumberScheduled: 0,
      numberMisscheduled: 0,
      numberReady: 0,
      observedGeneration: undefined,
    },
  })
  t.same(made({ updateStrategy: { type: 'OnDelete' } }).spec.updateStrategy, { type: 'OnDelete' })
})

test('the selector must select the template, and stays', async (t) => {
  const other = { matchLabels: { app: 'web' } }
  t.match(refused({ selector: other }), [
    /^spec.template.metadata.labels: Invalid value: .*: `selector` does not match template `labels`$/,
  ])
  t.match(refused({ selector: undefined }), [/^spec.template.metadata.labels: Invalid value: \{"app":"log"\}/])
  t.same(refused({ selector: undefined, template: { spec: template().spec } }), [
    'spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`',
  ])
  t.match(refused({ selector: {} }), [/^spec.selector: Invalid value: .*: empty selector is invalid for daemonset$/])
  const unclear = { matchExpressions: [{ key: 'a', operator: 'Is' }] }
  t.match(refused({ selector: unclear }), [/^spec.selector.matchExpressions\[0\].operator: /])
  const labels = { app: 'log', tier: 'node' }
  const moved = daemonSet({
    selector: { matchLabels: { tier: 'node' } },
    template: { ...template(), metadata: { labels } },
  })
  t.match(
    causes(() => update('daemonsets', made(), moved)),
    [/^spec.selector: Invalid value: .*: field is immutable$/],
  )
})

test('daemons run until they are deleted', async (t) => {
  const { containers } = template().spec
  const spec = { containers, restartPolicy: 'OnFailure', activeDeadlineSeconds: 5 } as const
  t.same(refused({ template: { ...template(), spec } }), [
    'spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"',
    'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported',
  ])
})

test('an update is either short of pods or has more of them', async (t) => {
  t.same(rolling({ maxUnavailable: '50%', maxSurge: 0 }), [])
  t.same(rolling({ maxUnavailable: 0, maxSurge: '10%' }), [])
  t.same(rolling({ maxUnavailable: 1, maxSurge: 1 }), [
    'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero',
  ])
  t.same(rolling({ maxUnavailable: 0 }), [
    'spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0',
  ])
  t.match(rolling({ maxUnavailable: '101%' }), [/maxUnavailable: Invalid value: "101%": must not be greater than 100%/])
  t.match(rolling({ maxUnavailable: 'many', maxSurge: 1 }), [/a valid percent string/])
  t.match(refused({ updateStrategy: { type: 'Recreate' } }), [
    /^spec.updateStrategy: Unsupported value: .*: supported values: "RollingUpdate", "OnDelete"$/,
  ])
  t.match(refused({ minReadySeconds: -1, revisionHistoryLimit: -1 }), [
    /^spec.minReadySeconds: Invalid value: -1/,
    /^spec.revisionHistoryLimit: Invalid value: -1/,
  ])
})

test('each template has a number, which only the server counts', async (t) => {
  const numberOf = (set: DaemonSet) => set.metadata.annotations?.[generation]
  t.equal(numberOf(made({}, { annotations: { [generation]: '7' } })), '7')
  t.equal(numberOf(made({}, { annotations: { [generation]: '0' } })), '1')
  for (const wrong of ['x', 'x7', '7x', '1'.repeat(16)]) {
    t.equal(numberOf(made({}, { annotations: { [generation]: wrong } })), '1')
  }
  t.equal(numberOf(made({}, { annotations: { [generation]: '12' } })), '12')
  const first = made()
  const changed = (now: DaemonSet) => numberOf(update('daemonsets', first, now) as DaemonSet)
  t.equal(changed(daemonSet({ minReadySeconds: 5 })), '1', 'the template is the same, whatever its defaults')
  const { metadata, spec } = template()
  t.equal(changed(daemonSet({ template: { metadata, spec: { ...spec, hostNetwork: false, tolerations: [] } } })), '1')
  t.equal(changed(daemonSet({ template: template('log:2') })), '2')
  t.equal(changed(daemonSet({}, { annotations: { [generation]: '9' } })), '1')
  const third = made({}, { annotations: { [generation]: '3' } })
  t.equal(numberOf(update('daemonsets', third, daemonSet({ template: template('log:2') })) as DaemonSet), '4')
  const unnumbered = { ...first, metadata: { name: 'log', namespace: 'default' } }
  t.equal(numberOf(update('daemonsets', unnumbered, daemonSet({ template: template('log:2') })) as DaemonSet), '2')
})

test('a DaemonSet is served with its columns, its status and its revisions', async (t) => {
  const { ask } = await anApi(t)
  t.match(
    await ask('POST', path, {
      body: daemonSet({
        template: { ...template(), spec: { ...template().spec, nodeSelector: { disk: 'ssd', arch: 'arm' } } },
      }),
    }),
    { code: 201 },
  )
  const status = { desiredNumberScheduled: 3, currentNumberScheduled: 3, numberReady: 2, updatedNumberScheduled: 1 }
  t.match(await ask('PATCH', `${path}/log/status`, { type: patchTypes.merge, body: { status } }), { code: 200 })
  t.match(await ask('GET', path, { accept: tables }), {
    body: {
      columnDefinitions: [
        ...['Name', 'Desired', 'Current', 'Ready', 'Up-to-date', 'Available', 'Node Selector', 'Age'],
        ...['Containers', 'Images', 'Selector'],
      ].map((name) => ({ name })),
      rows: [{ cells: ['log', 3, 3, 2, 1, 0, 'arch=arm,disk=ssd', /.*/, 'main', 'log:1', 'app=log'] }],
    },
  })
  const report = async (status: object) =>
    await ask('PATCH', `${path}/log/status`, { type: patchTypes.merge, body: { status } })
  t.match(await report({ numberReady: -1 }), { code: 422 })
  t.match(await report({ collisionCount: 2 }), { code: 200 })
  t.match(await report({ collisionCount: 1 }), {
    code: 422,
    body: { message: /status.collisionCount: Invalid value: 1: cannot be decremented$/ },
  })
  t.match(await report({ collisionCount: null }), { code: 422, body: { message: /collisionCount: Invalid value: 0/ } })
  const undo = { spec: { template: { ...template('log:0'), $patch: 'replace' } } }
  t.match(await ask('PATCH', `${path}/log`, { type: patchTypes.strategic, body: undo }), {
    code: 200,
    body: {
      metadata: { generation: 2, annotations: { [generation]: '2' } },
      spec: { template: { spec: { containers: [{ image: 'log:0' }], nodeSelector: undefined } } },
    },
  })
})

test('a patch of the status may have the empty rest of an object, as Go clients send it', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/apps/v1/namespaces/default/daemonsets'
  const labels = { app: 'log' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'log:1' }] } }
  const set = { metadata: { name: 'log' }, spec: { selector: { matchLabels: labels }, template } }
  t.equal((await ask('POST', path, { body: set })).code, 201)
  const conditions = [{ type: 'Patched', status: 'True' }]
  const body = { spec: { selector: null, template: { spec: { containers: null } } }, status: { conditions } }
  for (const type of [patchTypes.merge, patchTypes.strategic]) {
    t.match(await ask('PATCH', `${path}/log/status`, { body, type }), {
      code: 200,
      body: { spec: { template: { spec: { containers: [{ image: 'log:1' }] } } }, status: { conditions } },
    })
  }
  t.match(await ask('PATCH', `${path}/log`, { body, type: patchTypes.merge }), { code: 422 })
})
