/**
 * Which endpoints stand in which slices (reconcileByPortMapping in staging/src/k8s.io/endpointslice/reconciler.go of
 * Kubernetes). An endpoint stays in its slice. New ones go where slices are written anyway, then into the slice that they
 * fill best, and into new slices last: a change writes few slices.
 */
import type { Endpoint, EndpointSlice } from '../../../api/network/endpoint-slice.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'
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

/** `present`: the slices with these ports and this family of addresses. In steps: there may be very many endpoints. */
export function* packEndpoints(
  present: readonly StoredSlice[],
  wanted: readonly Endpoint[],
  most = mostEndpoints,
): Steps<Packing> {
  const missing = new Map<string, Endpoint>()
  for (const endpoint of wanted) {
    yield
    missing.set(endpointKey(endpoint), endpoint)
  }
  const update = new Map<string, Endpoint[]>()
  const unchanged = new Map<string, readonly Endpoint[]>()
  const remove: string[] = []
  for (const { metadata, endpoints } of present) {
    yield
    const before = endpoints ?? []
    const kept = before.flatMap((endpoint) => take(missing, endpointKey(endpoint)) ?? [])
    if (kept.length === 0 && before.length > 0) remove.push(metadata.name)
    else if (equalJSON(before, kept)) unchanged.set(metadata.name, before)
    else update.set(metadata.name, kept)
  }

  const rest = restOf([...missing.values()])
  const fullestFirst = [...update.values()].sort((a, b) => b.length - a.length)
  for (const endpoints of fullestFirst) endpoints.push(...rest.take(Math.max(0, most - endpoints.length)))
  return { remove, ...addRest(rest, unchanged, update, most) }
}

/** The endpoints that have no slice yet. */
type Rest = { readonly count: number; take(most: number): readonly Endpoint[] }

function restOf(endpoints: readonly Endpoint[]): Rest {
  let at = 0
  return {
    get count() {
      return endpoints.length - at
    },
    take(most) {
      const taken = endpoints.slice(at, at + most)
      at += taken.length
      return taken
    },
  }
}

/** Fills slices that would not be written otherwise, and new ones. */
function addRest(
  rest: Rest,
  unchanged: Map<string, readonly Endpoint[]>,
  update: Map<string, Endpoint[]>,
  most: number,
): Pick<Packing, 'update' | 'create'> {
  const create: Endpoint[][] = []
  while (rest.count > 0) {
    const name = rest.count < most ? bestFit(unchanged, rest.count, most) : undefined
    const before = unchanged.get(name ?? '') ?? []
    const filled = [...before, ...rest.take(most - before.length)]
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
