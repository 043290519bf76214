/** The keys of the etcd of a world at each of its latest revisions. */
import { eventType, type KeyValue } from '../../broker-controller/store/etcd/etcd-messages.ts'

export type KeyEvent = { readonly type: number; readonly kv: KeyValue; readonly before: KeyValue | undefined }

export interface KeyHistory {
  revision(): number
  /** Revisions before this one are forgotten. */
  compacted(): number
  get(name: string): KeyValue | undefined
  names(): readonly string[]
  /** At the next revision, as all until `commit`. */
  put(key: Uint8Array, value: Uint8Array, lease: string): KeyEvent
  /** Nothing where there is no such key. */
  remove(name: string): readonly KeyEvent[]
  /** These are the changes of the next revision. */
  commit(events: readonly KeyEvent[]): void
  since(revision: number): readonly KeyEvent[]
  /** All keys as they were at this revision; 0: as they are. */
  keysAt(revision: number): ReadonlyMap<string, KeyValue>
  compact(): void
}

/** Changes that a watch can begin with: at least this many, at most twice as many. */
const mostKept = 5_000
export const nothing = Buffer.alloc(0)

export function keyHistory(): KeyHistory {
  const present = new Map<string, KeyValue>()
  let history: KeyEvent[] = []
  let compacted = 0
  let revision = 1

  const keepFrom = (index: number) => {
    compacted = history[index - 1]?.kv.modRevision ?? compacted
    history = history.slice(index)
  }
  return {
    revision: () => revision,
    compacted: () => compacted,
    get: (name) => present.get(name),
    names: () => [...present.keys()],
    put(key, value, lease) {
      const before = present.get(nameOf(key))
      const modRevision = revision + 1
      const { createRevision, version } = before ?? { createRevision: modRevision, version: 0 }
      const kv = {
        key: Buffer.from(key),
        value: Buffer.from(value),
        lease,
        createRevision,
        version: version + 1,
        modRevision,
      }
      present.set(nameOf(key), kv)
      return { type: eventType.put, kv, before }
    },
    remove(name) {
      const before = present.get(name)
      if (before === undefined) return []
      present.delete(name)
      const { key } = before
      const kv = { key, value: nothing, lease: '0', createRevision: 0, version: 0, modRevision: revision + 1 }
      return [{ type: eventType.delete, kv, before }]
    },
    commit(events) {
      revision += 1
      history.push(...events)
      if (history.length > 2 * mostKept) keepFrom(history.length - mostKept)
    },
    since: (first) => history.filter(({ kv }) => kv.modRevision >= first),
    keysAt(wanted) {
      if (wanted === 0 || wanted >= revision) return present
      const keys = new Map(present)
      // What was changed since is taken back.
      for (const { kv, before } of [...history].reverse()) {
        if (kv.modRevision <= wanted) break
        if (before === undefined) keys.delete(nameOf(kv.key))
        else keys.set(nameOf(kv.key), before)
      }
      return keys
    },
    compact: () => keepFrom(history.length),
  }
}

/** Each byte is a character: names are in the order of the keys. */
export function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1')
}
