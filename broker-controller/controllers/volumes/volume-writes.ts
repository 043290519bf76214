/** Writes claims and volumes, and records what they wait for. */
import type { Log } from '../../../daemon/log.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keyText } from '../../store/informer.ts'
import { objectReference } from '../../store/references.ts'
import type { Store } from '../../store/store.ts'
import type { StoredClaim, VolumeWrite } from './bind-writes.ts'
import type { VolumeEvent } from './claim-plan.ts'
import type { StoredVolume } from './volume-index.ts'

type WriteOf<Resource extends VolumeWrite['resource']> = Extract<VolumeWrite, { readonly resource: Resource }>

export interface VolumeWrites {
  /** Throws Conflict if the object is not the one that was decided on. */
  write(write: VolumeWrite): Promise<void>
  writeVolume(write: WriteOf<'persistentvolumes'>): Promise<StoredVolume>
  writeClaim(write: WriteOf<'persistentvolumeclaims'>): Promise<StoredClaim>
  /** The same Event again at once is one visit too many, and left out. */
  record(object: StoredClaim | StoredVolume, event: VolumeEvent): Promise<void>
  /** The claim or the volume is gone. */
  forget(key: string): void
}

type VolumeWritesNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: { monotonicMs(): number }
  readonly log: Log
}

/** As in Kubernetes, where each claim is visited so often. */
const sameMs = 15_000
const component = 'persistentvolume-controller'

export function volumeWrites({ store, events, clock, log }: VolumeWritesNeeds): VolumeWrites {
  const recorded = new Map<string, { readonly text: string; readonly atMs: number }>()
  const writeVolume: VolumeWrites['writeVolume'] = ({ part, object }) =>
    part === 'status' ? store.updateStatus('persistentvolumes', object) : store.update('persistentvolumes', object)
  const writeClaim: VolumeWrites['writeClaim'] = ({ part, object }) =>
    part === 'status'
      ? store.updateStatus('persistentvolumeclaims', object)
      : store.update('persistentvolumeclaims', object)
  return {
    writeVolume,
    writeClaim,
    forget: (key) => void recorded.delete(key),
    async write(write) {
      if (write.resource === 'persistentvolumes') await writeVolume(write)
      else await writeClaim(write)
    },
    async record(object, event) {
      const key = object.kind === 'PersistentVolume' ? object.metadata.name : keyText(object.metadata)
      const text = `${object.metadata.uid} ${event.reason} ${event.message}`
      const nowMs = clock.monotonicMs()
      const last = recorded.get(key)
      if (last?.text === text && nowMs - last.atMs < sameMs) return
      recorded.set(key, { text, atMs: nowMs })
      try {
        await events.record({ object: objectReference(object), component, ...event })
      } catch (error) {
        log.warn('Event not recorded', { reason: event.reason, object: key, error })
      }
    },
  }
}
