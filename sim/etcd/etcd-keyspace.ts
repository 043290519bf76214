/** The keys, leases and watches of the etcd of a world, as the store uses them. What it has answered it never loses. */
import { grpcCode } from '../../broker-controller/store/etcd/etcd-error.ts'
import {
  type Compare,
  compareTarget,
  eventType,
  type KeyValue,
  type RangeResponse,
  type TxnOperation,
  type TxnRequest,
  type TxnResponse,
  type WatchResponse,
} from '../../broker-controller/store/etcd/etcd-messages.ts'
import type { SimulatedTime } from '../world/simulated-time.ts'
import { type KeyEvent, keyHistory, nameOf, nothing } from './key-history.ts'

/** An error of etcd, with the code of gRPC. */
export type EtcdRefusal = { readonly code: number; readonly message: string }

export interface EtcdKeyspace {
  range(request: RangeRequest): RangeResponse | EtcdRefusal
  /** `by`: the machine that asks. */
  txn(request: TxnRequest, by: string): TxnResponse | EtcdRefusal
  /** `push` gets each answer of the stream. Returns what ends it. */
  watch(request: WatchCreate, push: (answer: WatchResponse) => void): () => void
  grant(seconds: number): { readonly id: string; readonly ttl: number }
  /** `ttl` 0: there is no such lease. */
  keepAlive(id: string): { readonly id: string; readonly ttl: number }
  revoke(id: string): Record<never, never> | EtcdRefusal
  /** A watch that begins before now must read everything again. */
  compact(): void
  readonly all: readonly KeyValue[]
}

export type RangeRequest = NonNullable<TxnOperation['range']>
export type WatchCreate = KeyRange & { readonly startRevision?: number }

type KeyRange = { readonly key?: Uint8Array; readonly rangeEnd?: Uint8Array }
type Watch = { readonly covers: (key: string) => boolean; readonly push: (answer: WatchResponse) => void }
type Lease = { readonly ttl: number; readonly keys: Set<string>; cancel: () => void }

/** `value` undefined: the key was deleted. `by` undefined: with its lease. */
export type KeyChange = {
  readonly key: Buffer
  readonly value: Buffer | undefined
  readonly revision: number
  readonly by: string | undefined
}

/** `changed` is called with each change as it happens. */
export function etcdKeyspace(time: SimulatedTime, changed: (change: KeyChange) => void): EtcdKeyspace {
  const kept = keyHistory()
  const leases = new Map<string, Lease>()
  const watches = new Set<Watch>()
  let lastLease = 0

  /** The key moves to the lease that it has now. */
  const follow = (event: KeyEvent): KeyEvent => {
    const name = nameOf(event.kv.key)
    if (event.before !== undefined) leases.get(event.before.lease)?.keys.delete(name)
    leases.get(event.kv.lease)?.keys.add(name)
    return event
  }
  const commit = (events: readonly KeyEvent[], by?: string) => {
    if (events.length === 0) return
    kept.commit(events)
    const revision = kept.revision()
    for (const { type, kv } of events)
      changed({ key: kv.key, value: type === eventType.put ? kv.value : undefined, revision, by })
    for (const { covers, push } of watches) {
      const seen = events.filter(({ kv }) => covers(nameOf(kv.key)))
      if (seen.length > 0) push(changesAt(revision, seen))
    }
  }
  const end = (id: string) => {
    const lease = leases.get(id)
    leases.delete(id)
    lease?.cancel()
    commit([...(lease?.keys ?? [])].flatMap((name) => kept.remove(name)).map(follow))
  }
  const range = (request: RangeRequest): RangeResponse | EtcdRefusal => {
    const { limit = 0, revision: wanted = 0, keysOnly = false, countOnly = false } = request
    if (wanted !== 0 && wanted < kept.compacted()) return compactedRefusal
    const covers = rangeOf(request)
    const found = [...kept.keysAt(wanted)].filter(([name]) => covers(name)).sort(([a], [b]) => (a < b ? -1 : 1))
    const page = countOnly ? [] : limit > 0 ? found.slice(0, limit) : found
    const kvs = page.map(([, kv]) => (keysOnly ? { ...kv, value: nothing } : kv))
    const more = page.length < found.length && !countOnly
    return { header: { revision: kept.revision() }, kvs, more, count: found.length }
  }

  return {
    range,
    txn({ compare = [], success = [], failure = [] }, by) {
      const succeeded = compare.every((one) => holds(one, kept.get(nameOf(one.key ?? nothing))))
      const operations = succeeded ? success : failure
      if (operations.some(({ put }) => put?.lease !== undefined && !leases.has(put.lease))) return noLease
      const events: KeyEvent[] = []
      const responses = operations.map(({ range: asked, put, deleteRange }) => {
        if (put !== undefined) events.push(follow(kept.put(put.key ?? nothing, put.value ?? nothing, put.lease ?? '0')))
        if (deleteRange !== undefined)
          events.push(...kept.names().filter(rangeOf(deleteRange)).flatMap(kept.remove).map(follow))
        const answer = asked && range(asked)
        return { range: answer !== undefined && 'kvs' in answer ? answer : undefined }
      })
      commit(events, by)
      return { header: { revision: kept.revision() }, succeeded, responses }
    },
    watch(request, push) {
      const covers = rangeOf(request)
      const header = { revision: kept.revision() }
      const { startRevision = header.revision + 1 } = request
      push({ ...emptyAnswer, header, created: true })
      if (startRevision <= kept.compacted()) {
        const cancelReason = compactedRefusal.message
        push({ ...emptyAnswer, header, canceled: true, compactRevision: kept.compacted(), cancelReason })
        return () => undefined
      }
      const missed = kept.since(startRevision).filter(({ kv }) => covers(nameOf(kv.key)))
      if (missed.length > 0) push(changesAt(header.revision, missed))
      const watch = { covers, push }
      watches.add(watch)
      return () => void watches.delete(watch)
    },
    grant(ttl) {
      const id = `${++lastLease}`
      leases.set(id, { ttl, keys: new Set(), cancel: time.after(ttl * 1000, () => end(id)) })
      return { id, ttl }
    },
    keepAlive(id) {
      const lease = leases.get(id)
      if (lease === undefined) return { id, ttl: 0 }
      lease.cancel()
      lease.cancel = time.after(lease.ttl * 1000, () => end(id))
      return { id, ttl: lease.ttl }
    },
    revoke(id) {
      if (!leases.has(id)) return noLease
      end(id)
      return {}
    },
    compact: kept.compact,
    get all() {
      return [...kept.keysAt(0).values()]
    },
  }
}

function holds({ target, createRevision = 0, modRevision = 0 }: Compare, kv: KeyValue | undefined): boolean {
  if (target === compareTarget.create) return (kv?.createRevision ?? 0) === createRevision
  return (kv?.modRevision ?? 0) === modRevision
}

function changesAt(revision: number, events: readonly KeyEvent[]): WatchResponse {
  return { ...emptyAnswer, header: { revision }, events: events.map(({ type, kv }) => ({ type, kv })) }
}

const emptyAnswer: WatchResponse = {
  ...{ header: undefined, created: false, canceled: false, compactRevision: 0, cancelReason: '', fragment: false },
  events: [],
}
const noLease: EtcdRefusal = { code: grpcCode.notFound, message: 'etcdserver: requested lease not found' }
const compactedRefusal: EtcdRefusal = {
  code: grpcCode.outOfRange,
  message: 'etcdserver: mvcc: required revision has been compacted',
}

function rangeOf({ key = nothing, rangeEnd = nothing }: KeyRange) {
  const [first, last] = [nameOf(key), nameOf(rangeEnd)]
  return (name: string) => (last === '' ? name === first : name >= first && name < last)
}
