/** The nodes with a ready endpoint of each Service, kept as EndpointSlices change. */
import type { IPFamily } from '../../../api/text/ip-address.ts'
import type { StoredObject } from '../../store/store.ts'

type StoredSlice = StoredObject<'endpointslices'>

export interface EndpointNodes {
  /** Whether the nodes of its Service may have changed. */
  put(present: StoredSlice | undefined, previous: StoredSlice | undefined): boolean
  /** `key`: `namespace/name` of the Service. Those with an endpoint of the family. */
  of(key: string, family: IPFamily): ReadonlySet<string>
}

const noNodes: ReadonlySet<string> = new Set()

export function endpointNodes(): EndpointNodes {
  const services = new Map<string, Map<string, readonly string[]>>()
  const set = (key: string, slice: string, nodes: readonly string[]) => {
    const known = services.get(key) ?? new Map<string, readonly string[]>()
    if (nodes.length > 0) services.set(key, known.set(slice, nodes))
    else if (known.delete(slice) && known.size === 0) services.delete(key)
  }
  return {
    put(present, previous) {
      const [before, after] = [placeOf(previous), placeOf(present)]
      const [had, has] = [readyNodes(previous), readyNodes(present)]
      if (before?.key === after?.key && had.join() === has.join()) return false
      if (before !== undefined) set(before.key, before.slice, [])
      if (after !== undefined) set(after.key, after.slice, has)
      return true
    },
    of(key, family) {
      const slices = services.get(`${key} ${family}`)
      return slices === undefined ? noNodes : new Set([...slices.values()].flat())
    },
  }
}

/** By Service and family. */
function placeOf(slice: StoredSlice | undefined): { readonly key: string; readonly slice: string } | undefined {
  const name = slice?.metadata.labels?.['kubernetes.io/service-name']
  if (slice === undefined || !name) return undefined
  return { key: `${slice.metadata.namespace ?? ''}/${name} ${slice.addressType}`, slice: slice.metadata.name }
}

/** An unknown state is ready (discovery/v1 EndpointConditions). */
function readyNodes(slice: StoredSlice | undefined): readonly string[] {
  const ready = (slice?.endpoints ?? []).filter(({ conditions }) => conditions?.ready ?? true)
  return [...new Set(ready.flatMap(({ nodeName }) => (nodeName ? [nodeName] : [])))].sort()
}
