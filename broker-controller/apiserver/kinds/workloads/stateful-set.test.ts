import { test } from 'tap'
import type { StatefulSet, StatefulSetSpec } from '../../../../api/workloads/stateful-set.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const path = '/apis/apps/v1/namespaces/default/statefulsets'
const template = (image = 'db:1') => ({
  metadata: { labels: { app: 'db' } },
  spec: { containers: [{ name: 'main', image }] },
})
const statefulSet = (spec: Partial<StatefulSetSpec> = {}, metadata: StatefulSet['metadata'] = {}): StatefulSet => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db', namespace: 'default', ...metadata },
  spec: { selector: { matchLabels: { app: 'db' } }, template: template(), serviceName: 'db', ...spec },
})
const made = (...given: Parameters<typeof statefulSet>): StatefulSet =>
  create('statefulsets', statefulSet(...given)) as StatefulSet
const refused = (...given: Parameters<typeof statefulSet>) => causes(() => made(...given))

test('a StatefulSet gets its defaults, and a status that it cannot bring', async (t) => {
  t.match(create('statefulsets', { ...statefulSet(), status: { replicas: 9, readyReplicas: 9 } }), {
    spec: {
      replicas: 1,
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      revisionHistoryLimit: 10,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      template: { spec: { restartPolicy: 'Always' } },
    },
    status: { replicas: 0, availableReplicas: 0, readyReplicas: undefined },
  })
  t.same(made({ updateStrategy: { type: 'OnDelete' } }).spec.updateStrategy, { type: 'OnDelete' })
  t.same(made({ updateStrategy: { type: 'RollingUpdate' } }).spec.updateStrategy, { type: 'RollingUpdate' })
  t.same(made({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: {} } }).spec.updateStrategy, {
    type: 'RollingUpdate',
    rollingUpdate: { partition: 0 },
  })
  t.same(
    made({ updateStrategy: { rollingUpdate: { partition: 2, maxUnavailable: 3 } } }).spec.updateStrategy,
    { type: 'RollingUpdate', rollingUpdate: { partition: 2 } },
    'what the default feature gates disable is dropped',
  )
})

test('claims of pods are part of a set, with their kind and defaults, and stay as they were', async (t) => {
  const claim = { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } }
  const mounting = template()
  const mounts = { volumeMounts: [{ name: 'data', mountPath: '/data' }] }
  const containers = mounting.spec.containers.map((one) => ({ ...one, ...mounts }))
  const spec = { volumeClaimTemplates: [claim], template: { ...mounting, spec: { ...mounting.spec, containers } } }
  const set = made(spec)
  t.match(set.spec, {
    volumeClaimTemplates: [
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' },
        status: { phase: 'Pending' },
      },
    ],
    template: { spec: { volumes: undefined } },
  })
  t.same(refused({ ...spec, volumeClaimTemplates: [] }), [
    'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"',
  ])
  const larger = { ...claim, spec: { ...claim.spec, resources: { requests: { storage: '2Gi' } } } }
  t.match(
    causes(() => update('statefulsets', set, statefulSet({ ...spec, volumeClaimTemplates: [larger] }))),
    [/^spec: Forbidden: updates to statefulset spec for fields other than/],
  )
  const persistentVolumeClaimRetentionPolicy = { whenDeleted: 'Delete', whenScaled: 'Retain' }
  t.same(refused({ persistentVolumeClaimRetentionPolicy }), [])
  t.same(refused({ persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Keep' } }), [
    'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"',
  ])
})

test('what is wrong is named in the words of Kubernetes', async (t) => {
  t.match(refused({}, { name: 'db.example' }), [/^metadata.name: Invalid value/])
  t.same(refused({ podManagementPolicy: 'Quick' }), [
    `spec.podManagementPolicy: Invalid value: "Quick": must be 'OrderedReady' or 'Parallel'`,
  ])
  t.match(refused({ updateStrategy: { type: 'Recreate' } }), [
    /^spec.updateStrategy: Invalid value: .*: must be 'RollingUpdate' or 'OnDelete'$/,
  ])
  t.match(refused({ updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 1 } } }), [
    /^spec.updateStrategy.rollingUpdate: Invalid value: .*: only allowed for updateStrategy 'RollingUpdate'$/,
  ])
  const negative = { replicas: -1, minReadySeconds: -1, ordinals: { start: -1 } }
  t.same(
    refused({ ...negative, updateStrategy: { rollingUpdate: { partition: -1 } } }).map((text) => text.split(':')[0]),
    ['spec.updateStrategy.rollingUpdate.partition', 'spec.replicas', 'spec.minReadySeconds', 'spec.ordinals.start'],
  )
  t.same(refused({ selector: undefined }), ['spec.selector: Required value'])
  t.match(refused({ selector: {} }), [/empty selector is invalid for statefulset$/])
  t.match(refused({ selector: { matchLabels: { app: 'web' } } }), [/`selector` does not match template `labels`$/])
  t.match(refused({ template: { ...template(), spec: { ...template().spec, activeDeadlineSeconds: 5 } } }), [
    /activeDeadlineSeconds in StatefulSet is not Supported$/,
  ])
})

test('what its pods are known by does not change', async (t) => {
  const changed = (spec: Partial<StatefulSetSpec>) => causes(() => update('statefulsets', made(), statefulSet(spec)))
  const persistentVolumeClaimRetentionPolicy = { whenDeleted: 'Delete' }
  t.same(changed({ replicas: 3, minReadySeconds: 2, ordinals: { start: 4 }, persistentVolumeClaimRetentionPolicy }), [])
  t.same(changed({ template: template('db:2'), updateStrategy: { type: 'OnDelete' } }), [])
  for (const spec of [{ serviceName: 'other' }, { podManagementPolicy: 'Parallel' }, { revisionHistoryLimit: 1 }]) {
    t.match(changed(spec), [/^spec: Forbidden: updates to statefulset spec for fields other than 'replicas', /])
  }
})

test('a StatefulSet is served with its columns, its status and its scale', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', path, { body: statefulSet({ replicas: 3 }) }), { code: 201 })
  const merge = async (at: string, body: object) =>
    await ask('PATCH', `${path}/db${at}`, { type: patchTypes.merge, body })
  t.match(await merge('/status', { status: { replicas: 3, readyReplicas: 2 } }), { code: 200 })
  t.match(await ask('GET', path, { accept: tables }), {
    body: {
      columnDefinitions: ['Name', 'Ready', 'Age', 'Containers', 'Images'].map((name) => ({ name })),
      rows: [{ cells: ['db', '2/3', /.*/, 'main', 'db:1'] }],
    },
  })
  t.match(await merge('/status', { status: { readyReplicas: 4 } }), { code: 422 })
  t.match(await merge('/status', { status: { observedGeneration: -1 } }), { code: 422 })
  t.match(await merge('/status', { status: { collisionCount: 2 } }), { code: 200 })
  t.match(await merge('/status', { status: { collisionCount: 1 } }), {
    code: 422,
    body: { message: /status.collisionCount: Invalid value: 1: cannot be decremented$/ },
  })
  t.match(await merge('/status', { status: { collisionCount: null } }), {
    code: 422,
    body: { message: /collisionCount: Invalid value: 0/ },
  })
  t.match(await ask('GET', `${path}/db/scale`), {
    body: { kind: 'Scale', spec: { replicas: 3 }, status: { replicas: 3, selector: 'app=db' } },
  })
  t.match(await merge('/scale', { spec: { replicas: 5 } }), { code: 200 })
  t.match(await ask('GET', `${path}/db`), { body: { metadata: { generation: 2 }, spec: { replicas: 5 } } })
})

test('an empty list or map that a client leaves out changes neither the selector nor a claim', async (t) => {
  const matchLabels = { app: 'db' }
  const claim = { metadata: { name: 'data', labels: {} }, spec: { accessModes: ['ReadWriteOnce'], volumeName: '' } }
  const old = made({ selector: { matchLabels, matchExpressions: [] }, volumeClaimTemplates: [claim] })
  const left = { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } }
  const now = statefulSet({ selector: { matchLabels }, volumeClaimTemplates: [left] })
  t.same(
    causes(() => update('statefulsets', old, now)),
    [],
  )
})
