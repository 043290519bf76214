/** Amounts by resource name, and what containers and pods ask for (component-helpers/resource/helpers.go of Kubernetes). */
import type { Container, PodSpec } from '../pod.ts'
import { addQuantities, compareQuantities, formatQuantity, type QuantityLike } from '../quantity.ts'

export type ResourceAmounts = { readonly [resource: string]: QuantityLike }

/** undefined for a name that is not there, also for one that every object inherits. */
export function amountNamed(amounts: ResourceAmounts, resource: string): QuantityLike | undefined {
  return Object.hasOwn(amounts, resource) ? amounts[resource] : undefined
}

/** The amounts of both, added. */
export function sumOfAmounts(one: ResourceAmounts, other: ResourceAmounts): ResourceAmounts {
  return merged(one, other, addQuantities)
}

/** The larger amount of each resource. */
export function largerAmounts(one: ResourceAmounts, other: ResourceAmounts): ResourceAmounts {
  return merged(one, other, (a, b) => (compareQuantities(a, b) < 0 ? b : a))
}

/** `cpu=1,memory=64Mi`, in the order of the names. */
export function formatAmounts(amounts: ResourceAmounts): string {
  const texts = Object.keys(amounts).sort()
  return texts.map((name) => `${name}=${formatQuantity(amountNamed(amounts, name) ?? 0)}`).join()
}

/** The requests of a pod, without its overhead: its containers and sidecars, or the most that an init step needs. */
export function requestsOfPod(spec: PodSpec): ResourceAmounts {
  return totalOf(spec, ({ resources = {} }) => resources.requests ?? {})
}

/** The limits of a pod, without its overhead. */
export function limitsOfPod(spec: PodSpec): ResourceAmounts {
  return totalOf(spec, ({ resources = {} }) => resources.limits ?? {})
}

function totalOf({ containers, initContainers = [] }: PodSpec, of: (container: Container) => ResourceAmounts) {
  let sidecars: ResourceAmounts = {}
  let mostAtOnce: ResourceAmounts = {}
  for (const container of initContainers) {
    const step = sumOfAmounts(sidecars, of(container))
    if (container.restartPolicy === 'Always') sidecars = step
    mostAtOnce = largerAmounts(mostAtOnce, step)
  }
  return largerAmounts(containers.map(of).reduce(sumOfAmounts, sidecars), mostAtOnce)
}

function merged(
  one: ResourceAmounts,
  other: ResourceAmounts,
  merge: (a: QuantityLike, b: QuantityLike) => QuantityLike,
): ResourceAmounts {
  const all = new Map(Object.entries(one))
  for (const [name, amount] of Object.entries(other)) {
    const present = all.get(name)
    all.set(name, present === undefined ? amount : merge(present, amount))
  }
  return Object.fromEntries(all)
}
