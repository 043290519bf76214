/** Conversion by the webhooks of definitions: who may wait for them, and what is kept of their answers. */
import type { Identity } from '../../../api/identity.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { apiVersionOf } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { ConversionGate, KindConversion } from '../handlers/conversion/conversion-gate.ts'
import type { DefinedKind } from '../handlers/strategy.ts'
import { waitingRequests } from '../webhooks/waiting-requests.ts'
import { type ConversionCallNeeds, conversionCalls } from './conversion-calls.ts'
import { type ConvertedObjects, convertedObjects } from './converted-objects.ts'
import { convertedStore } from './converted-store.ts'

export type WebhookConversionNeeds = Omit<ConversionCallNeeds, 'clock'> & {
  readonly clock: Clock
  readonly limits?: ConversionLimits
}

export type ConversionLimits = {
  /** Heap memory for kept converted objects of all kinds. */
  readonly keptBytes: number
  /** Places for requests that wait for conversion webhooks, those of administrators not counted. */
  readonly requestsAtOnce: number
}

const defaultConversionLimits: ConversionLimits = { keptBytes: 16 * 1024 * 1024, requestsAtOnce: 40 }

/** Converted objects that no client reads for this long are dropped. */
const idleMs = 5 * 60_000
const sweepEveryMs = 60_000

/** Who waits where no client does: a controller of this process. */
const controllers = { user: '', groups: [] }

/** `close` ends the calls under way. */
export function webhookConversions(needs: WebhookConversionNeeds): ConversionGate & { close(): void } {
  const { clock, limits = defaultConversionLimits } = needs
  const closing = new AbortController()
  const together = conversionCalls(needs, closing.signal)
  const waiting = waitingRequests('conversion webhooks', limits.requestsAtOnce)
  const views = keptViews(limits.keptBytes, clock, closing.signal)
  const waitingFor = ({ definition }: KindConversion, identity: Pick<Identity, 'user' | 'groups'> = controllers) => {
    return <T>(work: () => Promise<T>) => waiting.whileCounted(identity, [definition], work)
  }
  return {
    storeOf(kind, store, identity) {
      const { defined } = kind
      const conversion = defined?.conversion
      if (defined === undefined || conversion === undefined) return store
      const apiVersion = apiVersionOf(kind)
      const make = (onKept: () => void) =>
        convertedObjects({
          apiVersion,
          together: (objects) => together(objects, apiVersion, conversion),
          clock,
          onKept,
        })
      const { storedVersion } = conversion
      return convertedStore({
        kind,
        store,
        objects: views.of(defined, make),
        storedVersion,
        inStoredVersion: (object) => oneOf(together([object], storedVersion, conversion)),
        wait: waitingFor(conversion, identity),
        clock,
      })
    },
    async converted(objects, kind, apiVersion) {
      const conversion = kind.defined?.conversion
      if (conversion === undefined || apiVersion === apiVersionOf(kind)) return objects
      return waitingFor(conversion)(() => together(objects, apiVersion, conversion))
    },
    close: () => closing.abort('The controller stops'),
  }
}

async function oneOf(result: Promise<readonly AnyObject[]>): Promise<AnyObject> {
  const [object] = await result
  if (object === undefined) throw new RangeError('A converted object is missing')
  return object
}

/** The converted objects of each kind and version that is read: the largest are dropped beyond `mostBytes`, and those that are idle. */
function keptViews(mostBytes: number, clock: Clock, signal: AbortSignal) {
  const views = new WeakMap<DefinedKind, ConvertedObjects>()
  /** When the view was last read. */
  const used = new Map<ConvertedObjects, number>()
  const forgetLargest = () => {
    while ([...used.keys()].reduce((sum, { bytes }) => sum + bytes, 0) > mostBytes) {
      const largest = [...used.keys()].reduce((a, b) => (b.bytes > a.bytes ? b : a))
      if (largest.bytes === 0) return
      largest.forget()
    }
  }
  const sweep = async () => {
    while (used.size > 0 && !signal.aborted) {
      await clock.sleep(sweepEveryMs, signal)
      for (const [view, readMs] of used) {
        if (clock.monotonicMs() - readMs < idleMs) continue
        view.forget()
        used.delete(view)
      }
    }
  }
  const use = (view: ConvertedObjects) => {
    const isFirst = used.size === 0
    used.set(view, clock.monotonicMs())
    if (isFirst) void sweep()
  }
  return {
    /** The converted objects of this kind. `make` creates them; it gets the function to call when results were kept. */
    of(defined: DefinedKind, make: (onKept: () => void) => ConvertedObjects): ConvertedObjects {
      const present = views.get(defined)
      if (present !== undefined) {
        use(present)
        return present
      }
      const view: ConvertedObjects = make(() => {
        use(view)
        forgetLargest()
      })
      views.set(defined, view)
      // No request reads the objects of a kind once its definition has changed.
      const end = () => {
        view.forget()
        used.delete(view)
      }
      defined.ended.addEventListener('abort', end, { once: true })
      use(view)
      return view
    },
  }
}
