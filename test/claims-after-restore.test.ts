/** A store that was lost, a node that returns the claim of its pod, and the controllers of volumes, which wait for nothing. */

import { generateKeyPairSync } from 'node:crypto'
import { type Test, test } from 'tap'
import { nodeIdentity } from '../api/identity.ts'
import { claimRecord } from '../api/storage/claim-record.ts'
import { aNode, aPod } from '../api/testing/builders.ts'
import { volumeControllers } from '../broker-controller/controllers/volumes/volume-controllers.ts'
import { sessionBoard } from '../broker-controller/sessions/session-board.ts'
import { contentProver } from '../broker-controller/store/checkpoints/content-proof.ts'
import { anApi } from '../broker-controller/testing/api-in-memory.ts'
import { freshBackupKeys } from '../broker-controller/testing/fresh-backup-keys.ts'
import { aStorageClass, aStoredClaim, aStoredVolume, claimRefTo } from '../broker-controller/testing/volume-objects.ts'
import { workloadNeeds } from '../broker-controller/testing/workload-world.ts'
import { storageBoard } from '../broker-controller/usage/storage-board.ts'
import { runLoops } from '../daemon/run.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'

const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const prover = contentProver(() => ({ key, hash: 'one' }))
const pool = '11111111-1111-4111-8111-111111111111'
const inPool = {
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: `pool.bramble.dev/${pool}`, operator: 'Exists' }] }] },
}
const minute = 60_000

/** What a controller sent before the loss: a claim of the class `local-path`, whose data goes with it. */
function sentBefore() {
  const annotations = { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', 'bramble.dev/pool': pool }
  const text = claimRecord({
    claim: aStoredClaim('db', {
      metadata: { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
      spec: { volumeName: 'pvc-1', storageClassName: 'local-path' },
    }),
    volume: aStoredVolume('pvc-1', {
      metadata: { annotations, finalizers: ['bramble.dev/volume-data'] },
      spec: {
        ...{ hostPath: undefined, local: { path: '/pool/default_db_pvc-1' }, persistentVolumeReclaimPolicy: 'Delete' },
        ...{ storageClassName: 'local-path', claimRef: claimRefTo('db'), nodeAffinity: inPool },
      },
    }),
  })
  return { text: text ?? '', proof: prover.proofOfRecord(text ?? '') }
}

async function fleet(t: Test) {
  const origin = { id: 'store-2', acceptsCheckpoints: true }
  const { ask, store, clock } = await anApi(t, { origin, checkpoints: { isOpen: () => true }, contentProver: prover })
  const { resourceVersion: _, ...metadata } = aNode({ name: 'pi-1' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-1' }), metadata })
  const { metadata: named, ...local } = aStorageClass('local-path', {
    ...{ provisioner: 'bramble.dev/local-path', volumeBindingMode: 'WaitForFirstConsumer' },
  })
  await store.create('storageclasses', { ...local, metadata: named })
  const log = quietLog(t)
  const stop = new AbortController()
  const loops = volumeControllers({
    ...workloadNeeds(store, clock, log),
    storage: storageBoard(),
    origin,
    sessions: sessionBoard({ clock }),
    backupKeys: freshBackupKeys(),
  })
  const running = runLoops(loops, stop.signal, log)
  t.teardown(async () => {
    stop.abort()
    let hasEnded = false
    const ended = running.finally(() => {
      hasEnded = true
    })
    while (!hasEnded) await clock.advance(50)
    await ended
  })
  await clock.advance(1000)
  const deliver = async (part: object) => {
    const body = { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store: origin.id, ...part }
    const sent = { body, as: nodeIdentity('pi-1'), serialNumber: '01' }
    t.equal((await ask('POST', '/api/v1/nodes/pi-1/checkpoint', sent)).code, 201)
    await clock.advance(10 * minute)
  }
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'db' } }]
  await deliver({ pods: [aPod({ name: 'web', uid: 'uid-web', nodeName: 'pi-1', spec: { volumes } })] })
  return {
    ...{ store, clock, deliver },
    claim: () => store.get('persistentvolumeclaims', { namespace: 'default', name: 'db' }),
    volumes: async () => (await store.list('persistentvolumes')).items,
  }
}

test('a claim and its volume that a node returns stay bound, and no data is deleted', async (t) => {
  const { deliver, claim, volumes } = await fleet(t)
  await deliver({ claims: [sentBefore()] })
  t.match(await claim(), { metadata: { uid: 'uid-db' }, spec: { volumeName: 'pvc-1' }, status: { phase: 'Bound' } })
  t.match(await volumes(), [
    {
      metadata: { name: 'pvc-1', uid: 'uid-pvc-1' },
      spec: { claimRef: { uid: 'uid-db' } },
      status: { phase: 'Bound' },
    },
  ])
  t.equal((await volumes())[0]?.metadata.deletionTimestamp, undefined)
})

test('a claim that was created again before its node came back is bound to its data', async (t) => {
  const { deliver, claim, volumes, store, clock } = await fleet(t)
  const { spec } = aStoredClaim('db', { spec: { storageClassName: 'local-path' } })
  const metadata = { namespace: 'default', name: 'db' }
  await store.create('persistentvolumeclaims', { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec })
  await clock.advance(minute)
  await deliver({ claims: [sentBefore()] })
  const again = await claim()
  t.match(again, { spec: { volumeName: 'pvc-1' }, status: { phase: 'Bound' } })
  t.match(await volumes(), [
    { spec: { claimRef: { uid: again?.metadata.uid }, persistentVolumeReclaimPolicy: 'Retain' } },
  ])
})
