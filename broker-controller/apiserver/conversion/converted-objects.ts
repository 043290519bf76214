/**
 * The objects of one kind in one version, converted when they are first read. All readers share the results and the calls under way, so
 * that a change is converted once however many watches see it.
 */
import type { Clock } from '../../../daemon/clock.ts'
import { heapSizeOf } from '../../store/heap-size.ts'
import { jsonOf } from '../../store/object-json.ts'
import type { AnyStored } from '../../store/store.ts'
import { pauses } from '../handlers/turns.ts'

export interface ConvertedObjects {
  /** About what the kept results take in memory. */
  readonly bytes: number
  /** Without waiting: the object itself where it has the version, or a kept result. */
  known(stored: AnyStored): AnyStored | undefined
  /** Throws the ApiError of a webhook that fails. */
  one(stored: AnyStored): Promise<AnyStored>
  /** In the order of the objects, by a few calls. Throws as `one`. */
  all(stored: readonly AnyStored[]): Promise<readonly AnyStored[]>
  /** Drops the kept results. */
  forget(): void
}

export type ConvertedObjectsNeeds = {
  readonly apiVersion: string
  /** Converts objects that have other versions, by one call. */
  readonly together: (objects: readonly AnyStored[]) => Promise<readonly AnyStored[]>
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Called when results were kept. */
  readonly onKept: () => void
}

/** Limits of one call. A larger object is sent alone. A value has at least two bytes, so the response stays within its limits. */
const mostObjects = 100
const mostBytes = 96 * 1024

export function convertedObjects({ apiVersion, together, clock, onKept }: ConvertedObjectsNeeds): ConvertedObjects {
  const kept = keptResults()
  const known = (stored: AnyStored) => (stored['apiVersion'] === apiVersion ? stored : kept.get(stored))
  const calls = callsUnderWay(async (batch) => {
    const converted = await together(batch)
    for (const [index, stored] of batch.entries()) kept.add(stored, resultOf(converted, index))
    onKept()
    return converted
  })
  const one = async (stored: AnyStored): Promise<AnyStored> => {
    for (;;) {
      const found = known(stored)
      if (found !== undefined) return found
      const share = calls.of(stored) ?? calls.begin([stored])
      try {
        return await sharedResult(share)
      } catch (error) {
        // Another object may be the reason.
        if (share.isAlone) throw error
      }
    }
  }
  return {
    get bytes() {
      return kept.bytes
    },
    known,
    one,
    async all(stored) {
      const pause = pauses(clock)
      const found = new Map<AnyStored, () => AnyStored | Promise<AnyStored>>()
      let batch: AnyStored[] = []
      let length = 0
      const send = () => {
        // Another reader may have begun with some of them.
        const open = batch.filter((object) => calls.of(object) === undefined)
        if (open.length > 0) calls.begin(open)
        for (const object of open) {
          const share = calls.of(object)
          if (share !== undefined) found.set(object, () => sharedResult(share))
        }
        batch = []
        length = 0
      }
      for (const object of stored) {
        await pause()
        const now = known(object)
        if (now !== undefined) found.set(object, () => now)
        if (now !== undefined || calls.of(object) !== undefined) continue
        const size = jsonOf(object).length
        if (batch.length === mostObjects || length + size > mostBytes) send()
        batch.push(object)
        length += size
      }
      send()
      return Promise.all(stored.map((object) => found.get(object)?.() ?? one(object)))
    },
    forget: kept.forget,
  }
}

/** A call under way, and the place of an object in it. */
type Share = { readonly result: Promise<readonly AnyStored[]>; readonly index: number; readonly isAlone: boolean }

async function sharedResult({ result, index }: Share): Promise<AnyStored> {
  return resultOf(await result, index)
}

function resultOf(converted: readonly AnyStored[], index: number): AnyStored {
  const object = converted[index]
  if (object === undefined) throw new RangeError('A converted object is missing')
  return object
}

function callsUnderWay(call: (batch: readonly AnyStored[]) => Promise<readonly AnyStored[]>) {
  const shares = new Map<AnyStored, Share>()
  return {
    of: (stored: AnyStored) => shares.get(stored),
    /** The share of the first object. */
    begin(batch: readonly AnyStored[]): Share {
      const result = call(batch).finally(() => {
        for (const stored of batch) if (shares.get(stored)?.result === result) shares.delete(stored)
      })
      result.catch(() => undefined) // each reader awaits it
      const isAlone = batch.length === 1
      for (const [index, stored] of batch.entries()) shares.set(stored, { result, index, isAlone })
      return { result, index: 0, isAlone }
    },
  }
}

/** The results for as long as the store has the objects that they were made of. */
function keptResults() {
  let results = new WeakMap<AnyStored, AnyStored>()
  /** By uid: of its latest result. */
  const sizes = new Map<string, number>()
  let bytes = 0
  return {
    get bytes() {
      return bytes
    },
    get: (stored: AnyStored) => results.get(stored),
    add(stored: AnyStored, converted: AnyStored) {
      const { uid } = stored.metadata
      const size = heapSizeOf(converted)
      bytes += size - (sizes.get(uid) ?? 0)
      sizes.set(uid, size)
      results.set(stored, converted)
    },
    forget() {
      results = new WeakMap()
      sizes.clear()
      bytes = 0
    },
  }
}
