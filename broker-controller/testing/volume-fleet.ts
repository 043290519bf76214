/** A fleet with the scheduler and the controllers of volumes. The test plays people and a provisioner. */
import type { PersistentVolume } from '../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../api/storage/persistent-volume-claim.ts'
import { volumeAnnotations } from '../../api/storage/volume-names.ts'
import { aPod } from '../../api/testing/builders.ts'
import { runLoops } from '../../daemon/run.ts'
import { volumeControllers } from '../controllers/volumes/volume-controllers.ts'
import { scheduler } from '../scheduler/scheduler.ts'
import { sessionBoard } from '../sessions/session-board.ts'
import type { Store, StoredObject } from '../store/store.ts'
import { storageBoard } from '../usage/storage-board.ts'
import { type Fleet, fleet } from './fleet.ts'
import { freshBackupKeys } from './fresh-backup-keys.ts'
import { delayedClasses } from './pods-with-claims.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from './volume-objects.ts'
import { workloadNeeds } from './workload-world.ts'

export interface VolumeFleet extends Fleet {
  /** Starts scheduler and controllers over this store; the answer ends them. */
  live(store?: Store, random?: () => number): () => Promise<void>
  /** Adds a claim in `default`. */
  addClaim(name: string, spec: PersistentVolumeClaim['spec']): Promise<void>
  addVolume(name: string, spec: PersistentVolume['spec']): Promise<void>
  /** Pods that no node runs yet; the fleet does nothing before all are there. */
  addPods(...pods: readonly Parameters<typeof aPod>[0][]): Promise<void>
  /** As a provisioner: the volume that the claim waits for, on the node that was selected. */
  provision(claim: StoredObject<'persistentvolumeclaims'>, spec: PersistentVolume['spec']): Promise<void>
  /** As a provisioner that cannot make the volume on the selected node. */
  reject(claim: StoredObject<'persistentvolumeclaims'>): Promise<void>
  claim(name: string): Promise<StoredObject<'persistentvolumeclaims'>>
  claims(): Promise<readonly StoredObject<'persistentvolumeclaims'>[]>
  volumes(): Promise<readonly StoredObject<'persistentvolumes'>[]>
}

/** With these nodes and the classes of `delayedClasses`; nothing runs yet. */
export async function volumeFleet(t: Parameters<typeof fleet>[0], ...nodes: readonly string[]): Promise<VolumeFleet> {
  const world = fleet(t)
  const { store, clock, log } = world
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
  for (const { metadata, ...one } of delayedClasses()) {
    await store.create('storageclasses', { ...one, metadata: { name: metadata.name } })
  }
  await world.join(...nodes.map((name) => ({ name })))
  const claims = async () => (await store.list('persistentvolumeclaims')).items
  const addVolume: VolumeFleet['addVolume'] = async (name, given) => {
    const { spec } = aStoredVolume(name, { spec: given })
    await store.create('persistentvolumes', { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec })
  }
  return {
    ...world,
    addVolume,
    claims,
    volumes: async () => (await store.list('persistentvolumes')).items,
    live(seen = store, random = () => 0) {
      const needs = workloadNeeds(seen, clock, log)
      const stop = new AbortController()
      const running = runLoops(
        [
          scheduler({ ...needs, random }),
          ...volumeControllers({
            ...needs,
            storage: storageBoard(),
            sessions: sessionBoard(needs),
            origin: { id: 'store-1' },
            backupKeys: freshBackupKeys(),
          }),
        ],
        stop.signal,
        log,
      )
      return async () => {
        stop.abort()
        let hasEnded = false
        const ended = running.finally(() => {
          hasEnded = true
        })
        // A write that met another one is tried again before its loop ends.
        while (!hasEnded) await clock.advance(50)
        await ended
      }
    },
    async addClaim(name, given) {
      const { spec, status } = aStoredClaim(name, { spec: given })
      const metadata = { namespace: 'default', name }
      const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec, status } as const
      await store.create('persistentvolumeclaims', claim)
    },
    async addPods(...pods) {
      for (const over of pods) {
        const { metadata, ...pod } = aPod({ phase: 'Pending', status: {}, ...over })
        const { uid: _, resourceVersion: __, creationTimestamp: ___, ...given } = metadata
        await store.create('pods', { ...pod, metadata: given })
      }
      await clock.settle()
    },
    async provision({ metadata: { name, uid } }, given) {
      await addVolume(`pvc-${uid}`, { ...given, claimRef: claimRefTo(name, uid) })
      await clock.settle()
    },
    async reject(claim) {
      const { [volumeAnnotations.selectedNode]: _, ...annotations } = claim.metadata.annotations ?? {}
      await store.update('persistentvolumeclaims', { ...claim, metadata: { ...claim.metadata, annotations } })
    },
    async claim(name) {
      const found = (await claims()).find(({ metadata }) => metadata.name === name)
      if (found === undefined) throw new Error(`No claim ${name}`)
      return found
    },
  }
}
