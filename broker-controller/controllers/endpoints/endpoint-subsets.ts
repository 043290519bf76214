/** The subsets of Endpoints: addresses that have the same ports (pkg/api/v1/endpoints/util.go of Kubernetes). */
import type { EndpointAddress, EndpointSubset } from '../../../api/network/endpoints.ts'

type SubsetPort = NonNullable<EndpointSubset['ports']>[number]
type Place = { readonly address: EndpointAddress; readonly isReady: boolean }

/** Each address once for each port, and together with those that have the same ports; all in an order that repeats. */
export function packedSubsets(subsets: readonly EndpointSubset[]): readonly EndpointSubset[] {
  /** By port, then by address. An address that is ready and not ready for one port is not ready. */
  const byPort = new Map<string, { readonly port: SubsetPort | undefined; readonly places: Map<string, Place> }>()
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    for (const port of ports.length === 0 ? [undefined] : ports) {
      const key = port === undefined ? '' : portText(port)
      const { places } = byPort.get(key) ?? { places: new Map<string, Place>() }
      byPort.set(key, { port, places })
      for (const address of addresses) {
        if (!places.has(addressText(address))) places.set(addressText(address), { address, isReady: true })
      }
      for (const address of notReadyAddresses) places.set(addressText(address), { address, isReady: false })
    }
  }
  const together = new Map<string, { readonly places: readonly Place[]; readonly ports: SubsetPort[] }>()
  for (const { port, places } of byPort.values()) {
    const sorted = [...places].sort(([a], [b]) => (a < b ? -1 : 1))
    const key = JSON.stringify(sorted.map(([text, { isReady }]) => [text, isReady]))
    const ports: SubsetPort[] = together.get(key)?.ports ?? []
    if (port !== undefined) ports.push(port)
    together.set(key, { places: sorted.map(([, place]) => place), ports })
  }
  const order = ({ ports }: EndpointSubset) => JSON.stringify(ports ?? [])
  return [...together.values()].map(subsetOf).sort((a, b) => (order(a) < order(b) ? -1 : 1))
}

type Packed = { readonly places: readonly Place[]; readonly ports: readonly SubsetPort[] }

function subsetOf({ places, ports }: Packed): EndpointSubset {
  const addresses = places.filter(({ isReady }) => isReady).map(({ address }) => address)
  const notReadyAddresses = places.filter(({ isReady }) => !isReady).map(({ address }) => address)
  return {
    ...(addresses.length > 0 && { addresses }),
    ...(notReadyAddresses.length > 0 && { notReadyAddresses }),
    ...(ports.length > 0 && { ports: [...ports].sort((a, b) => (portText(a) < portText(b) ? -1 : 1)) }),
  }
}

function addressText({ ip, targetRef }: EndpointAddress): string {
  return `${ip} ${targetRef?.uid ?? ''}`
}

function portText({ name = '', port, protocol = 'TCP', appProtocol = '' }: SubsetPort): string {
  return JSON.stringify([name, port, protocol, appProtocol])
}

/** More are cut (maxCapacity in pkg/controller/endpoint/endpoints_controller.go). */
const mostAddresses = 1000

/**
 * The first 1,000 addresses, in each subset a like share of them; those that are not ready only if all that are have a
 * place. undefined: there are no more (truncateEndpoints).
 */
export function truncatedSubsets(subsets: readonly EndpointSubset[]): readonly EndpointSubset[] | undefined {
  const sum = (part: 'addresses' | 'notReadyAddresses') =>
    subsets.reduce((total, subset) => total + (subset[part]?.length ?? 0), 0)
  const [ready, notReady] = [sum('addresses'), sum('notReadyAddresses')]
  if (ready + notReady <= mostAddresses) return undefined
  const part = ready > mostAddresses ? 'addresses' : 'notReadyAddresses'
  const [most, all] = part === 'addresses' ? [mostAddresses, ready] : [mostAddresses - ready, notReady]
  let left = most
  return subsets.map(({ addresses = [], notReadyAddresses = [], ...subset }) => {
    const cut = part === 'addresses' ? addresses : notReadyAddresses
    const kept = cut.slice(0, Math.min(left, Math.ceil((cut.length / all) * most)))
    left -= kept.length
    const both = part === 'addresses' ? { addresses: kept } : { addresses, notReadyAddresses: kept }
    return { ...Object.fromEntries(Object.entries(both).filter(([, some]) => some.length > 0)), ...subset }
  })
}
