/**
 * Which endpoints stand in which slices (reconcileByPortMapping in staging/src/k8s.io/endpointslice/reconciler.go of
 * Kubernetes). An endpoint stays in its slice. New ones go where slices are written anyway, then into the slice that they
 * fill best, and into new slices last: a change writes few slices.
 */
import type { Endpoint, EndpointSlice } from '../../../api/network/endpoint-slice.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { StoredObject } from '../../store/store.ts'

export type StoredSlice = StoredObject<'endpointslices'>
export type SlicePorts = NonNullable<EndpointSlice['ports']>

/** --max-endpoints-per-slice. */
const mostEndpoints = 100

export type Packing = {
  /** The endpoints of each slice that is to be written, by its name. */
  readonly update: ReadonlyMap<string, readonly Endpoint[]>
  /** The names of slices that are left without endpoints. */
  readonly remove: readonly string[]
  /** The endpoints of each new slice. */
  readonly create: readonly (readonly Endpoint[])[]
}

/** `present`: the slices with these ports and this family of addresses. */
export function packEndpoints(
  present: readonly StoredSlice[],
  wanted: readonly Endpoint[],
  most = mostEndpoints,
): Packing {
  const missing = new Map(wanted.map((endpoint) => [endpointKey(endpoint), endpoint]))
  const update = new Map<string, Endpoint[]>()
  const unchanged = new Map<string, readonly Endpoint[]>()
  const remove: string[] = []
  for (const { metadata, endpoints } of present) {
    const before = endpoints ?? []
    const kept = before.flatMap((endpoint) => take(missing, endpointKey(endpoint)) ?? [])
    if (kept.length === 0 && before.length > 0) remove.push(metadata.name)
    else if (equalJSON(before, kept)) unchanged.set(metadata.name, before)
    else update.set(metadata.name, kept)
  }

  const rest = [...missing.values()]
  const fullestFirst = [...update.values()].sort((a, b) => b.length - a.length)
  for (const endpoints of fullestFirst) endpoints.push(...rest.splice(0, Math.max(0, most - endpoints.length)))
  return { remove, ...addRest(rest, unchanged, update, most) }
}

/** Fills slices that would not be written otherwise, and new ones. */
function addRest(
  rest: Endpoint[],
  unchanged: Map<string, readonly Endpoint[]>,
  update: Map<string, Endpoint[]>,
  most: number,
): Pick<Packing, 'update' | 'create'> {
  const create: Endpoint[][] = []
  while (rest.length > 0) {
    const name = rest.length < most ? bestFit(unchanged, rest.length, most) : undefined
    const before = unchanged.get(name ?? '') ?? []
    const filled = [...before, ...rest.splice(0, most - before.length)]
    if (name === undefined) create.push(filled)
    else {
      unchanged.delete(name)
      update.set(name, filled)
    }
  }
  return { update, create }
}

function take<V>(map: Map<string, V>, key: string): V | undefined {
  const value = map.get(key)
  map.delete(key)
  return value
}

/** The slice that has the least space left with this many more; undefined: none has space for them (getSliceToFill). */
function bestFit(slices: ReadonlyMap<string, readonly Endpoint[]>, more: number, most: number): string | undefined {
  const fitting = [...slices].filter(([, endpoints]) => endpoints.length + more <= most)
  return fitting.sort(([, a], [, b]) => b.length - a.length)[0]?.[0]
}

/** What makes it the same endpoint: its conditions and its node may change (hashEndpoint in endpointslice/util/endpointset.go). */
function endpointKey({ addresses, hostname = '', targetRef = {} }: Endpoint): string {
  return JSON.stringify([[...addresses].sort(), hostname, targetRef.namespace ?? '', targetRef.name ?? ''])
}

/** The same text for the same ports, in any order. */
export function portsKey(ports: SlicePorts | undefined): string {
  return (ports ?? [])
    .map(({ name = '', port, protocol = 'TCP', appProtocol = '' }) =>
      JSON.stringify([name, port, protocol, appProtocol]),
    )
    .sort()
    .join()
}
