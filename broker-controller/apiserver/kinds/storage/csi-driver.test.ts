import { test } from 'tap'
import type { CSIDriver, CSIDriverSpec } from '../../../../api/storage/csi-driver.ts'
import { causes, create, update } from '../../../testing/admitting.ts'

const apiVersion = 'storage.k8s.io/v1'
const metadata = { name: 'disk.example.com' }
const driver = (spec?: CSIDriverSpec): CSIDriver => ({ apiVersion, kind: 'CSIDriver', metadata, ...(spec && { spec }) })

test('a driver gets the defaults of Kubernetes', async (t) => {
  const defaults = {
    attachRequired: true,
    podInfoOnMount: false,
    storageCapacity: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    volumeLifecycleModes: ['Persistent'],
    requiresRepublish: false,
    seLinuxMount: false,
  }
  t.same(create('csidrivers', driver())['spec'], defaults)
  t.same(create('csidrivers', driver({ volumeLifecycleModes: [] }))['spec'], defaults)
  const own: CSIDriverSpec = { attachRequired: false, volumeLifecycleModes: ['Ephemeral'], fsGroupPolicy: 'File' }
  t.same(create('csidrivers', driver(own))['spec'], { ...defaults, ...own })
})

test('the words of a driver are those of Kubernetes, and each of its audiences is another', async (t) => {
  const wrong = (spec: CSIDriverSpec) => causes(() => create('csidrivers', driver(spec)))
  t.same(wrong({ fsGroupPolicy: 'Never' }), [
    'spec.fsGroupPolicy: Unsupported value: "Never": supported values: "File", "None", "ReadWriteOnceWithFSType"',
  ])
  t.same(wrong({ volumeLifecycleModes: ['Persistent', 'Inline'] }), [
    'spec.volumeLifecycleModes: Unsupported value: "Inline": supported values: "Persistent", "Ephemeral"',
  ])
  t.same(wrong({ tokenRequests: [{ audience: 'a' }, { audience: 'b', expirationSeconds: 599 }, { audience: 'a' }] }), [
    'spec.tokenRequests[1].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    'spec.tokenRequests[2].audience: Duplicate value: "a"',
  ])
  t.same(wrong({ tokenRequests: [{ audience: '', expirationSeconds: 2 ** 32 + 1 }] }), [
    'spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
  ])
  t.same(wrong({ tokenRequests: [{ audience: '', expirationSeconds: 2 ** 32 }, { audience: 'a' }] }), [])
})

test('how a driver attaches is for ever; how it mounts may change', async (t) => {
  const old = create('csidrivers', driver()) as CSIDriver
  const changed = (spec: CSIDriverSpec) =>
    causes(() => update('csidrivers', old, { ...old, spec: { ...old.spec, ...spec } }))
  t.same(changed({ attachRequired: false }), ['spec.attachedRequired: Invalid value: false: field is immutable'])
  t.same(changed({ volumeLifecycleModes: ['Ephemeral'] }), [
    'spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable',
  ])
  t.same(changed({ podInfoOnMount: true, storageCapacity: true, fsGroupPolicy: 'None', requiresRepublish: true }), [])
})

test('a driver names an audience once, also the empty one, and tokens live for ten minutes at least', async (t) => {
  const wrong = (...tokenRequests: NonNullable<CSIDriverSpec['tokenRequests']>) =>
    causes(() => create('csidrivers', driver({ tokenRequests })))
  t.same(wrong({ audience: '', expirationSeconds: 600 }, { audience: 'a' }), [])
  t.same(wrong({ audience: '' }, { audience: '', expirationSeconds: 1 }), [
    'spec.tokenRequests[1].audience: Duplicate value: ""',
  ])
  for (const fsGroupPolicy of ['File', 'None', 'ReadWriteOnceWithFSType'])
    t.same(
      causes(() => create('csidrivers', driver({ fsGroupPolicy, volumeLifecycleModes: ['Persistent', 'Ephemeral'] }))),
      [],
    )
})
