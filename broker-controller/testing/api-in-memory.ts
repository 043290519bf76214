/** Requests to the API without a network: what is asked, and what is answered. */
import { type Identity, mastersGroup } from '../../api/identity.ts'
import { commonNameOfCSR } from '../../certs/csr-check.ts'
import { type MetricsRegistry, metricsRegistry } from '../../daemon/metrics-registry.ts'
import { type FakeClock, fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { openAuthorizer } from '../apiserver/authorization/authorizer.ts'
import { webhookConversions } from '../apiserver/conversion/webhook-conversions.ts'
import { answerRequest } from '../apiserver/filters/answer-request.ts'
import type { RequestNeeds } from '../apiserver/filters/api-request.ts'
import { type ControllerScales, controllerScales } from '../apiserver/handlers/controller-scales.ts'
import { serviceNetwork } from '../apiserver/handlers/service-network.ts'
import type { WebhookGate } from '../apiserver/handlers/webhook-gate.ts'
import { podSecurityAdmission } from '../apiserver/pod-security/pod-security-admission.ts'
import {
  defaultPodSecuritySettings,
  type PodSecuritySettings,
} from '../apiserver/pod-security/pod-security-settings.ts'
import { policiesBeforeWebhooks } from '../apiserver/policies/admission-gate.ts'
import { policyAdmission } from '../apiserver/policies/policy-admission.ts'
import { usageLedger } from '../apiserver/quota/quota-ledger.ts'
import { webhookAdmission } from '../apiserver/webhooks/webhook-admission.ts'
import type { WebhookCaller } from '../apiserver/webhooks/webhook-call.ts'
import type { ApiResponse } from '../apiserver/wire/answers.ts'
import { parseYamlBody } from '../apiserver/wire/yaml-body.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { eventRecorder } from '../store/event-recorder.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { type UsageBoard, usageBoard } from '../usage/usage-board.ts'

export type Document = { readonly [field: string]: unknown }
export type Got = {
  readonly code: number
  readonly body: Document
  readonly warnings: readonly string[]
  readonly retryAfterSeconds?: number | undefined
  readonly encoding: 'json' | 'yaml'
  /** In the audit log. */
  readonly annotations: { readonly [key: string]: string }
}
/** The events of a watch, until `signal` aborts. */
export type Watch = (path: string, signal: AbortSignal) => AsyncGenerator<Document>
export type Ask = (method: string, path: string, more?: Sent) => Promise<Got>
/** What a test may set of the API. */
type GivenNeed =
  | 'addressRules'
  | 'apiServices'
  | 'checkpoints'
  | 'contentProver'
  | 'extensionProxy'
  | 'extensions'
  | 'flowControl'
  | 'kinds'
  | 'lapsedWindowMs'
  | 'limited'
  | 'log'
  | 'metrics'
  | 'origin'
  | 'readiness'
  | 'replica'
  | 'revocations'
  | 'services'
  | 'storage'
  | 'tokens'
  | 'webhooks'
  | 'backups'
type Sent = {
  readonly body?: unknown
  readonly type?: string
  readonly accept?: string
  readonly as?: Identity | 'anonymous'
  /** Serial number of the client certificate. */
  readonly serialNumber?: string
  /** End of the client certificate's validity; undefined: none. */
  readonly validUntilMs?: number
  readonly headers?: { readonly [name: string]: string }
}

const admin: Identity = { user: 'admin', groups: [mastersGroup] }
export const patchTypes = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
}

/** Webhooks are not called; policies are evaluated. */
function noWebhooks({ monotonicMs }: FakeClock): WebhookGate {
  return {
    nowMs: monotonicMs,
    concerns: async () => false,
    mutate: async ({ object }) => object,
    validate: async () => undefined,
  }
}

/** An API over a store in memory, with its first namespaces. */
export async function anApi(
  t: Parameters<typeof quietLog>[0],
  {
    kinds = builtInKinds,
    podSecurity = defaultPodSecuritySettings,
    webhook,
    ...more
  }: Partial<Pick<RequestNeeds, GivenNeed>> & {
    readonly podSecurity?: PodSecuritySettings
    /** Answers the calls of all webhooks; undefined: none is called. */
    readonly webhook?: WebhookCaller['call'] | undefined
  } = {},
): Promise<{
  readonly ask: Ask
  readonly watch: Watch
  readonly needs: RequestNeeds
  readonly store: Store
  readonly clock: FakeClock
  readonly usage: UsageBoard
  readonly registry: MetricsRegistry
  readonly scales: ControllerScales
}> {
  const clock = fakeClock()
  const store = memoryStore({ clock, resources: kinds })
  for (const name of ['default', 'kube-node-lease', 'kube-system']) {
    await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  }
  const usage = usageBoard({ clock })
  const registry = metricsRegistry()
  const access = await openAuthorizer({ store, clock, log: quietLog(t) })
  const conversions = webhook && webhookConversions({ caller: { call: webhook }, clock, registry })
  const calls = webhook
    ? webhookAdmission({ store, kinds, access, caller: { call: webhook }, clock, registry, conversions })
    : noWebhooks(clock)
  const needs = {
    store,
    kinds,
    access,
    events: eventRecorder({ store, clock }),
    usage,
    clock,
    log: quietLog(t),
    random: Math.random,
    parseYaml: parseYamlBody,
    services: serviceNetwork(),
    quotas: usageLedger({ store, kinds, clock }),
    podSecurity: podSecurityAdmission({ store, clock, registry }, podSecurity),
    webhooks: policiesBeforeWebhooks(policyAdmission({ store, kinds, access, clock, registry }), calls),
    commonNameOf: commonNameOfCSR,
    version: '0.1.0',
    metrics: async () => ({ text: 'up 1\n', contentType: 'text/plain' }),
    readiness: [],
    // Nodes of most tests return what a controller sent them.
    contentProver: { isProven: () => true, isProvenRecord: () => true },
    ...(conversions && { conversions }),
    ...more,
  }
  const ask: Ask = async (
    method,
    target,
    { body, type, accept, as = admin, serialNumber = '01', validUntilMs = Infinity, headers = {} } = {},
  ) => {
    const [path = '', query = ''] = target.split('?')
    const certificate =
      as === 'anonymous' ? undefined : { trusted: true, identity: as, validSinceMs: 0, validUntilMs, serialNumber }
    const { answer, sender } = await answerRequest(
      {
        method,
        path,
        query: new URLSearchParams(query),
        certificate,
        headers: { accept, 'content-type': type, ...headers },
        readBody: async () => bytesOf(body),
        signal: new AbortController().signal,
      },
      needs,
    )
    const document = await documentOf(answer)
    const { warnings = [], retryAfterSeconds, encoding = 'json' } = answer.kind === 'object' ? answer : {}
    const { annotations = {} } = sender
    const code = 'code' in answer ? answer.code : 200
    return { code, body: document, warnings, retryAfterSeconds, encoding, annotations }
  }
  const watch: Watch = async function* (target, signal) {
    const [path = '', query = ''] = target.split('?')
    const certificate = { trusted: true, identity: admin, validSinceMs: 0, validUntilMs: Infinity, serialNumber: '01' }
    const request = { method: 'GET', path, query: new URLSearchParams(query), certificate, headers: {}, signal }
    const { answer } = await answerRequest({ ...request, readBody: async () => Buffer.alloc(0) }, needs)
    if (answer.kind !== 'stream') throw new Error(`not a watch: ${JSON.stringify(answer)}`)
    for await (const piece of answer.pieces) yield JSON.parse(Buffer.from(piece).toString()) as Document
  }
  return { ask, watch, needs, store, clock, usage, registry, scales: controllerScales(needs, kinds) }
}

async function documentOf(answer: ApiResponse): Promise<Document> {
  switch (answer.kind) {
    case 'text':
      return { text: answer.text }
    case 'document':
      return JSON.parse(answer.bytes.toString()) as Document
    case 'object':
      return JSON.parse(JSON.stringify(answer.body)) as Document
    case 'pieces': {
      let text = ''
      for await (const piece of answer.pieces) text += piece
      return JSON.parse(text) as Document
    }
    default:
      throw new Error('a stream')
  }
}

function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''))
}
