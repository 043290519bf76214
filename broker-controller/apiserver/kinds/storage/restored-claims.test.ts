import { generateKeyPairSync } from 'node:crypto'
import { type Test, test } from 'tap'
import { nodeIdentity } from '../../../../api/identity.ts'
import { type ClaimRecord, claimRecord } from '../../../../api/storage/claim-record.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import { aNode, aPod } from '../../../../api/testing/builders.ts'
import { contentProver } from '../../../store/checkpoints/content-proof.ts'
import { anApi } from '../../../testing/api-in-memory.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../../testing/volume-objects.ts'

const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const prover = contentProver(() => ({ key, hash: 'one' }))
const [claimPath, volumePath] = ['/api/v1/namespaces/default/persistentvolumeclaims/db', '/api/v1/persistentvolumes/pv']

/** `default/db` and its volume, as a controller sent them before the loss. */
function recordOf(volume: PersistentVolume['spec'] = {}): ClaimRecord {
  const metadata = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } }
  const kept = { claimRef: claimRefTo('db'), persistentVolumeReclaimPolicy: 'Delete', ...volume }
  return {
    claim: aStoredClaim('db', { metadata, spec: { volumeName: 'pv' } }),
    volume: aStoredVolume('pv', { spec: kept }),
  }
}

function proven(record: ClaimRecord) {
  const text = claimRecord(record) ?? ''
  return { text, proof: prover.proofOfRecord(text) }
}

test('a store that was lost gets claims and volumes back from their nodes, bound as they were', async (t) => {
  const { deliver, get } = await fleet(t)
  t.same(await deliver({ claims: [proven(recordOf())] }), undefined)
  t.match(await get(claimPath), {
    ...{ metadata: { uid: 'uid-db', finalizers: ['kubernetes.io/pvc-protection'] } },
    ...{ spec: { volumeName: 'pv' }, status: { phase: 'Bound', capacity: { storage: '1Gi' } } },
  })
  t.match(await get(volumePath), {
    ...{ metadata: { uid: 'uid-pv', finalizers: ['kubernetes.io/pv-protection'] } },
    spec: {
      claimRef: { name: 'db', uid: 'uid-db' },
      hostPath: { path: '/srv/pv' },
      persistentVolumeReclaimPolicy: 'Delete',
    },
    status: { phase: 'Bound' },
  })
  const before = [await get(claimPath), await get(volumePath)]
  t.same(await deliver({ claims: [proven(recordOf())] }), undefined, 'sent again after an interruption')
  t.same([await get(claimPath), await get(volumePath)], before)
})

test('what no controller has sent is not restored: it would give pods the files of other machines', async (t) => {
  const { deliver, get, events } = await fleet(t)
  const sent = proven(recordOf())
  const changed = { ...proven(recordOf({ hostPath: { path: '/' } })), proof: sent.proof }
  await deliver({ claims: [changed, { ...sent, proof: '' }] })
  t.match([await get(claimPath), await get(volumePath)], [{ code: 404 }, { code: 404 }])
  t.match(await events(), [
    { reason: 'CheckpointNotProven', message: /the claims default\/db, default\/db: they were not restored/ },
  ])
})

test('a node returns the claims of its own pods only', async (t) => {
  const { deliver, get } = await fleet(t, 'another')
  await deliver({ claims: [proven(recordOf())] })
  t.match(await get(claimPath), { code: 404 })
})

test('a claim for one pod belongs to that pod also after the loss', async (t) => {
  const { deliver, get } = await fleet(t)
  const { claim, volume } = recordOf()
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'uid-web', controller: true }]
  await deliver({ claims: [proven({ claim: { ...claim, metadata: { ...claim.metadata, ownerReferences } }, volume })] })
  t.match(await get(claimPath), { metadata: { ownerReferences } })
})

test('a claim that was created again after the loss gets its data back, and no other claim does', async (t) => {
  const { deliver, get, store, events } = await fleet(t)
  const { spec } = aStoredClaim('db')
  const created = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', spec } as const
  const { metadata } = await store.create('persistentvolumeclaims', {
    ...created,
    metadata: { namespace: 'default', name: 'db', creationTimestamp: '2026-03-01T00:00:00Z' },
  })
  await deliver({ claims: [proven(recordOf())] })
  t.match(await get(volumePath), {
    spec: { claimRef: { name: 'db', uid: metadata.uid }, persistentVolumeReclaimPolicy: 'Retain' },
  })
  t.match(await events(), [{ reason: 'ClaimNotLearnt', message: /"pv" is reserved for it, with the policy Retain/ }])
})

test('a volume that another claim has taken stays with that, and the claim is not restored', async (t) => {
  const { deliver, get, store } = await fleet(t)
  const { spec } = aStoredVolume('pv', { spec: { claimRef: claimRefTo('other') } })
  await store.create('persistentvolumes', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv' },
    spec,
  })
  t.match(
    await deliver({ claims: [proven(recordOf())] }),
    /default\/db of node pi-1: not restored: volume "pv" is bound/,
  )
  t.match(await get(claimPath), { code: 404 })
  t.match(await get(volumePath), { spec: { claimRef: { name: 'other' } } })
})

test('a volume that is not valid for this version does not keep the other claims from coming back', async (t) => {
  const { deliver, get } = await fleet(t)
  const invalid = proven(recordOf({ hostPath: undefined, local: { path: '/without/a/node' } }))
  const message = await deliver({ claims: [invalid] })
  t.match(message, /default\/db of node pi-1: not restored: PersistentVolume "pv" is invalid/)
  t.same(await deliver({ claims: [proven(recordOf())] }), undefined)
  t.match(await get(volumePath), { spec: { claimRef: { uid: 'uid-db' } } })
})

test('an older claim of the backup makes place for the later one, and its volume keeps its data', async (t) => {
  const { deliver, get, store } = await fleet(t)
  const older = { namespace: 'default', name: 'db', uid: 'older', creationTimestamp: '2025-01-01T00:00:00Z' }
  await store.create('persistentvolumeclaims', {
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: older },
    spec: { ...aStoredClaim('db').spec, volumeName: 'before' },
  })
  const { spec } = aStoredVolume('before', { spec: { persistentVolumeReclaimPolicy: 'Delete' } })
  const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'before' }, spec } as const
  await store.create('persistentvolumes', volume)
  await deliver({ claims: [proven(recordOf())] })
  t.match(await get(claimPath), { metadata: { uid: 'uid-db' }, spec: { volumeName: 'pv' } })
  t.match(await get('/api/v1/persistentvolumes/before'), { spec: { persistentVolumeReclaimPolicy: 'Retain' } })
})

/** A store that was restored, with the node pi-1, which has delivered a pod with this claim. */
async function fleet(t: Test, claimName = 'db') {
  const origin = { id: 'store-2', acceptsCheckpoints: true, sinceMs: Date.parse('2026-02-01T00:00:00Z') }
  const { ask, store } = await anApi(t, { origin, checkpoints: { isOpen: () => true }, contentProver: prover })
  const { resourceVersion: _, ...metadata } = aNode({ name: 'pi-1' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-1' }), metadata })
  const deliver = async (part: object) => {
    const body = { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store: origin.id, ...part }
    const sent = { body, as: nodeIdentity('pi-1'), serialNumber: '01' }
    const { code, body: answer } = await ask('POST', '/api/v1/nodes/pi-1/checkpoint', sent)
    t.equal(code, 201)
    return answer['message']
  }
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName } }]
  await deliver({ pods: [aPod({ name: 'web', uid: 'uid-web', nodeName: 'pi-1', spec: { volumes } })] })
  return {
    store,
    deliver,
    get: async (path: string) => (await ask('GET', path)).body,
    events: async () => (await store.list('events')).items,
  }
}
