/**
 * A store behind a connection that can be lost, as a store with a server is. Calls and answers take turns of the event loop,
 * objects cross it as JSON, and a watch is a poll that waits. Another client may use `server` itself.
 */
import { ApiError } from '../../api/api-error.ts'
import type { ResourceName } from '../../api/resources.ts'
import { eachChange } from '../store/each-change.ts'
import { frozenCopy } from '../store/frozen/frozen-copy.ts'
import type { ChangeCursor, Store, WatchEvent } from '../store/store.ts'

export interface Connection {
  /** Requests that are sent from now on do not arrive, or their answers do not, until the connection is lost. */
  hold(what: 'requests' | 'answers'): void
  /** What is under way is lost: requests, or only their answers. */
  lose(): void
  restore(): void
}

export type RemoteStore = { readonly store: Store; readonly connection: Connection }

/** Changes in one answer to a watch. */
const pollLength = 4

export function remoteStore(server: Store): RemoteStore {
  const link = connectionLink()
  let closed = false
  const ended = new Set<() => void>()

  const call = async <T>(request: () => Promise<T>): Promise<T> => {
    if (closed) throw new ApiError('ServiceUnavailable', 'The store is closed')
    return byValue(await link.send(request))
  }

  const changes = <R extends ResourceName>(resource: R, from: string | undefined): ChangeCursor<WatchEvent<R>> => {
    const events: WatchEvent<R>[] = []
    const listeners = new Set<() => void>()
    let failure: unknown
    const notify = () => {
      const called = [...listeners]
      listeners.clear()
      for (const listener of called) listener()
    }
    ended.add(notify)
    const start = async (): Promise<void> => {
      if (from !== undefined) return poll(from)
      const version = await call(() => server.version()).catch(() => undefined)
      if (version !== undefined) return poll(version)
      await link.restored()
      return start()
    }
    const poll = async (after: string): Promise<void> => {
      try {
        const received = await call(() => nextChanges(server.changes(resource, after), link.lost()))
        events.push(...received.map((event) => ({ ...event, previous: event.previous })))
      } catch (error) {
        if (closed) return
        if (!isConnectionLost(error)) {
          failure = error
          return notify()
        }
        await link.restored()
      }
      notify()
      const last = events.at(-1)
      if (events.length === 0) return poll(after)
      resumeFrom = String(last?.version ?? after)
    }
    let resumeFrom: string | undefined
    void start()
    return {
      get ended() {
        return closed
      },
      next() {
        const event = events.shift()
        if (events.length === 0 && resumeFrom !== undefined) {
          const after = resumeFrom
          resumeFrom = undefined
          void poll(after)
        }
        if (event === undefined && failure !== undefined) throw failure
        return event
      },
      onReady(listener) {
        listeners.add(listener)
        if (events.length > 0 || failure !== undefined || closed) queueMicrotask(notify)
        return () => void listeners.delete(listener)
      },
    }
  }

  const store: Store = {
    get: (resource, key) => call(() => server.get(resource, key)),
    list: (resource, namespace) => call(() => server.list(resource, namespace)),
    podsOfNode: (node) => call(() => server.podsOfNode(node)),
    create: (resource, object) => call(() => server.create(resource, object)),
    update: (resource, object, generation) => call(() => server.update(resource, object, generation)),
    updateStatus: (resource, object) => call(() => server.updateStatus(resource, object)),
    delete: (resource, key, preconditions) => call(() => server.delete(resource, key, preconditions)),
    watch: (resource, from, signal) => eachChange(changes(resource, from), signal),
    changes,
    version: (resource) => call(() => server.version(resource)),
    async close() {
      closed = true
      link.lose()
      for (const notify of ended) notify()
    },
  }
  return { store, connection: link }
}

/** Requests arrive in their order, one turn of the event loop after they were sent; so do answers. */
function connectionLink() {
  let loss = new AbortController()
  let waiting: (() => void)[] = []
  let held: 'requests' | 'answers' | undefined
  const passes = async (what: typeof held, { signal }: AbortController) => {
    if (held === what && !signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  }
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    lost: () => loss.signal,
    restored: () =>
      loss.signal.aborted ? new Promise<void>((resolve) => void waiting.push(resolve)) : Promise.resolve(),
    hold(what: 'requests' | 'answers') {
      held = what
    },
    lose: () => loss.abort(),
    restore() {
      loss = new AbortController()
      held = undefined
      const resumed = waiting
      waiting = []
      for (const resume of resumed) resume()
    },
    /** Rejects with ServiceUnavailable if nothing was sent, with Timeout if the connection was lost before the answer. */
    async send<T>(request: () => Promise<T>): Promise<T> {
      const sent = loss
      const { signal } = sent
      if (signal.aborted) throw new ApiError('ServiceUnavailable', 'No connection to the store')
      const timeout = () => new ApiError('Timeout', 'The connection to the store was lost before the answer')
      await turn()
      await passes('requests', sent)
      if (signal.aborted) throw timeout()
      const answer = await request().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      )
      await turn()
      await passes('answers', sent)
      if (signal.aborted) throw timeout()
      if ('error' in answer) throw answer.error
      return answer.value
    },
  }
}

/** The changes that are there, or else the next one. None if `lost` aborts first. */
async function nextChanges<Event>(cursor: ChangeCursor<Event>, lost: AbortSignal): Promise<readonly Event[]> {
  const events: Event[] = []
  for (;;) {
    const event = cursor.next()
    if (event !== undefined) events.push(event)
    if (events.length === pollLength || (event === undefined && events.length > 0) || cursor.ended) return events
    if (event !== undefined) continue
    const cancel = await new Promise<() => void>((resolve) => {
      const stop = cursor.onReady(() => resolve(stop))
      lost.addEventListener('abort', () => resolve(stop), { once: true })
    })
    cancel()
    if (lost.aborted) return []
  }
}

function isConnectionLost(error: unknown): boolean {
  return error instanceof ApiError && (error.reason === 'Timeout' || error.reason === 'ServiceUnavailable')
}

/** Equal, and never the same object. */
function byValue<T>(value: T): T {
  return value === undefined ? value : frozenCopy(structuredClone(value))
}
