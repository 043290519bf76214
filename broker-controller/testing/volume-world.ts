/** A control plane of claims and volumes. The test plays people, the scheduler, nodes and a provisioner. */
import type { AnyObject } from '../../api/meta.ts'
import type { Volume } from '../../api/pod.ts'
import { aPod } from '../../api/testing/builders.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { type FakeClock, fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import type { VolumeBackupNeeds } from '../controllers/volumes/backups/volume-backup-needs.ts'
import type { VolumeBinderNeeds } from '../controllers/volumes/volume-binder.ts'
import { volumeControllers } from '../controllers/volumes/volume-controllers.ts'
import { type SessionBoard, sessionBoard } from '../sessions/session-board.ts'
import { memoryStore } from '../store/memory-store.ts'
import { removeObject } from '../store/object-removal.ts'
import type { Store, StoredObject } from '../store/store.ts'
import { type StorageBoard, storageBoard } from '../usage/storage-board.ts'
import { create } from './admitting.ts'
import { freshBackupKeys } from './fresh-backup-keys.ts'
import { workloadNeeds } from './workload-world.ts'

type Kind = 'persistentvolumeclaims' | 'persistentvolumes'
type Test = Parameters<typeof quietLog>[0] & { teardown(end: () => Promise<void> | void): void }

export interface VolumeWorld {
  /** As others see it: writes to it do not fail with the process. */
  readonly store: Store
  readonly clock: FakeClock
  /** What nodes report. */
  readonly storage: StorageBoard
  /** Starts the controllers; they end with the test, or when the function is called. */
  start(): () => Promise<void>
  settle(ms?: number): Promise<void>
  /** As the API makes it of what its author sent. */
  add(resource: Kind | 'storageclasses', object: AnyObject): Promise<void>
  /** As the API does when somebody deletes it. */
  remove(resource: Kind, name: string): Promise<void>
  /** A pod that uses the claim, or these volumes; `nodeName` '': it has none yet. */
  addPod(name: string, uses: string | readonly Volume[], nodeName: string): Promise<void>
  claim(name: string): Promise<StoredObject<'persistentvolumeclaims'> | undefined>
  volume(name: string): Promise<StoredObject<'persistentvolumes'> | undefined>
  /** `Reason message` of each Event of this object. */
  events(name: string): Promise<readonly string[]>
}

export function volumeWorld(
  t: Test,
  given: {
    readonly store?: (store: Store) => Store
    readonly hold?: VolumeBinderNeeds['hold']
    readonly sessions?: Pick<SessionBoard, 'open'>
    readonly backupKeys?: VolumeBackupNeeds['backupKeys']
  } = {},
): VolumeWorld {
  const clock = fakeClock()
  const store = memoryStore({ clock, resources: builtInKinds })
  void store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
  const log: Log = quietLog(t)
  const seen = given.store?.(store) ?? store
  const { hold } = given
  const storage = storageBoard()
  const sessions = given.sessions ?? sessionBoard({ clock })
  const origin = { id: 'store-1' }
  const backupKeys = given.backupKeys ?? freshBackupKeys()
  const needs = { ...workloadNeeds(seen, clock, log), storage, sessions, backupKeys, origin, ...(hold && { hold }) }
  const get = <R extends Kind>(resource: R, namespace: string, name: string) => store.get(resource, { namespace, name })
  return {
    store,
    storage,
    clock,
    settle: (ms = 100) => clock.advance(ms),
    start() {
      const stop = new AbortController()
      const loops: readonly Loop[] = volumeControllers(needs)
      const running = runLoops(loops, stop.signal, log)
      const end = async () => {
        stop.abort()
        let hasEnded = false
        const ended = running.finally(() => {
          hasEnded = true
        })
        // A write that met another one is tried again before the loop ends.
        while (!hasEnded) await clock.advance(50)
        await ended
      }
      t.teardown(end)
      return end
    },
    async add(resource, object) {
      await store.create(resource, create(resource, object) as never)
    },
    async remove(resource, name) {
      const namespace = resource === 'persistentvolumes' ? '' : 'default'
      const object = await store.get(resource, { namespace, name })
      if (object !== undefined) await removeObject({ store, clock }, resource, object)
    },
    async addPod(name, uses, nodeName) {
      const pod = aPod({ name })
      const { uid: _, resourceVersion: __, ...metadata } = pod.metadata
      const volumes = typeof uses === 'string' ? [{ name: 'data', persistentVolumeClaim: { claimName: uses } }] : uses
      const spec = { ...pod.spec, volumes, ...(nodeName !== '' && { nodeName }) }
      await store.create('pods', { ...pod, metadata: { ...metadata, namespace: 'default' }, spec })
    },
    claim: (name) => get('persistentvolumeclaims', 'default', name),
    volume: (name) => get('persistentvolumes', '', name),
    async events(name) {
      const all = (await store.list('events')).items.filter(({ involvedObject }) => involvedObject.name === name)
      return all.map(({ reason, message }) => `${reason} ${message}`)
    },
  }
}
