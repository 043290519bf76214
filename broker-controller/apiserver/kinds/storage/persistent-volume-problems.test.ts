import { test } from 'tap'
import { problemText } from '../../../../api/problem.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import {
  inlineVolumeProblems,
  persistentVolumeChangeProblems,
  persistentVolumeProblems,
} from './persistent-volume-problems.ts'

type VolumeSpec = NonNullable<PersistentVolume['spec']>

const volume = (spec: Partial<VolumeSpec> = {}): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'disk' },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/srv' }, ...spec },
})

const { hostPath: _, ...none } = volume().spec ?? {}
const placedAt = (spec: VolumeSpec): PersistentVolume => ({ ...volume(), spec: { ...none, ...spec } })
const term = { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['pi-01'] }] }
const onPi = { required: { nodeSelectorTerms: [term] } }

test('a volume states its size, its access modes and one place', async (t) => {
  const wrong = (spec: Partial<VolumeSpec>) => causes(() => create('persistentvolumes', volume(spec)))
  t.same(wrong({ accessModes: [] }), ['spec.accessModes: Required value'])
  t.same(wrong({ accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] }), [
    'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
  ])
  t.same(wrong({ accessModes: ['Some'] }), [
    'spec.accessModes: Unsupported value: "Some": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
  ])
  t.same(wrong({ capacity: { storage: '0' } }), [
    'spec.capacity[storage]: Invalid value: "0": must be greater than zero',
  ])
  t.match(wrong({ capacity: {} }), ['spec.capacity: Required value', /^spec.capacity: Unsupported value: /])
  t.same(wrong({ nfs: { server: 'a', path: '/b' } }), ['spec.nfs: Forbidden: may not specify more than 1 volume type'])
  const { hostPath: _, ...none } = volume().spec as VolumeSpec
  const placed = (spec: Partial<VolumeSpec>) =>
    causes(() => create('persistentvolumes', { ...volume(), spec: { ...none, ...spec } }))
  t.same(placed({}), ['spec: Required value: must specify a volume type'])
  t.same(placed({ nfs: { server: '', path: 'b' } }), [
    'spec.nfs.server: Required value',
    'spec.nfs.path: Invalid value: "b": must be an absolute path',
  ])
  t.same(placed({ local: { path: '/a/../b' } }), [
    'spec.local.path: Invalid value: "/a/../b": must not contain \'..\'',
    'spec.nodeAffinity: Required value: Local volume requires node affinity',
  ])
  t.same(placed({ local: { path: '/a' }, nodeAffinity: {} }), [
    'spec.nodeAffinity.required: Required value: must specify required node constraints',
  ])
  t.same(placed({ csi: { driver: 'd', volumeHandle: '', nodeExpandSecretRef: { name: 's' } } }), [
    'spec.csi.volumeHandle: Required value',
    'spec.csi.nodeExpandSecretRef.namespace: Required value',
  ])
  t.same(placed({ csi: { driver: 'd'.repeat(64), volumeHandle: 'h' } }).slice(0, 1), [
    'spec.csi.driver: Too long: may not be more than 63 bytes',
  ])
  t.same(wrong({ hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle' }), [
    "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
  ])
  t.same(wrong({ persistentVolumeReclaimPolicy: 'Keep', volumeMode: 'Tape', storageClassName: 'A' }).length, 3)
})

test('the place of a volume stays', async (t) => {
  const made = create('persistentvolumes', volume())
  const changed = (spec: Partial<VolumeSpec>) => causes(() => update('persistentvolumes', made, volume(spec)))
  t.same(changed({ persistentVolumeReclaimPolicy: 'Delete', capacity: { storage: '2Gi' } }), [])
  t.same(changed({ hostPath: { path: '/other' } }), [
    'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation',
  ])
  t.same(changed({ volumeMode: 'Block' }), ['volumeMode: Invalid value: "Block": field is immutable'])
  const csi = { driver: 'd', volumeHandle: 'h' }
  const { hostPath: _, ...none } = volume().spec as VolumeSpec
  const remote = (more: object) => ({ ...volume(), spec: { ...none, csi: { ...csi, ...more } } })
  const stored = create('persistentvolumes', remote({}))
  const secret = { controllerExpandSecretRef: { name: 's', namespace: 'n' } }
  t.same(
    causes(() => update('persistentvolumes', stored, remote(secret))),
    [],
    'a secret for its growth may be added',
  )
})

test('a volume of every kind of place is right', async (t) => {
  const problems = (one: PersistentVolume) => persistentVolumeProblems(one).map(problemText)
  const csi = { driver: 'Disk.example.com', volumeHandle: 'h' }
  const secret = { name: 's', namespace: 'n' }
  const places: readonly VolumeSpec[] = [
    { hostPath: { path: '/srv' } },
    { hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Retain' },
    { hostPath: { path: '/srv' }, persistentVolumeReclaimPolicy: 'Recycle' },
    { local: { path: '/srv' }, nodeAffinity: onPi },
    { nfs: { server: 'nas.example.com', path: '/srv' } },
    { csi },
    { csi: { ...csi, controllerPublishSecretRef: secret, nodePublishSecretRef: secret, nodeExpandSecretRef: secret } },
  ]
  for (const place of places) t.same(problems(placedAt(place)), [], JSON.stringify(place))
  for (const volumeMode of ['Block', 'Filesystem']) t.same(problems(volume({ volumeMode })), [])
  for (const mode of ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'])
    t.same(problems(volume({ accessModes: [mode] })), [])
})

test('every wrong field of a volume is named', async (t) => {
  const csi = { driver: 'disk.example.com', volumeHandle: 'h' }
  const secrets = ['controllerPublishSecretRef', 'controllerExpandSecretRef', 'nodePublishSecretRef'] as const
  const wrong: readonly (readonly [VolumeSpec, readonly (string | RegExp)[]])[] = [
    [
      { hostPath: { path: '/a' }, capacity: { storage: '1Gi', cpu: '1' } },
      [/^spec.capacity: Unsupported value: .*: supported values: "storage"$/],
    ],
    [
      { hostPath: { path: '/a' }, capacity: { cpu: '-1' } },
      [
        /^spec.capacity: Unsupported value: .*: supported values: "storage"$/,
        'spec.capacity[cpu]: Invalid value: "-1": must be greater than zero',
      ],
    ],
    [
      { hostPath: { path: '/a' }, persistentVolumeReclaimPolicy: 'Keep' },
      [
        'spec.persistentVolumeReclaimPolicy: Unsupported value: "Keep": supported values: "Delete", "Recycle", "Retain"',
      ],
    ],
    [
      { hostPath: { path: '/a' }, volumeMode: 'Tape' },
      ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
    ],
    [{ hostPath: { path: '/a' }, storageClassName: 'A' }, [/^spec.storageClassName: Invalid value: "A": /]],
    [
      { hostPath: { path: '/a' }, nodeAffinity: { required: { nodeSelectorTerms: [] } } },
      ['spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term'],
    ],
    [{ local: { path: '' }, nodeAffinity: onPi }, ['spec.local.path: Required value']],
    [
      { local: { path: '/a/..' }, nodeAffinity: onPi },
      [/^spec.local.path: Invalid value: "\/a\/..": must not contain/],
    ],
    [{ csi: { ...csi, driver: '' } }, ['spec.csi.driver: Required value', /^spec.csi.driver: Invalid value: ""/]],
    [{ csi: { ...csi, driver: 'a_b' } }, [/^spec.csi.driver: Invalid value: "a_b"/]],
    ...secrets.map(
      (name) =>
        [
          { csi: { ...csi, [name]: { name: 'A', namespace: 'a.b' } } },
          [
            new RegExp(`^spec.csi.${name}.name: Invalid value: "A"`),
            new RegExp(`^spec.csi.${name}.namespace: .*"a.b"`),
          ],
        ] as const,
    ),
    [
      { csi: { ...csi, nodePublishSecretRef: {} } },
      ['spec.csi.nodePublishSecretRef.name: Required value', 'spec.csi.nodePublishSecretRef.namespace: Required value'],
    ],
    [
      { csi, hostPath: { path: '/a' }, local: { path: '/b' }, nodeAffinity: onPi },
      [
        'spec.local: Forbidden: may not specify more than 1 volume type',
        'spec.csi: Forbidden: may not specify more than 1 volume type',
      ],
    ],
  ]
  for (const [spec, expected] of wrong) {
    const found = persistentVolumeProblems(placedAt(spec)).map(problemText)
    t.match(found, expected, JSON.stringify(spec))
    t.equal(found.length, expected.length, found.join())
  }
  const root = { hostPath: { path: '/./' }, persistentVolumeReclaimPolicy: 'Recycle' }
  t.same(persistentVolumeProblems(placedAt(root)).length, 1, 'the root in another way')
})

test('an inline volume of an attachment is one of a driver, and nothing that claims and nodes are matched by', async (t) => {
  const csi = { driver: 'disk.example.com', volumeHandle: 'h' }
  const right = { accessModes: ['ReadWriteOnce'], csi }
  const problems = (more: VolumeSpec) => inlineVolumeProblems('spec.at', { ...right, ...more }).map(problemText)
  const inContext = 'in the context of inline volumes'
  t.same(problems({ volumeMode: 'Filesystem', persistentVolumeReclaimPolicy: 'Retain', storageClassName: '' }), [])
  t.same(problems({ claimRef: { name: 'data' }, nodeAffinity: onPi, capacity: { storage: '1Gi' } }), [
    `spec.at.claimRef: Forbidden: may not be specified ${inContext}`,
    `spec.at.capacity: Forbidden: may not be specified ${inContext}`,
    `spec.at.nodeAffinity: Forbidden: may not be specified ${inContext}`,
  ])
  t.same(problems({ storageClassName: 'fast', volumeMode: 'Block', persistentVolumeReclaimPolicy: 'Recycle' }), [
    `spec.at.storageClassName: Forbidden: may not be specified ${inContext}`,
    `spec.at.persistentVolumeReclaimPolicy: Forbidden: may only be Retain ${inContext}`,
    `spec.at.volumeMode: Forbidden: may not specify volumeMode other than Filesystem ${inContext}`,
  ])
  t.same(problems({ accessModes: [], csi: { ...csi, volumeHandle: '' } }), [
    'spec.at.accessModes: Required value',
    'spec.at.csi.volumeHandle: Required value',
  ])
  t.same(inlineVolumeProblems('spec.at', {}).map(problemText), [
    `spec.at.csi: Required value: has to be specified ${inContext}`,
    'spec.at.accessModes: Required value',
    'spec.at: Required value: must specify a volume type',
  ])
})

test('the nodes of a volume may be named once', async (t) => {
  const changed = (old: VolumeSpec, now: VolumeSpec) =>
    persistentVolumeChangeProblems(volume(old), volume(now)).map(problemText)
  const other = { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }] } }
  t.same(changed({}, { nodeAffinity: onPi }), [])
  t.same(changed({ nodeAffinity: onPi }, { nodeAffinity: onPi }), [])
  for (const now of [{ nodeAffinity: other }, {}])
    t.match(changed({ nodeAffinity: onPi }, now), [
      /^nodeAffinity: Invalid value: .*: field is immutable, except for updating from beta label to GA$/,
    ])
})

test('a beta label among the nodes of a volume may become the stable one, in its place', async (t) => {
  const on = (key: string, value = 'a', more: readonly string[] = []): VolumeSpec => {
    const matchExpressions = [key, ...more].map((name) => ({ key: name, operator: 'In', values: [value] }))
    return { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } }
  }
  const changed = (old: VolumeSpec, now: VolumeSpec) => persistentVolumeChangeProblems(volume(old), volume(now)).length
  const labels = {
    'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
    'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
    'beta.kubernetes.io/os': 'kubernetes.io/os',
    'beta.kubernetes.io/arch': 'kubernetes.io/arch',
    'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
  }
  for (const [beta, stable] of Object.entries(labels)) {
    t.equal(changed(on(beta), on(stable)), 0, beta)
    t.equal(changed(on(stable), on(beta)), 1, 'not the other way around')
    t.equal(changed(on(beta), on(stable, 'b')), 1, 'with the same values')
    t.equal(changed(on(beta, 'a', ['disk', beta]), on(stable, 'a', ['disk', beta])), 0, 'one of them')
  }
  t.equal(changed(on('beta.kubernetes.io/os'), on('kubernetes.io/arch')), 1, 'of another meaning')
})

test('a secret of a driver changes only where there was none for growth', async (t) => {
  const csi = { driver: 'disk.example.com', volumeHandle: 'h' }
  const of = (more: object) => placedAt({ csi: { ...csi, ...more } })
  const [one, two] = [
    { name: 'one', namespace: 'n' },
    { name: 'two', namespace: 'n' },
  ]
  const changed = (old: object, now: object) => persistentVolumeChangeProblems(of(old), of(now)).length
  t.equal(changed({}, { controllerExpandSecretRef: one }), 0)
  t.equal(changed({ controllerExpandSecretRef: one }, { controllerExpandSecretRef: two }), 1)
  t.equal(changed({ controllerExpandSecretRef: one }, {}), 1)
  t.equal(changed({}, { nodePublishSecretRef: one }), 1)
  t.equal(changed({}, { volumeHandle: 'other' }), 1)
})
