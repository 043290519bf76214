/** The objects in memory, and the changes of late: what get, list and watch are answered from. */
import { expired } from '../../api/api-error.ts'
import { type ResourceName, resources } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Change, KeptObject } from './changes.ts'
import type { ObjectKey } from './store.ts'

export interface ObjectImage {
  get(resource: ResourceName, key: ObjectKey): KeptObject | undefined
  /** By namespace and name, in the order of their code points. */
  list(resource: ResourceName, namespace?: string): readonly KeptObject[]
  /** Puts in an object of before; nobody is told. */
  load(resource: ResourceName, object: KeptObject): void
  /** Makes a change so, and wakes who watches. */
  apply(resource: ResourceName, change: Change): void
  watch(resource: ResourceName, from: number, signal: AbortSignal): AsyncIterable<Change>
  /** Ends every watch. */
  close(): void
}

/**
 * `historyLength`: of the changes of the last minutes at least so many of each kind are remembered, at most twice as
 * many. `startVersion`: nothing up to it is remembered. `latestVersion`: nobody can have heard of a later one.
 */
export type ImageSettings = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly historyLength?: number
  readonly startVersion: number
  readonly latestVersion: () => number
}

/**
 * Ten thousand nodes renew a thousand leases a second: ten seconds of those, and of calmer kinds hours. A watcher that
 * is further behind lists again, which is cheaper for it by then.
 */
const defaultHistoryLength = 10_000
/** As Kubernetes compacts: who was away for longer lists again. Else a small fleet would keep the statuses of weeks. */
const rememberedMs = 5 * 60_000
/** Changes that are kept of each kind however old they are. */
const leastKept = 100

export function objectImage({
  clock,
  historyLength = defaultHistoryLength,
  startVersion,
  latestVersion,
}: ImageSettings): ObjectImage {
  const kinds = new Map(
    Object.values(resources).map(({ name }) => [
      name,
      { shelf: shelf(), history: history(historyLength, startVersion, clock) },
    ]),
  )
  const kind = (resource: ResourceName) => {
    const found = kinds.get(resource)
    if (found === undefined) throw new TypeError(`No such resource: ${resource}`)
    return found
  }
  return {
    get: (resource, key) => kind(resource).shelf.get(key),
    list: (resource, namespace) => kind(resource).shelf.list(namespace),
    load: (resource, object) => kind(resource).shelf.put(object),
    apply(resource, change) {
      const { shelf, history } = kind(resource)
      if (change.type === 'DELETED') shelf.remove(change.object)
      else shelf.put(change.object)
      history.add(change)
    },
    watch(resource, from, signal) {
      return kind(resource).history.watch(from, latestVersion(), signal)
    },
    close() {
      for (const { history } of kinds.values()) history.close()
    },
  }
}

/** The objects of one kind. The order of names is kept between creations and deletions, for most lists follow none. */
function shelf() {
  const namespaces = new Map<
    string,
    { readonly objects: Map<string, KeptObject>; order: readonly string[] | undefined }
  >()
  let order: readonly string[] | undefined
  const ordered = (namespace: string) => {
    const found = namespaces.get(namespace)
    if (found === undefined) return []
    found.order ??= [...found.objects.keys()].sort()
    return found.order.flatMap((name) => found.objects.get(name) ?? [])
  }
  return {
    get: ({ namespace, name }: ObjectKey) => namespaces.get(namespace)?.objects.get(name),
    list(namespace?: string): readonly KeptObject[] {
      if (namespace !== undefined) return ordered(namespace)
      order ??= [...namespaces.keys()].sort()
      return order.flatMap(ordered)
    },
    put(object: KeptObject) {
      const { name, namespace = '' } = object.metadata
      let found = namespaces.get(namespace)
      if (found === undefined) {
        found = { objects: new Map(), order: undefined }
        namespaces.set(namespace, found)
        order = undefined
      }
      if (!found.objects.has(name)) found.order = undefined
      found.objects.set(name, object)
    },
    remove(object: KeptObject) {
      const { name, namespace = '' } = object.metadata
      const found = namespaces.get(namespace)
      if (found === undefined || !found.objects.delete(name)) return
      found.order = undefined
      if (found.objects.size > 0) return
      namespaces.delete(namespace)
      order = undefined
    },
  }
}

/** The changes of one kind: one list that all watchers read, each at its own place. */
function history(length: number, startVersion: number, clock: ImageSettings['clock']) {
  const changes: Change[] = []
  /** When each of them was made. */
  const madeMs: number[] = []
  const waiting = new Set<() => void>()
  /** How many changes were dropped before `changes[0]`, and the version of the last of them. */
  let dropped = 0
  let forgotten = startVersion
  let closed = false

  const wake = () => {
    for (const resume of waiting) resume()
    waiting.clear()
  }
  /** The place of the first change after `version`. */
  const placeAfter = (version: number) => {
    let low = 0
    let high = changes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((changes[middle]?.version ?? 0) > version) high = middle
      else low = middle + 1
    }
    return dropped + low
  }

  async function* read(from: number, known: boolean, place: number, signal: AbortSignal) {
    if (!known) throw expired(from, forgotten)
    let version = from
    for (let next = place; !signal.aborted && !closed; next++) {
      while (next === dropped + changes.length && !signal.aborted && !closed) await somethingNew(signal)
      if (signal.aborted || closed) return
      const change = changes[next - dropped]
      if (change === undefined) throw expired(version, forgotten)
      version = change.version
      yield change
    }
  }

  const somethingNew = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const resume = () => {
        waiting.delete(resume)
        signal.removeEventListener('abort', resume)
        resolve()
      }
      waiting.add(resume)
      signal.addEventListener('abort', resume, { once: true })
    })

  const forget = (count: number) => {
    const old = changes.splice(0, count)
    madeMs.splice(0, count)
    dropped += old.length
    forgotten = old.at(-1)?.version ?? forgotten
  }

  /** Many at a time: what is forgotten one by one moves all others each time. */
  const forgetOld = (nowMs: number) => {
    const half = changes.length >>> 1
    if (changes.length > 2 * length) forget(changes.length - length)
    else if (half > leastKept && nowMs - (madeMs[half] ?? nowMs) > rememberedMs) forget(half)
  }

  return {
    add(change: Change) {
      const nowMs = clock.monotonicMs()
      changes.push(change)
      madeMs.push(nowMs)
      forgetOld(nowMs)
      wake()
    },
    watch(from: number, latest: number, signal: AbortSignal): AsyncIterable<Change> {
      return read(from, from >= forgotten && from <= latest, placeAfter(from), signal)
    },
    close() {
      closed = true
      wake()
    },
  }
}
