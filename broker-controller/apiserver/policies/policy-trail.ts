/** What policies have for the user and for the audit log. */
import { clipped } from '../../../api/problem.ts'
import type { Counter, MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { outOfBudget } from '../expressions/expression-run.ts'
import type { WebhookTrail } from '../handlers/webhook-gate.ts'

/** The value of the annotation of a failed validation (ValidationFailureValue). */
export type ValidationFailure = {
  readonly message: string
  readonly policy: string
  readonly binding: string
  readonly expressionIndex: number
  readonly validationActions: readonly string[]
}

const failureKey = 'validation.policy.admission.k8s.io/validation_failure'
/** Length of an annotation (maxAuditAnnotationValueLength). */
const longestValue = 10 * 1024
const longestWarning = 1024
const mostAnnotations = 100

/** Validations that did not hold, by what followed. */
export type PolicyChecks = Counter<'policy' | 'policy_binding' | 'error_type' | 'enforcement_action'>

/** Registers the counter, under the name of kube-apiserver: once for a registry. */
export function policyChecks(registry: Pick<MetricsRegistry, 'counter'>): PolicyChecks {
  return registry.counter({
    name: 'apiserver_validating_admission_policy_check_total',
    help: 'Validations of admission policies that did not hold, by policy, binding, kind of error and action.',
    labelNames: ['policy', 'policy_binding', 'error_type', 'enforcement_action'],
  })
}

/** The kinds of errors in Kubernetes' metric (ErrorType in policy/validating/errors.go). */
function errorType(message: string): string {
  if (message.startsWith('compilation')) return 'compile_error'
  return message === outOfBudget ? 'out_of_budget' : 'invalid_error'
}

export class PolicyTrail {
  readonly #trail: WebhookTrail
  readonly #checks: PolicyChecks
  readonly #written = new Set<string>()
  /** Values of the present policy, by key. */
  #values = new Map<string, Set<string>>()

  constructor(trail: WebhookTrail, checks: PolicyChecks) {
    this.#trail = trail
    this.#checks = checks
  }

  count(policy: string, binding: string, message: string, action: 'deny' | 'warn' | 'audit'): void {
    const error_type = errorType(message)
    this.#checks.inc({ policy, policy_binding: binding, error_type, enforcement_action: action })
  }

  /** Without what would end a header. */
  warn(text: string): void {
    this.#trail.warn(clipped(text, longestWarning).replaceAll(/[^\P{Cc}\t]/gu, ' '))
  }

  failure(failure: ValidationFailure): void {
    this.#annotate(failureKey, JSON.stringify([failure]))
  }

  /** The same key may have a value for each binding and each object of parameters. */
  add(key: string, value: string): void {
    const values = this.#values.get(key) ?? new Set()
    this.#values.set(key, values)
    if (values.size < mostAnnotations) values.add(clipped(value, longestValue))
  }

  /** Writes the annotations of the policy. */
  publish(policy: string): void {
    for (const [key, values] of this.#values) this.#annotate(`${policy}/${key}`, [...values].join(', '))
    this.#values = new Map()
  }

  /** The first value of a key stays, as in Kubernetes. */
  #annotate(key: string, value: string): void {
    if (this.#written.has(key) || this.#written.size >= mostAnnotations) return
    this.#written.add(key)
    this.#trail.annotate(key, clipped(value, longestValue))
  }
}
