/** What the evaluation of an expression has cost, against what it may cost. */

/** Thrown where an evaluation costs more than it may. */
export class CostExceededError extends Error {
  constructor() {
    super('operation cancelled: actual cost limit exceeded')
  }
}

/** Steps of our own for each unit of cost: an evaluation that has little cost for much work ends as well. */
const workPerUnit = 10

export class Meter {
  /** In the units of Kubernetes. */
  cost = 0
  /** Steps of some nanoseconds. */
  work = 0
  readonly #most: number
  readonly #mostWork: number

  constructor(most: number, mostSteps = Number.POSITIVE_INFINITY) {
    this.#most = most
    this.#mostWork = Math.min(mostSteps, most * workPerUnit)
  }

  /** Throws CostExceededError. */
  charge(units: number): void {
    this.cost += units
    if (this.cost > this.#most) throw new CostExceededError()
  }

  /** Throws CostExceededError. */
  step(steps = 1): void {
    this.work += steps
    if (this.work > this.#mostWork) throw new CostExceededError()
  }

  /** Steps that one operation may still take. */
  get stepsLeft(): number {
    return this.#mostWork - this.work
  }
}
