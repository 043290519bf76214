/**
 * Evaluates the expressions about one write, within the budgets of Kubernetes and one of our own for the whole request
 * (apiserver/pkg/admission/plugin/cel/activation.go). In slices: expressions are those of clients, and may take long.
 */
import { ApiError } from '../../../api/api-error.ts'
import type { Clock } from '../../../daemon/clock.ts'
import {
  type AskAccess,
  type AskedResource,
  AuthorizerValue,
  ResourceCheckValue,
} from '../../cel/functions/authorization.ts'
import { Machine, type Variables } from '../../cel/machine.ts'
import { jsonValue } from '../../cel/values/json-values.ts'
import { CostExceededError, Meter } from '../../cel/values/meter.ts'
import { CelFailure, type CelOutcome, Deferred, LazyObject } from '../../cel/values/value.ts'
import { pauses } from '../handlers/turns.ts'
import type { AdmissionExpression, ExpressionProblem } from './admission-expression.ts'
import { resourceCheckName } from './admission-variables.ts'

/** Cost of one evaluation (celconfig.PerCallLimit). */
const mostCallCost = 1_000_000
/** Cost of all conditions of a webhook or policy (celconfig.RuntimeCELCostBudgetMatchConditions). */
export const conditionBudget = 2_500_000
/** Cost of a policy's validations with one binding and one parameter object (celconfig.RuntimeCELCostBudget). */
export const policyBudget = 10_000_000
/** Steps between two looks at the clock: about a millisecond. */
const slice = 20_000
/** Steps for all expressions of one request, whatever they cost: about a second. */
const mostRequestSteps = 40_000_000

/** Steps for what is around an evaluation, and around all that share a budget. */
const evaluationSteps = 100
const runSteps = 2_000

/** What the expressions of a request may still take. */
export type RequestWork = { steps: number; readonly pause: () => Promise<void> }

/** The request has as long as in kube-apiserver (--request-timeout). */
const mostRequestMs = 60_000

/** `startedMs`: by the monotonic clock. After a minute `pause` throws Timeout. */
export function requestWork(
  { monotonicMs }: Pick<Clock, 'monotonicMs'>,
  startedMs: number,
  steps = mostRequestSteps,
): RequestWork {
  const pause = pauses({ monotonicMs })
  return {
    steps,
    async pause() {
      await pause()
      if (monotonicMs() - startedMs <= mostRequestMs) return
      throw new ApiError('Timeout', 'request did not complete within requested timeout')
    },
  }
}

export const outOfBudget =
  'validation failed due to running out of cost budget, no further validation rules will be run'

export class OutOfBudgetError extends Error {
  constructor() {
    super(outOfBudget)
  }
}

/** The values of the variables. All are JSON. */
export type AdmissionValues = {
  readonly object: unknown
  readonly oldObject: unknown
  readonly request: unknown
  readonly namespaceObject?: unknown
  readonly params?: unknown
}

/** Whom expressions ask about access, and the resource of the request. */
export type AdmissionAccess = { readonly ask: AskAccess; readonly resource: AskedResource }

export function admissionVariables(values: AdmissionValues, access: AdmissionAccess | undefined): Variables {
  const { object, oldObject, request, namespaceObject, params } = values
  const authorizer = access && new AuthorizerValue(access.ask)
  return {
    object: jsonValue(object),
    oldObject: jsonValue(oldObject),
    request: jsonValue(request),
    namespaceObject: jsonValue(namespaceObject),
    params: jsonValue(params),
    ...(authorizer && { authorizer, [resourceCheckName]: new ResourceCheckValue(authorizer, access.resource) }),
  }
}

/** Variables of a policy by name, in the order of their definition. */
export type ComposedVariables = ReadonlyMap<string, AdmissionExpression | ExpressionProblem>

export type RunSettings = {
  readonly variables: Variables
  readonly composed?: ComposedVariables
  /** In the units of Kubernetes. */
  readonly budget: number
  readonly work: RequestWork
}

/** Evaluations that share a budget, and the values of the variables of their policy. */
export class ExpressionRun {
  readonly #variables: Variables
  readonly #work: RequestWork
  /** What is left of the budget. */
  budget: number
  /** Cost of the variables that the current expression was the first to read. */
  #composedCost = 0

  constructor({ variables, composed, budget, work }: RunSettings) {
    this.budget = budget
    this.#work = work
    work.steps -= runSteps
    const lazy = composed && new ComposedObject(composed, (one) => this.#outcome(one, (cost) => this.#addCost(cost)))
    this.#variables = lazy === undefined ? variables : { ...variables, variables: lazy }
  }

  /** What the expression gives; a text: why it gives nothing. Throws OutOfBudgetError. */
  async evaluate(expression: AdmissionExpression | ExpressionProblem): Promise<{ value: CelOutcome } | string> {
    if ('problem' in expression) return `compilation error: ${expression.problem}`
    this.#composedCost = 0
    this.#work.steps -= evaluationSteps
    await this.#work.pause()
    let own = 0
    const value = await this.#outcome(expression, (cost) => {
      own = cost
    })
    if (this.#composedCost + own > this.budget || this.#work.steps <= 0) throw new OutOfBudgetError()
    this.budget -= this.#composedCost + own
    if (!(value instanceof CelFailure)) return { value }
    return `expression '${expression.source}' resulted in error: ${value.message}`
  }

  #addCost(cost: number): void {
    this.#composedCost += cost
  }

  async #outcome({ program }: AdmissionExpression, charge: (cost: number) => void): Promise<CelOutcome> {
    const work = this.#work
    if (work.steps <= 0) throw new OutOfBudgetError()
    const meter = new Meter(mostCallCost, work.steps)
    const machine = new Machine(program, this.#variables, meter)
    let counted = 0
    // Others take steps of the same work while this machine waits for them.
    const count = () => {
      work.steps -= meter.work - counted
      counted = meter.work
    }
    try {
      for (;;) {
        const outcome = machine.run(slice)
        count()
        if (outcome instanceof Deferred) machine.resume(await outcome.find())
        else if (outcome !== undefined) return outcome
        await work.pause()
      }
    } catch (error) {
      if (!(error instanceof CostExceededError)) throw error
      return new CelFailure(error.message)
    } finally {
      count()
      charge(meter.cost)
    }
  }
}

/** `variables`: each is evaluated when an expression first reads it. */
class ComposedObject extends LazyObject {
  readonly typeName = 'kubernetes.variables'
  readonly #expressions: ComposedVariables
  readonly #outcomeOf: (expression: AdmissionExpression) => Promise<CelOutcome>
  readonly #known = new Map<string, CelOutcome>()

  constructor(expressions: ComposedVariables, outcomeOf: (expression: AdmissionExpression) => Promise<CelOutcome>) {
    super()
    this.#expressions = expressions
    this.#outcomeOf = outcomeOf
  }

  names(): readonly string[] {
    return [...this.#expressions.keys()]
  }

  deferred(name: string): Deferred | undefined {
    return this.#expressions.has(name) ? new Deferred(() => this.#found(name)) : undefined
  }

  async #found(name: string): Promise<CelOutcome> {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const outcome = await this.#evaluated(name)
    this.#known.set(name, outcome)
    return outcome
  }

  async #evaluated(name: string): Promise<CelOutcome> {
    const expression = this.#expressions.get(name)
    const what = `composited variable ${JSON.stringify(name)}`
    if (expression === undefined) return new CelFailure(`${what} is not defined`)
    if ('problem' in expression) return new CelFailure(`${what} fails to compile: ${expression.problem}`)
    const outcome = await this.#outcomeOf(expression)
    return outcome instanceof CelFailure ? new CelFailure(`${what} fails to evaluate: ${outcome.message}`) : outcome
  }
}
