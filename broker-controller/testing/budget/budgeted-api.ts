/** An API whose requests are measured, from the bytes of a body to those of the answer. */
import { type Identity, mastersGroup } from '../../../api/identity.ts'
import { commonNameOfCSR } from '../../../certs/csr-check.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { openLog } from '../../../daemon/log.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { openAuthorizer } from '../../apiserver/authorization/authorizer.ts'
import { answerRequest } from '../../apiserver/filters/answer-request.ts'
import { serviceNetwork } from '../../apiserver/handlers/service-network.ts'
import { podSecurityAdmission } from '../../apiserver/pod-security/pod-security-admission.ts'
import { podSecuritySettings } from '../../apiserver/pod-security/pod-security-settings.ts'
import { usageLedger } from '../../apiserver/quota/quota-ledger.ts'
import { parseYamlBody } from '../../apiserver/wire/yaml-body.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { eventRecorder } from '../../store/event-recorder.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { Store } from '../../store/store.ts'
import { usageBoard } from '../../usage/usage-board.ts'

/** Longer bodies are not read at all (`daemon/http`). */
export const mostBodyBytes = 3 * 2 ** 20
export const budgetAdministrator: Identity = { user: 'admin', groups: [mastersGroup] }

export type BudgetRequest = {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Behind `application/`; undefined: JSON. */
  readonly type?: string
  readonly body?: string
  /** undefined: an administrator. */
  readonly identity?: Identity
}
/** Gives the code of the answer, or what else the answer is. */
export type SendRequest = (request: BudgetRequest) => Promise<number | string>

/** Errors are printed. */
export const budgetLog = openLog({
  level: 'error',
  format: 'text',
  write: (line) => process.stderr.write(line.slice(0, 2000)),
})

/** `store`: undefined: one in memory. */
export async function budgetedApi(given: { readonly store?: Store; readonly clock?: Clock } = {}) {
  const { clock = fakeClock() } = given
  const { store = memoryStore({ clock }) } = given
  const log = budgetLog
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
  const world = { store, events: eventRecorder({ store, clock }), clock, log }
  const needs = {
    ...world,
    usage: usageBoard({ clock }),
    random: Math.random,
    parseYaml: parseYamlBody,
    services: serviceNetwork(),
    quotas: usageLedger({ store, kinds: builtInKinds, clock }),
    // Each pod and template is judged by all checks, and none is refused.
    podSecurity: podSecurityAdmission(
      { store, clock, registry: metricsRegistry() },
      podSecuritySettings({ defaults: { audit: 'restricted', warn: 'baseline' } }, []),
    ),
    commonNameOf: commonNameOfCSR,
    version: '0',
    kinds: builtInKinds,
    access: await openAuthorizer({ store, clock, log }),
    origin: { id: 'store', acceptsCheckpoints: true },
    checkpoints: { isOpen: () => true },
    metrics: async () => ({ text: '', contentType: 'text/plain' }),
    readiness: [],
  }
  const send = async ({
    method,
    path: target,
    type = 'json',
    body = '',
    identity = budgetAdministrator,
  }: BudgetRequest) => {
    const bytes = Buffer.from(body)
    if (bytes.length > mostBodyBytes) throw new Error(`A body of ${bytes.length} bytes is not read at all`)
    const [path = '', query = ''] = target.split('?')
    const validity = { validSinceMs: 0, validUntilMs: Number.POSITIVE_INFINITY }
    const { answer } = await answerRequest(
      {
        ...{ method, path },
        query: new URLSearchParams(query),
        certificate: { trusted: true, identity, serialNumber: '01', ...validity },
        headers: { 'content-type': `application/${type}` },
        readBody: async () => bytes,
        signal: new AbortController().signal,
      },
      needs,
    )
    if (answer.kind !== 'object') return answer.kind
    JSON.stringify(answer.body)
    return answer.code
  }
  /** The body of the answer, of a request whose cost does not matter. */
  return { world, send, needs, close: () => store.close() }
}
