/** Holds the record of each pod: the one place where state of a pod is kept. Many parts read it; reducers change it. */
import type { PodStatus } from '../../../api/pod.ts'
import { pathOf } from '../wanted/desired-pods.ts'
import { newRecord, type PodRecord } from './pod-record.ts'

export interface PodRecords {
  readonly entries: ReadonlyMap<string, PodRecord>
  get(uid: string): PodRecord | undefined
  /** The record of the pod; creates it if there is none. */
  of(uid: string): PodRecord
  /** Replaces the record by the reducer's result, and returns it. Does nothing when the pod has no record (any more). */
  update(uid: string, reduce: (record: PodRecord) => PodRecord): PodRecord | undefined
  delete(uid: string): void
  /** Namespace and name of each pod with a record, by UID. */
  paths(): ReadonlyMap<string, string>
  /** The final status of each pod that has ended, by UID. */
  endings(): { readonly [uid: string]: PodStatus }
}

export function podRecords(): PodRecords {
  const entries = new Map<string, PodRecord>()
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
      return next
    },
    delete: (uid) => void entries.delete(uid),
    paths: () =>
      new Map([...entries].map(([uid, { pod, path = '' }]) => [uid, pod === undefined ? path : pathOf(pod)])),
    endings: () =>
      Object.fromEntries([...entries].flatMap(([uid, { ended }]) => (ended === undefined ? [] : [[uid, ended]]))),
  }
}
