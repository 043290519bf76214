/**
 * Pods that have their node and wait for their volumes there. They wait for changes of their own claims and volumes, so any number of
 * them costs other pods nothing.
 */
import { dueTimes } from '../../../daemon/due-times.ts'
import type { StoredPod } from '../../store/store.ts'
import type { KnownClaim, KnownVolume, VolumeChoice } from './volume-cache.ts'

export type Reservation = {
  readonly key: string
  readonly pod: StoredPod
  readonly nodeName: string
  readonly volumes: VolumeChoice
  /** The versions of the claims and volumes as they were written, by uid: older ones do not count. */
  readonly versions: ReadonlyMap<string, number>
  /** When the first attempt on the pod began. */
  readonly beganMs: number
  readonly untilMs: number
}

export interface Reservations {
  add(reservation: Reservation): void
  /** False: there was none. */
  remove(key: string): boolean
  claimChanged(claim: KnownClaim): void
  volumeChanged(volume: KnownVolume): void
  nodeChanged(nodeName: string): void
  /** Those of which something changed since they were taken, and those that are overdue; at most this many. */
  take(nowMs: number, most: number): readonly Reservation[]
  /** When the next one is overdue; now if one has changed. */
  nextMs(nowMs: number): number | undefined
}

/** As kube-scheduler (bindTimeoutSeconds). */
export const longestWaitForVolumesMs = 600_000

export function reservations(): Reservations {
  const all = new Map<string, Reservation>()
  const byUid = new Map<string, Set<string>>()
  const due = dueTimes()
  const changed = new Set<string>()

  const uidsOf = ({ volumes: { bindings, provisions } }: Reservation) => [
    ...bindings.flatMap(({ claim, volume }) => [claim.metadata.uid, volume.metadata.uid]),
    ...provisions.map(({ metadata }) => metadata.uid),
  ]
  const touch = (uid: string | undefined) => {
    for (const key of byUid.get(uid ?? '') ?? []) changed.add(key)
  }
  const remove = (key: string) => {
    const present = all.get(key)
    if (present === undefined) return false
    all.delete(key)
    due.delete(key)
    changed.delete(key)
    for (const uid of uidsOf(present)) {
      const keys = byUid.get(uid)
      if (keys?.delete(key) && keys.size === 0) byUid.delete(uid)
    }
    return true
  }

  return {
    add(reservation) {
      const { key, untilMs } = reservation
      remove(key)
      all.set(key, reservation)
      for (const uid of uidsOf(reservation)) byUid.set(uid, (byUid.get(uid) ?? new Set()).add(key))
      due.set(key, untilMs)
      // What answers it may have been delivered before.
      changed.add(key)
    },
    remove,
    claimChanged: ({ metadata }) => touch(metadata.uid),
    volumeChanged({ metadata, spec }) {
      touch(metadata.uid)
      touch(spec?.claimRef?.uid)
    },
    nodeChanged(nodeName) {
      for (const [key, reservation] of all) if (reservation.nodeName === nodeName) changed.add(key)
    },
    take(nowMs, most) {
      for (const key of due.take(nowMs)) changed.add(key)
      const taken: Reservation[] = []
      for (const key of changed) {
        const reservation = all.get(key)
        if (reservation !== undefined && taken.push(reservation) > most) break
        changed.delete(key)
      }
      return taken.slice(0, most)
    },
    nextMs: (nowMs) => (changed.size > 0 ? nowMs : due.nextMs()),
  }
}
