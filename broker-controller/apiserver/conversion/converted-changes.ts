/** The changes of a kind in one version: those of the store in their order, converted a few at a time as a reader takes them. */
import { isApiError } from '../../../api/api-error.ts'
import type { ResourceName } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { AnyStored, ChangeCursor, WatchEvent } from '../../store/store.ts'
import type { ConvertedObjects } from './converted-objects.ts'

type Event = WatchEvent<ResourceName>

/** Changes that one reader takes ahead, which are converted together. */
const mostAhead = 16
/** A webhook that fails is called again after these times; then the reader gets its error. */
const waitsMs = [1_000, 4_000]

/** `next` throws the ApiError of a webhook that fails again and again: the reader lists again then. */
export function convertedChanges(
  changes: ChangeCursor<Event>,
  objects: Pick<ConvertedObjects, 'known' | 'one' | 'all'>,
  clock: Pick<Clock, 'sleep'>,
): ChangeCursor<Event> {
  const ahead: Event[] = []
  const waiting = new Set<() => void>()
  /** Results of the changes ahead: what all readers share may be dropped meanwhile. */
  let converted = new Map<AnyStored, AnyStored>()
  let isConverting = false
  /** After the changes ahead. */
  let error: unknown

  const formOf = (object: AnyStored) => converted.get(object) ?? objects.known(object)
  const take = () => {
    try {
      while (error === undefined && ahead.length < mostAhead) {
        const change = changes.next()
        if (change === undefined) return
        ahead.push(change)
      }
    } catch (cause) {
      error = cause
    }
  }
  const convert = async () => {
    const [first, ...others] = ahead.map(sourcesOf)
    // A failure of the changes behind is that of their own turn.
    const all = [...new Set([...(first ?? []), ...others.flat()])]
    const results = await objects.all(all).catch(() => undefined)
    if (results !== undefined) converted = new Map(all.flatMap((one, index) => pairOf(one, results[index])))
    else
      converted = new Map(
        await Promise.all((first ?? []).map(async (one) => [one, await repeated(one, objects, clock)] as const)),
      )
  }
  const begin = () => {
    isConverting = true
    void convert()
      .catch((cause: unknown) => {
        ahead.length = 0
        error = cause
      })
      .finally(() => {
        isConverting = false
        const listeners = [...waiting]
        waiting.clear()
        for (const listener of listeners) listener()
      })
  }
  return {
    get ended() {
      return changes.ended && ahead.length === 0
    },
    get isBehind() {
      return ahead.length > 0
    },
    next() {
      if (isConverting) return undefined
      take()
      const [first] = ahead
      if (first === undefined) {
        if (error !== undefined) throw error
        return undefined
      }
      const event = convertedEvent(first, formOf)
      if (event === undefined) begin()
      else ahead.shift()
      return event
    },
    onReady(listener) {
      if (!isConverting) return changes.onReady(listener)
      waiting.add(listener)
      return () => void waiting.delete(listener)
    },
  }
}

/** undefined: it is not converted yet. */
function convertedEvent(
  { type, object, previous, version }: Event,
  formOf: (object: AnyStored) => AnyStored | undefined,
): Event | undefined {
  const before = previous && formOf(previous)
  if (previous !== undefined && before === undefined) return undefined
  if (before !== undefined && type === 'DELETED' && isSame(object, previous)) {
    const metadata = { ...before.metadata, resourceVersion: object.metadata.resourceVersion }
    return { type, object: { ...before, metadata }, previous: before, version }
  }
  const after = formOf(object)
  return after && { type, object: after, previous: before, version }
}

async function repeated(
  object: AnyStored,
  objects: Pick<ConvertedObjects, 'one'>,
  clock: Pick<Clock, 'sleep'>,
): Promise<AnyStored> {
  for (let failures = 0; ; failures++) {
    try {
      return await objects.one(object)
    } catch (cause) {
      const waitMs = waitsMs[failures]
      if (waitMs === undefined || !isApiError(cause)) throw cause
      await clock.sleep(waitMs)
    }
  }
}

/** What is converted for a change. A deleted object is shown as it was. */
function sourcesOf({ type, object, previous }: Event): readonly AnyStored[] {
  if (previous === undefined) return [object]
  return type === 'DELETED' && isSame(object, previous) ? [previous] : [previous, object]
}

/** Whether it is the object that was deleted. Some stores may have missed its last changes. */
function isSame(object: AnyStored, previous: AnyStored | undefined): previous is AnyStored {
  return previous !== undefined && previous.metadata.uid === object.metadata.uid
}

function pairOf(from: AnyStored, to: AnyStored | undefined): readonly (readonly [AnyStored, AnyStored])[] {
  return to === undefined ? [] : [[from, to]]
}
