/** The changes of one kind as a client asked to see them: which events, in which words, until when. */
import { setImmediate } from 'node:timers/promises'
import { isApiError } from '../../../api/api-error.ts'
import type { ResourceName } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { eventLine } from '../../store/object-json.ts'
import type { AnyStored, ChangeCursor, Store, WatchEvent } from '../../store/store.ts'
import { statusOf } from '../wire/status-errors.ts'
import { inTurns } from './turns.ts'

export type WatchOptions = {
  readonly namespace: string | undefined
  /** Show what follows this version; undefined: first everything there is, then what follows. */
  readonly from: string | undefined
  readonly matches: (object: AnyStored) => boolean
  /** Send the version each minute, so that a quiet watch can resume after a lost connection. */
  readonly bookmarks: boolean
  /** Send a bookmark at the end of the initial events (`sendInitialEvents`, KEP-3157). */
  readonly markInitialEnd: boolean
  readonly timeoutMs: number | undefined
  /** Ends the watch as well; undefined: nothing else does. */
  readonly ended?: AbortSignal | undefined
  /** The object as this client reads it: itself, a table of one row, its metadata. `first`: nothing was shown before. */
  readonly shown: (object: AnyStored, first: boolean) => unknown
  /** The object of a bookmark, which has only a version. */
  readonly bookmark: (metadata: { resourceVersion: string; annotations?: { [key: string]: string } }) => unknown
  /** A list without items, as JSON: what a client makes a list of that it reads as a watch. */
  readonly emptyList: () => string
}

export type WatchNeeds = { readonly store: Store; readonly clock: Clock }

const bookmarkEveryMs = 60_000 // as Kubernetes
/** A watch takes about 10 µs for an event, with the encryption; about 0.1 ms where it shows tables. */
const watchesAtOnce = 64
/** So many changes that a selector hides are passed over in one turn of the event loop. */
const hiddenAtOnce = 256

/**
 * One line for each event. Ends with `signal`, with the time-out, or with an ERROR event when the reader must list
 * again; it never throws for that. The next line is made when the one before was taken: a slow reader falls behind in
 * the store's own memory of changes, and its watch ends with an ERROR event when they are no longer there.
 */
export async function* watchLines(
  needs: WatchNeeds,
  resource: ResourceName,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const wake = wakeUp()
  const own = new AbortController()
  const end = () => {
    own.abort()
    wake.now()
  }
  const { ended } = options
  if (signal.aborted || ended?.aborted) return
  signal.addEventListener('abort', end, { once: true })
  ended?.addEventListener('abort', end, { once: true })
  if (options.timeoutMs !== undefined) void needs.clock.sleep(options.timeoutMs, own.signal).then(end)
  try {
    yield* lines(needs, resource, options, own.signal, wake)
  } catch (error) {
    yield eventLine('ERROR', statusOf(error))
    if (!isApiError(error)) throw error
  } finally {
    signal.removeEventListener('abort', end)
    ended?.removeEventListener('abort', end)
    end()
  }
}

async function* lines(
  { store, clock }: WatchNeeds,
  resource: ResourceName,
  options: WatchOptions,
  signal: AbortSignal,
  wake: WakeUp,
): AsyncGenerator<Uint8Array> {
  const { shown, bookmark } = options
  let first = true
  const lineOf = ({ type, object }: VisibleEvent) => {
    const bytes = eventLine(type, shown(object, first))
    first = false
    return bytes
  }
  const start = await startOf(store, resource, options)
  let seen = start.version
  for (const object of start.items) yield lineOf({ type: 'ADDED', object })
  yield* start.marks
  const isHere = isVisible(options)
  const cursor = store.changes(resource, seen)
  const bookmarks = bookmarksOf({ store, clock }, resource, options, { seen, signal, wake })
  let hidden = 0
  while (!signal.aborted) {
    const change = cursor.next()
    if (change !== undefined) {
      seen = String(change.version)
      const visible = transition(change, isHere)
      if (visible !== undefined) yield lineOf(visible)
      else if (++hidden % hiddenAtOnce === 0) await setImmediate()
    } else if (bookmarks.isDue(cursor)) {
      seen = bookmarks.reached(seen)
      yield eventLine('BOOKMARK', bookmark({ resourceVersion: seen }))
      await bookmarks.plan()
    } else if (cursor.ended) return
    else await wake.when(cursor)
  }
}

type WatchStart = {
  readonly version: string
  readonly items: readonly AnyStored[]
  readonly marks: readonly Uint8Array[]
}

/** The objects that are there, for a watch without a version. `marks`: what follows them. */
async function startOf(
  store: Store,
  resource: ResourceName,
  { from, namespace, matches, markInitialEnd, bookmark, emptyList }: WatchOptions,
): Promise<WatchStart> {
  if (from !== undefined) return { version: from, items: [], marks: [] }
  const { items, resourceVersion } = await store.list(resource, namespace)
  const start = { version: resourceVersion, items: items.filter(matches), marks: [] }
  if (!markInitialEnd) return start
  const annotations = {
    'k8s.io/initial-events-end': 'true',
    // watchListTransformer in apiserver, endpoints/handlers/response.go.
    'kubernetes.io/initial-events-list-blueprint': Buffer.from(emptyList()).toString('base64'),
  }
  return { ...start, marks: [eventLine('BOOKMARK', bookmark({ resourceVersion, annotations }))] }
}

function isVisible({ namespace, matches }: WatchOptions): (object: AnyStored) => boolean {
  return (object) => (namespace === undefined || object.metadata.namespace === namespace) && matches(object)
}

export type VisibleEvent = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: AnyStored }

/**
 * What a change looks like through a selector: an object that begins to match is ADDED, one that ceases to is DELETED,
 * as it last matched but with the version of the change. Undefined: nothing to see.
 */
export function transition(
  { type, object, previous }: WatchEvent<ResourceName>,
  matches: (object: AnyStored) => boolean,
): VisibleEvent | undefined {
  if (type === 'DELETED') return matches(object) ? { type, object } : undefined
  const before = previous !== undefined && matches(previous)
  if (matches(object)) return { type: before ? 'MODIFIED' : 'ADDED', object }
  if (!before) return undefined
  const { resourceVersion } = object.metadata
  return { type: 'DELETED', object: { ...previous, metadata: { ...previous.metadata, resourceVersion } } }
}

type WakeUp = {
  /** Resolves when the cursor has a change, a few watches at a time, or with `now`. */
  when(cursor: ChangeCursor<unknown>): Promise<void>
  now(): void
}

const turn = inTurns(watchesAtOnce)

/** One change wakes all watches of a kind: they are resumed in turns, and other requests are answered in between. */
function wakeUp(): WakeUp {
  let resume = () => {}
  const now = () => resume()
  const soon = () => turn(now)
  return {
    now,
    async when(cursor) {
      let cancel = () => {}
      await new Promise<void>((resolve) => {
        resume = resolve
        cancel = cursor.onReady(soon)
      })
      cancel()
    },
  }
}

type Bookmarks = {
  isDue(cursor: Pick<ChangeCursor<unknown>, 'isBehind'>): boolean
  /** The version that the watch has reached: `seen`, or the one noted when this bookmark was planned. */
  reached(seen: string): string
  /** The next one is due a minute later; it wakes the watch. */
  plan(): Promise<void>
}

/** None is due for a watch that asks for none. */
function bookmarksOf(
  { store, clock }: WatchNeeds,
  resource: ResourceName,
  { bookmarks }: WatchOptions,
  { seen, signal, wake }: { readonly seen: string; readonly signal: AbortSignal; readonly wake: WakeUp },
): Bookmarks {
  let noted = seen
  let due = false
  const wait = () => {
    due = false
    void clock.sleep(bookmarkEveryMs, signal).then(() => {
      due = true
      wake.now()
    })
  }
  if (bookmarks) wait()
  return {
    isDue: (cursor) => due && !cursor.isBehind,
    // Noted one tick ago, and nothing has been waiting since: no change up to there is still to come.
    reached: (version) => (Number(noted) > Number(version) ? noted : version),
    async plan() {
      noted = await store.version(resource)
      wait()
    },
  }
}
