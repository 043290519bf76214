/** The Services of all shards as one value. */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'

export type ServiceStates = {
  /** By `namespace/name`. A Service that has not changed is the same object as in the value before this one. */
  readonly services: ReadonlyMap<string, ServiceState>
  /** The keys of those that are new, gone or other than in the value before this one. */
  readonly changed: readonly string[]
  /** Every shard was received or read from the checkpoint: what is missing does not exist. */
  readonly isComplete: boolean
}

export const noServices: ServiceStates = { services: new Map(), changed: [], isComplete: false }

export function serviceKey({ namespace, name }: Pick<ServiceState, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`
}

/** `known` with the Services of one shard replaced. `before`: the keys that the shard had. */
export function withShard(
  known: ServiceStates,
  before: readonly string[],
  shard: readonly ServiceState[],
  isComplete: boolean,
): ServiceStates {
  const services = new Map(known.services)
  const present = new Set(shard.map(serviceKey))
  const gone = before.filter((key) => !present.has(key) && services.delete(key))
  const changed = shard.filter((service) => !isSame(service, known.services.get(serviceKey(service))))
  for (const service of changed) services.set(serviceKey(service), service)
  return { services, changed: [...gone, ...changed.map(serviceKey)], isComplete }
}

/** By their texts, which costs a quarter of a comparison by value: the controller writes fields in one order. */
function isSame(service: ServiceState, before: ServiceState | undefined): boolean {
  return before !== undefined && JSON.stringify(service) === JSON.stringify(before)
}

/** Is there nothing that a reader of these states would do? */
export function areSameServices(before: ServiceStates | undefined, after: ServiceStates | undefined): boolean {
  if (before === undefined || after === undefined) return before === after
  return after.changed.length === 0 && before.isComplete === after.isComplete
}
