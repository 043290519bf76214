/** Calls of conversion webhooks: a few at a time for each definition, each within the time of a call of kube-apiserver. */
import { randomUUID } from 'node:crypto'
import type { AnyObject } from '../../../api/meta.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { frozenCopy } from '../../store/frozen/frozen-copy.ts'
import type { KindConversion } from '../handlers/conversion/conversion-gate.ts'
import { pauses } from '../handlers/turns.ts'
import { prunedObject } from '../structural/pruning.ts'
import type { WebhookCaller } from '../webhooks/webhook-call.ts'
import {
  answeredObjects,
  ConversionError,
  convertedObject,
  failedText,
  knownReviewVersions,
  type Review,
  reviewText,
} from './conversion-review.ts'

export type ConversionCallNeeds = {
  readonly caller: Pick<WebhookCaller, 'call'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly registry: MetricsRegistry
  readonly limited?: Pick<LimitedLog, 'warn'> | undefined
}

/**
 * The objects in the version `apiVersion`, frozen and without what its schema does not specify, by one call. They have other versions.
 * Throws ConversionError. `signal` ends the call.
 */
export type ConvertTogether<Converted extends AnyObject = AnyObject> = (
  objects: readonly Converted[],
  apiVersion: string,
  conversion: KindConversion,
) => Promise<readonly Converted[]>

/** A call and its wait for a place, as kube-apiserver's timeout. */
const callMs = 30_000
/** Calls of one webhook at a time; others wait. */
const callsAtOnce = 4
/** Fields and list items of a response, which may have several objects. */
const mostAnswerValues = 65_536

export function conversionCalls(needs: ConversionCallNeeds, signal: AbortSignal) {
  const { clock, limited } = needs
  const metrics = conversionMetrics(needs.registry)
  const inTurn = places(callsAtOnce)
  return async <Converted extends AnyObject>(
    objects: readonly Converted[],
    apiVersion: string,
    conversion: KindConversion,
  ): Promise<readonly Converted[]> => {
    const { definition } = conversion
    const startedMs = clock.monotonicMs()
    const took = () => clock.monotonicMs() - startedMs
    try {
      const version = reviewVersionOf(objects, apiVersion, conversion)
      const review = { uid: randomUUID(), version, objects, apiVersion }
      const converted = await inTurn(definition, async () => {
        const leftMs = callMs - took()
        if (leftMs <= 0) throw callFailed(objects, 'context deadline exceeded')
        const { client } = conversion
        const answer = await answered({ client, timeoutSeconds: Math.ceil(leftMs / 1000), signal }, review, needs)
        return checked(answer, review, conversion, needs)
      })
      metrics.called(undefined, took())
      // The kind and the metadata are those of the objects.
      return converted as readonly Converted[]
    } catch (error) {
      if (error instanceof ConversionError) {
        metrics.called(error.failure, took())
        limited?.warn(definition, 'Conversion webhook failed', { definition, because: error.message })
      }
      throw error
    }
  }
}

/** Throws ConversionError where no call could succeed. */
function reviewVersionOf(
  objects: readonly AnyObject[],
  apiVersion: string,
  { schemas, reviewVersions }: KindConversion,
): string {
  const strange = [apiVersion, ...objects.map((object) => String(object['apiVersion']))].find(
    (one) => !schemas.has(one),
  )
  const version = reviewVersions.find((one) => knownReviewVersions.includes(one))
  if (version !== undefined && strange === undefined) return version
  // Its definition lost a version that objects still have.
  const because =
    version === undefined
      ? 'no supported conversion review versions'
      : `request to convert CR from an invalid group/version: ${strange}`
  throw callFailed(objects, because)
}

function callFailed(objects: readonly AnyObject[], because: string, cause?: unknown): ConversionError {
  const message = `${failedText(objects)} failed: ${because}`
  return new ConversionError('conversion_webhook_call_failure', message, { cause })
}

async function answered(
  call: Omit<Parameters<WebhookCaller['call']>[0], 'body'>,
  review: Review,
  { caller }: ConversionCallNeeds,
): Promise<unknown> {
  try {
    return await caller.call({ ...call, body: reviewText(review), mostValues: mostAnswerValues })
  } catch (cause) {
    throw callFailed(review.objects, messageOf(cause), cause)
  }
}

async function checked(
  answer: unknown,
  review: Review,
  { schemas }: KindConversion,
  { clock }: ConversionCallNeeds,
): Promise<readonly AnyObject[]> {
  const schema = schemas.get(review.apiVersion) ?? {}
  const pause = pauses(clock)
  const converted: AnyObject[] = []
  for (const [index, one] of answeredObjects(answer, review).entries()) {
    await pause()
    converted.push(frozenCopy(prunedObject(schema, convertedObject(one, review, index)) as AnyObject))
  }
  return converted
}

/** Work of each name, so many at a time, in order. */
function places(most: number) {
  const names = new Map<string, { running: number; readonly waiting: (() => void)[] }>()
  return async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const own = names.get(name) ?? { running: 0, waiting: [] }
    names.set(name, own)
    if (own.running < most) own.running += 1
    else await new Promise<void>((resolve) => own.waiting.push(resolve))
    try {
      return await work()
    } finally {
      // The next one takes this place.
      const next = own.waiting.shift()
      if (next !== undefined) next()
      else if (--own.running === 0) names.delete(name)
    }
  }
}

/** Under the names of kube-apiserver. */
function conversionMetrics(registry: MetricsRegistry) {
  const labelNames = ['result', 'failure_type']
  const total = registry.counter({
    name: 'apiserver_conversion_webhook_request_total',
    help: 'Calls of conversion webhooks, by result and kind of failure.',
    labelNames,
  })
  const duration = registry.histogram({
    name: 'apiserver_conversion_webhook_duration_seconds',
    help: 'Time that calls of conversion webhooks took.',
    labelNames,
    bounds: [0.005, 0.02, 0.1, 0.5, 2, 10, 30],
  })
  return {
    called(failure: string | undefined, tookMs: number) {
      const labels = { result: failure === undefined ? 'success' : 'failure', failure_type: failure ?? '' }
      total.inc(labels)
      duration.observe(labels, tookMs / 1000)
    },
  }
}
