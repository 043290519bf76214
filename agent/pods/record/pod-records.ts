/** Holds the record of each pod: the one place where state of a pod is kept. Many parts read it; reducers change it. */
import { comesBack } from '../../../api/node/node-shutdown.ts'
import type { PodStatus } from '../../../api/pod.ts'
import { unlessAborted } from '../../../daemon/aborted.ts'
import type { ContainerEnd } from '../wanted/container-end.ts'
import { podPath } from '../wanted/desired-pods.ts'
import { newRecord, type PodRecord } from './pod-record.ts'

export interface PodRecords {
  readonly entries: ReadonlyMap<string, PodRecord>
  get(uid: string): PodRecord | undefined
  /** The record of the pod; creates it if there is none. */
  of(uid: string): PodRecord
  /**
   * Replaces the record by the reducer's result, and returns it. Does nothing when the pod has no record (any more).
   */
  update(uid: string, reduce: (record: PodRecord) => PodRecord): PodRecord | undefined
  delete(uid: string): void
  /**
   * All containers of this machine were listed once. Before that, a missing record does not mean that a pod is absent.
   */
  readonly isComplete: boolean
  setComplete(): void
  /** Resolves when `accepts` returns true for the record (undefined: there is none), or when `signal` aborts. */
  until(uid: string, accepts: (record: PodRecord | undefined) => boolean, signal: AbortSignal): Promise<void>
  /** Namespace and name of each pod with a record, by UID. */
  paths(): ReadonlyMap<string, string>
  /** The final status of each pod that has ended, by UID. */
  endings(): { readonly [uid: string]: PodStatus }
  /** The containers that do not run again of each pod that has not ended, by UID. */
  ends(): { readonly [uid: string]: readonly ContainerEnd[] }
}

export function podRecords(): PodRecords {
  const entries = new Map<string, PodRecord>()
  /** By UID: called after each change of the record. */
  const listeners = new Map<string, ReadonlySet<() => void>>()
  let isComplete = false

  const changed = (uid: string) => {
    for (const listener of listeners.get(uid) ?? []) listener()
  }

  const until = async (
    uid: string,
    accepts: (record: PodRecord | undefined) => boolean,
    signal: AbortSignal,
  ): Promise<void> => {
    let check = () => {}
    const accepted = new Promise<void>((resolve) => {
      check = () => {
        if (accepts(entries.get(uid))) resolve()
      }
    })
    listeners.set(uid, new Set([...(listeners.get(uid) ?? []), check]))
    check()
    await unlessAborted(accepted, signal)
    const others = [...(listeners.get(uid) ?? [])].filter((one) => one !== check)
    if (others.length > 0) listeners.set(uid, new Set(others))
    else listeners.delete(uid)
  }

  return {
    entries,
    get: (uid) => entries.get(uid),
    of(uid) {
      const record = entries.get(uid) ?? newRecord
      entries.set(uid, record)
      return record
    },
    update(uid, reduce) {
      const record = entries.get(uid)
      if (record === undefined) return undefined
      const next = reduce(record)
      entries.set(uid, next)
      changed(uid)
      return next
    },
    delete(uid) {
      entries.delete(uid)
      changed(uid)
    },
    get isComplete() {
      return isComplete
    },
    setComplete() {
      isComplete = true
    },
    until,
    paths: () =>
      new Map([...entries].map(([uid, { pod, path = '' }]) => [uid, pod === undefined ? path : podPath(pod)])),
    endings: () =>
      Object.fromEntries([...entries].flatMap(([uid, { ended }]) => (ended === undefined ? [] : [[uid, ended]]))),
    ends: () =>
      Object.fromEntries(
        [...entries].flatMap(([uid, { ends, ended, pod }]) => {
          const isOver = ended !== undefined && (pod === undefined || !comesBack(pod, ended))
          return isOver || ends.size === 0 ? [] : [[uid, [...ends.values()]]]
        }),
      ),
  }
}
