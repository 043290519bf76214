/**
 * Admission by policies: each policy with each of its bindings that match, and each object of parameters
 * (apiserver/pkg/admission/plugin/policy/validating/dispatcher.go).
 */
import type { MatchResources } from '../../../api/admission/match-resources.ts'
import { ApiError, type StatusReason } from '../../../api/api-error.ts'
import { clipped } from '../../../api/problem.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import type { AccessNeeds } from '../expressions/access-questions.ts'
import { compiledCache } from '../expressions/compiled-cache.ts'
import { admissionVariables, outOfBudget, type RequestWork, requestWork } from '../expressions/expression-run.ts'
import { forbid } from '../handlers/resource-request.ts'
import type { KindRegistry, KindStrategy, ResourceRoute } from '../handlers/strategy.ts'
import { inPieces } from '../handlers/turns.ts'
import type { Operation, ReviewedWrite, WebhookGate } from '../handlers/webhook-gate.ts'
import { requestFacts } from '../webhooks/admission-review.ts'
import { namespaceLabels } from '../webhooks/webhook-admission.ts'
import { accessOf } from '../webhooks/webhook-conditions.ts'
import { type ConvertedForms, formOf, type ReviewedForm } from '../webhooks/webhook-form.ts'
import type { MatchFacts } from '../webhooks/webhook-match.ts'
import { type CompiledPolicy, compilePolicy, expressionsOf } from './compiled-policy.ts'
import { namespaceFacts } from './namespace-facts.ts'
import {
  failedJudgement,
  type JudgementInput,
  type PolicyDenial,
  type PolicyJudgement,
  policyJudgement,
} from './policy-judgement.ts'
import { isExemptFromPolicies, matchedForm, mayMatch } from './policy-match.ts'
import { paramStrategy, paramsOf } from './policy-params.ts'
import { PolicyTrail, policyChecks } from './policy-trail.ts'

export type PolicyAdmissionNeeds = AccessNeeds & {
  readonly store: Pick<Store, 'get' | 'list'>
  readonly kinds: Pick<KindRegistry, 'served' | 'ofKind'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly registry: MetricsRegistry
  /** undefined: no kind needs a webhook between its versions. */
  readonly conversions?: ConvertedForms | undefined
  /** That all expressions of one write may take; undefined: those of about a second. */
  readonly requestSteps?: number
}

export type PolicyGate = Pick<WebhookGate, 'concerns' | 'validate'>

type Policy = StoredObject<'validatingadmissionpolicies'>
type Binding = StoredObject<'validatingadmissionpolicybindings'>
type BoundPolicy = { readonly policy: Policy; readonly bindings: readonly Binding[] }

/** A denial; `binding` undefined: the policy itself does not work. */
type Denial = {
  readonly policy: Policy
  readonly binding?: Binding
  readonly message: string
  readonly reason?: string
}

/** What is the same for all policies of a write. */
type Judged = {
  readonly write: ReviewedWrite
  readonly facts: MatchFacts
  readonly others: readonly KindStrategy[]
  readonly access: ReturnType<typeof accessOf>
  readonly namespaceObject: unknown
  readonly work: RequestWork
  readonly trail: PolicyTrail
}

export function policyAdmission(needs: PolicyAdmissionNeeds): PolicyGate {
  const { store, kinds, clock, registry, requestSteps } = needs
  const checks = policyChecks(registry)
  const cache = compiledCache<Promise<CompiledPolicy>>()
  const compiled = ({ metadata, spec = {} }: Policy) => {
    const characters = expressionsOf(spec).reduce((sum, { source }) => sum + source.length, 0)
    const key = `${metadata.uid} ${metadata.generation ?? 0}`
    return cache.get(key, characters, () => inPieces(withoutNames(compilePolicy(spec)), clock))
  }
  const othersOf = ({ resource }: ResourceRoute) =>
    kinds.served.filter((one) => one.id === resource.id && one !== resource)
  const bound = async (route: ResourceRoute, operation: Operation): Promise<readonly BoundPolicy[]> => {
    if (isExemptFromPolicies(route)) return []
    const { items: bindings } = await store.list('validatingadmissionpolicybindings')
    if (bindings.length === 0) return []
    const byPolicy = new Map<string, Binding[]>()
    for (const binding of bindings) {
      const name = binding.spec?.policyName ?? ''
      const own = byPolicy.get(name)
      if (own === undefined) byPolicy.set(name, [binding])
      else own.push(binding)
    }
    const { items: policies } = await store.list('validatingadmissionpolicies')
    const others = othersOf(route)
    return policies.flatMap((policy) => {
      const own = byPolicy.get(policy.metadata.name) ?? []
      const match: MatchResources = policy.spec?.matchConstraints ?? {}
      return own.length > 0 && mayMatch(match, route, operation, others) ? [{ policy, bindings: own }] : []
    })
  }

  return {
    concerns: async (route, operation) => (await bound(route, operation)).length > 0,
    async validate(write) {
      const policies = await bound(write.route, write.operation)
      if (policies.length === 0) return
      const trail = new PolicyTrail(write.trail, checks)
      const judged: Judged = {
        write,
        facts: { object: write.object, old: write.old, namespace: await namespaceLabels(write, store) },
        others: othersOf(write.route),
        access: accessOf(write, needs),
        namespaceObject: await namespaceFacts(write, store),
        work: requestWork(clock, write.startedMs, requestSteps),
        trail,
      }
      const denials: Denial[] = []
      for (const one of policies) {
        await judged.work.pause()
        denials.push(...(await deniedBy(one, judged, needs, compiled)))
        trail.publish(one.policy.metadata.name)
      }
      const [first] = denials
      if (first !== undefined) throw denied(first, write)
    },
  }
}

/** In pieces of no value. */
function* withoutNames<T>(work: Generator<unknown, T>): Generator<undefined, T> {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    yield
  }
}

async function deniedBy(
  { policy, bindings }: BoundPolicy,
  judged: Judged,
  needs: PolicyAdmissionNeeds,
  compiled: (policy: Policy) => Promise<CompiledPolicy>,
): Promise<readonly Denial[]> {
  const { write, facts, others } = judged
  const { spec = {} } = policy
  const resource = matchedForm(spec.matchConstraints ?? {}, write, facts, others)
  if (resource === undefined) return []
  const fails = spec.failurePolicy !== 'Ignore'
  const kind = paramStrategy(spec.paramKind, needs)
  if (typeof kind === 'string') return fails ? [{ policy, message: `failed to configure policy: ${kind}` }] : []
  let form: Promise<ReviewedForm | string> | undefined
  const formOnce = () => {
    form ??= policyForm(write, resource, needs.conversions)
    return form
  }
  const denials: Denial[] = []
  for (const binding of bindings) {
    denials.push(...(await deniedByBinding({ policy, binding, kind, formOnce }, judged, needs, compiled)))
  }
  return denials
}

type BoundOnce = {
  readonly policy: Policy
  readonly binding: Binding
  readonly kind: KindStrategy | undefined
  /** The object in the version of the policy, converted when the first binding needs it. */
  readonly formOnce: () => Promise<ReviewedForm | string>
}

async function deniedByBinding(
  { policy, binding, kind, formOnce }: BoundOnce,
  judged: Judged,
  needs: PolicyAdmissionNeeds,
  compiled: (policy: Policy) => Promise<CompiledPolicy>,
): Promise<readonly Denial[]> {
  const { write, facts, others } = judged
  const { spec = {} } = policy
  const { matchResources, paramRef } = binding.spec ?? {}
  if (matchResources !== undefined && matchedForm(matchResources, write, facts, others) === undefined) return []
  const misconfigured = (why: string): readonly Denial[] =>
    spec.failurePolicy === 'Ignore' ? [] : [{ policy, binding, message: `failed to configure binding: ${why}` }]
  const params = await paramsOf(kind, paramRef, namespaceOf(write), needs)
  if (typeof params === 'string') return misconfigured(params)
  const form = await formOnce()
  if (typeof form === 'string') return misconfigured(form)
  const denials: Denial[] = []
  for (const param of params) {
    await judged.work.pause()
    const isAffordable = judged.work.steps > 0
    const judgement = isAffordable
      ? await policyJudgement(inputOf(spec, await compiled(policy), judged, form, param))
      : failedJudgement(spec, outOfBudget)
    denials.push(...followed(policy, binding, judgement, judged.trail))
    if (!isAffordable) break
  }
  return denials
}

async function policyForm(
  write: ReviewedWrite,
  resource: KindStrategy,
  conversions: ConvertedForms | undefined,
): Promise<ReviewedForm | string> {
  try {
    return await formOf(write, write.object, resource, conversions)
  } catch (error) {
    return `failed to convert object version: ${messageOf(error)}`
  }
}

function inputOf(
  spec: JudgementInput['spec'],
  compiled: CompiledPolicy,
  { write, access, namespaceObject, work }: Judged,
  form: ReviewedForm,
  params: unknown,
): JudgementInput {
  const values = { object: form.object, oldObject: form.old, request: requestFacts(write, form), params }
  return {
    spec,
    compiled,
    work,
    variables: {
      conditions: admissionVariables(values, access),
      validations: admissionVariables({ ...values, namespaceObject }, access),
      texts: admissionVariables({ ...values, namespaceObject }, undefined),
    },
  }
}

/** As the attributes of a request have it: a Namespace that exists is in itself. */
function namespaceOf({ route, operation, name }: ReviewedWrite): string {
  return route.resource.id === 'namespaces' && operation !== 'CREATE' ? name : route.namespace
}

const enforcement: { readonly [action: string]: 'deny' | 'warn' | 'audit' | undefined } = {
  Deny: 'deny',
  Warn: 'warn',
  Audit: 'audit',
}

/** Takes the actions of the binding, and returns what denies the write. */
function followed(
  policy: Policy,
  binding: Binding,
  { denials, annotations, failures }: PolicyJudgement,
  trail: PolicyTrail,
): readonly Denial[] {
  const { validationActions = [] } = binding.spec ?? {}
  const names = { policy: policy.metadata.name, binding: binding.metadata.name }
  const act = (action: string, { message, index }: PolicyDenial) => {
    if (action === 'Audit') trail.failure({ message, ...names, expressionIndex: index, validationActions })
    if (action === 'Warn') {
      trail.warn(
        `Validation failed for ValidatingAdmissionPolicy '${names.policy}' with binding '${names.binding}': ${message}`,
      )
    }
    const enforced = enforcement[action]
    if (enforced !== undefined) trail.count(names.policy, names.binding, message, enforced)
  }
  for (const denial of denials) for (const action of validationActions) act(action, denial)
  const result = denials.flatMap(({ message, reason }): Denial[] =>
    validationActions
      .filter((action) => action === 'Deny')
      .map(() => ({ policy, binding, message, ...(reason && { reason }) })),
  )
  for (const [key, value] of annotations) trail.add(key, value)
  return [...result, ...failures.map((message) => ({ policy, binding, message }))]
}

const reasons: { readonly [reason: string]: StatusReason } = {
  ...{ Forbidden: 'Forbidden', Unauthorized: 'Unauthorized', RequestEntityTooLarge: 'RequestEntityTooLarge' },
}
const longestDenial = 8 * 1024

function denied({ policy, binding, message, reason = 'Invalid' }: Denial, { route, name }: ReviewedWrite): ApiError {
  const of = binding === undefined ? '' : ` with binding '${binding.metadata.name}'`
  const text = clipped(
    `ValidatingAdmissionPolicy '${policy.metadata.name}'${of} denied request: ${message}`,
    longestDenial,
  )
  const refusal = forbid(route.resource, name || 'Unknown', text, longestDenial)
  const causes = [{ reason: '', message: text }]
  return new ApiError(reasons[reason] ?? 'Invalid', refusal.message, { ...refusal.details, causes })
}
