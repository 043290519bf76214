/**
 * Admission by webhooks: mutating ones one after another, by the name of their configuration and in its order, once more where a
 * later one changed the object; then the validating ones together
 * (staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go, validating/dispatcher.go).
 */
import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Webhook } from '../../../api/admission/webhook.ts'
import { ApiError } from '../../../api/api-error.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { isObject } from '../../../api/text/json.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { Store } from '../../store/store.ts'
import type { Authorizer } from '../handlers/authorizer.ts'
import type { KindRegistry, KindStrategy, ResourceRoute } from '../handlers/strategy.ts'
import type { Operation, ReviewedWrite, WebhookGate } from '../handlers/webhook-gate.ts'
import { jsonPatch } from '../wire/json-patch.ts'
import { reviewRequest, verdictOf, type WebhookVerdict } from './admission-review.ts'
import { waitingRequests } from './waiting-requests.ts'
import type { WebhookCaller } from './webhook-call.ts'
import { webhookConditions } from './webhook-conditions.ts'
import { denial } from './webhook-denial.ts'
import { type ConvertedForms, formOf, writtenForm } from './webhook-form.ts'
import { chosenForm, isExemptFromWebhooks, isSelected } from './webhook-match.ts'
import { type WebhookMetrics, webhookMetrics } from './webhook-metrics.ts'

export type WebhookAdmissionNeeds = {
  readonly store: Pick<Store, 'get' | 'list'>
  readonly kinds: Pick<KindRegistry, 'served'>
  readonly access: Pick<Authorizer, 'decide'>
  readonly caller: Pick<WebhookCaller, 'call'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly registry: MetricsRegistry
  readonly limited?: Pick<LimitedLog, 'warn'> | undefined
  readonly limits?: WebhookLimits
  /** undefined: no kind needs a webhook between its versions. */
  readonly conversions?: ConvertedForms | undefined
}

export type WebhookLimits = {
  /** For all webhooks of one request; the request has as long in kube-apiserver (--request-timeout). */
  readonly requestMs: number
  /** Places for requests that wait for webhooks, those of administrators not counted. */
  readonly requestsAtOnce: number
}

export const defaultWebhookLimits: WebhookLimits = { requestMs: 60_000, requestsAtOnce: 40 }

type Type = 'admit' | 'validating'
/** A webhook that a rule chose, and the form in which it is sent the write. */
type Chosen = { readonly webhook: Webhook; readonly resource: KindStrategy }
type Decided = Exclude<WebhookVerdict, { readonly failed: string }>

/** Validating webhooks that are called for one write at a time. */
const callsAtOnce = 8

export function webhookAdmission(needs: WebhookAdmissionNeeds): WebhookGate {
  const { store, kinds, registry, clock, limits = defaultWebhookLimits } = needs
  const waiting = waitingRequests('admission webhooks', limits.requestsAtOnce)
  const metrics = webhookMetrics(registry)
  const all = async (type: Type): Promise<readonly Webhook[]> => {
    const { items } = await store.list(
      type === 'admit' ? 'mutatingwebhookconfigurations' : 'validatingwebhookconfigurations',
    )
    return items.flatMap(({ webhooks = [] }): readonly Webhook[] => webhooks)
  }
  const chosen = async (type: Type, route: ResourceRoute, operation: Operation): Promise<readonly Chosen[]> => {
    if (isExemptFromWebhooks(route)) return []
    const others = kinds.served.filter((one) => one.id === route.resource.id && one !== route.resource)
    return (await all(type)).flatMap((webhook) => {
      const resource = chosenForm(webhook, route, operation, others)
      return resource === undefined ? [] : [{ webhook, resource }]
    })
  }
  const conditions = webhookConditions(needs)
  const callOne = (one: Chosen, type: Type, write: ReviewedWrite, object: unknown, at: string) =>
    judged(one, type, write, object, at, needs, metrics)

  const mutated = async (webhooks: readonly Chosen[], write: ReviewedWrite) => {
    const namespace = await namespaceLabels(write, store)
    const matches = conditions.of(write)
    let object: unknown = write.object
    /** The object as it was after the call of this webhook. */
    const after = new Map<Chosen, unknown>()
    const run = async (one: Chosen, round: number, index: number) => {
      if (!isSelected(one.webhook, { object: asObject(object), old: write.old, namespace })) return
      if (!(await matches(one.webhook, () => formOf(write, object, one.resource, needs.conversions)))) return
      const decided = await callOne(one, 'admit', write, object, `round_${round}_index_${index}`)
      object = await patched(one, write, object, decided, needs.conversions)
      // A patch may take as long as what is done with its result.
      if (object !== write.object) await nextTurn()
      after.set(one, object)
    }
    for (const [index, one] of webhooks.entries()) await run(one, 0, index)
    for (const [index, one] of webhooks.entries()) {
      const isChanged = after.has(one) && after.get(one) !== object
      if (one.webhook.reinvocationPolicy === 'IfNeeded' && isChanged) await run(one, 1, index)
    }
    return object
  }
  const validated = async (webhooks: readonly Chosen[], write: ReviewedWrite) => {
    const facts = { object: write.object, old: write.old, namespace: await namespaceLabels(write, store) }
    const matches = conditions.of(write)
    const selected: Chosen[] = []
    for (const one of webhooks) {
      const form = () => formOf(write, write.object, one.resource, needs.conversions)
      if (isSelected(one.webhook, facts) && (await matches(one.webhook, form))) selected.push(one)
    }
    const refusals = new Map<number, unknown>()
    await inParallel(selected.entries(), callsAtOnce, async ([index, one]) => {
      await callOne(one, 'validating', write, write.object, `round_0_index_${index}`).catch((error: unknown) => {
        refusals.set(index, error)
      })
    })
    const first = Math.min(...refusals.keys())
    if (refusals.size > 0) throw refusals.get(first)
  }

  return {
    nowMs: clock.monotonicMs,
    async concerns(route, operation) {
      const [mutating, validating] = [
        await chosen('admit', route, operation),
        await chosen('validating', route, operation),
      ]
      return mutating.length + validating.length > 0
    },
    async mutate(write) {
      const webhooks = await chosen('admit', write.route, write.operation)
      if (webhooks.length === 0) return write.object
      return waiting.whileCounted(write.identity, namesOf(webhooks), () => mutated(webhooks, write))
    },
    async validate(write) {
      const webhooks = await chosen('validating', write.route, write.operation)
      if (webhooks.length > 0) {
        await waiting.whileCounted(write.identity, namesOf(webhooks), () => validated(webhooks, write))
      }
    },
  }
}

function namesOf(webhooks: readonly Chosen[]): readonly string[] {
  return webhooks.map(({ webhook }) => webhook.name)
}

/** undefined: the webhook failed and its policy is to ignore that. Throws the ApiError of a refusal or of a failure. */
async function judged(
  { webhook, resource }: Chosen,
  type: Type,
  write: ReviewedWrite,
  object: unknown,
  at: string,
  { caller, clock, limited, limits = defaultWebhookLimits, conversions }: WebhookAdmissionNeeds,
  metrics: WebhookMetrics,
): Promise<Decided | undefined> {
  const { name, clientConfig: client, failurePolicy = 'Fail' } = webhook
  const { operation, trail, signal } = write
  const leftMs = write.startedMs + limits.requestMs - clock.monotonicMs()
  // As kube-apiserver, whatever the failurePolicy.
  if (leftMs <= 0) throw new ApiError('Timeout', 'request did not complete within requested timeout')
  const timeoutSeconds = Math.min(webhook.timeoutSeconds ?? 10, Math.ceil(leftMs / 1000))
  const uid = randomUUID()
  const body = JSON.stringify(reviewRequest(write, await formOf(write, object, resource, conversions), uid))
  const startedMs = clock.monotonicMs()
  const verdict = await caller.call({ client, timeoutSeconds, body, signal }).then(
    (answer) => verdictOf(answer, uid, type === 'admit'),
    (error: unknown): WebhookVerdict => ({ failed: `failed to call webhook: ${messageOf(error)}` }),
  )
  const tookMs = clock.monotonicMs() - startedMs
  const labels = { name, type, operation }
  if ('failed' in verdict) {
    const isIgnored = failurePolicy === 'Ignore'
    metrics.called(labels, { rejected: !isIgnored, code: 0, tookMs })
    const message = `failed calling webhook ${JSON.stringify(name)}: ${verdict.failed}`
    limited?.warn(name, 'Admission webhook failed', {
      webhook: name,
      operation,
      failurePolicy,
      because: verdict.failed,
    })
    if (!isIgnored) {
      metrics.rejected(labels, 'calling_webhook_error', 500)
      throw new ApiError('InternalError', `Internal error occurred: ${message}`, {
        causes: [{ reason: '', message }],
      })
    }
    metrics.failedOpen({ name, type })
    const kind = type === 'admit' ? 'mutation' : 'validating'
    trail.annotate(`failed-open.${kind}.webhook.admission.k8s.io/${at}`, name)
    return undefined
  }
  for (const warning of verdict.warnings) trail.warn(warning)
  for (const [key, value] of verdict.annotations) trail.annotate(`${name}/${key}`, value)
  metrics.called(labels, { rejected: !verdict.allowed, code: verdict.allowed ? 200 : verdict.status.code, tookMs })
  if (verdict.allowed) return verdict
  metrics.rejected(labels, 'no_error', verdict.status.code)
  throw denial(name, verdict.status)
}

/** The object after the patch of a webhook: the same object where it has none, or one that changes nothing. */
async function patched(
  { webhook: { name }, resource }: Chosen,
  write: ReviewedWrite,
  object: unknown,
  decided: Decided | undefined,
  conversions: ConvertedForms | undefined,
): Promise<unknown> {
  if (decided === undefined || !decided.allowed) return object
  const { patch } = decided
  if (Array.isArray(patch) && patch.length === 0) return object
  if (object === undefined) {
    const because = 'admission webhook attempted to modify the object, which is not supported for this operation'
    throw new ApiError('InternalError', `Internal error occurred: ${because}`)
  }
  const { object: shown } = await formOf(write, object, resource, conversions)
  try {
    const result = jsonPatch(shown, patch)
    return equalJSON(result, shown) ? object : await writtenForm(result, resource, write, conversions)
  } catch (cause) {
    const because = `admission webhook ${JSON.stringify(name)} returned a patch that does not apply: ${messageOf(cause)}`
    throw new ApiError('InternalError', `Internal error occurred: ${because}`, undefined, { cause })
  }
}

/** A Namespace is chosen by its own labels; objects of the cluster by none. */
export async function namespaceLabels({ route, object, old }: ReviewedWrite, store: Pick<Store, 'get'>) {
  const { resource, namespace } = route
  if (resource.id === 'namespaces') return (object ?? old)?.metadata.labels ?? {}
  if (!resource.namespaced) return undefined
  return (await store.get('namespaces', { namespace: '', name: namespace }))?.metadata.labels ?? {}
}

/** What a patch made of the object may have any form until it is decoded. */
function asObject(value: unknown): AnyObject | undefined {
  return isObject(value) && isObject(value['metadata']) ? (value as unknown as AnyObject) : undefined
}
