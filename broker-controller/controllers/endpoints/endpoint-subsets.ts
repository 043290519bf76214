/** The subsets of Endpoints: addresses that have the same ports (pkg/api/v1/endpoints/util.go of Kubernetes). */
import type { EndpointAddress, EndpointSubset } from '../../../api/network/endpoints.ts'
import { eachInTurns, finishedInTurns, yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import { type Steps, sortedInSteps } from '../../../daemon/watchdog/steps.ts'

type SubsetPort = NonNullable<EndpointSubset['ports']>[number]
type Place = { readonly address: EndpointAddress; readonly isReady: boolean }
/** By address. One that is ready and not ready is not ready. */
type Places = Map<string, Place>
type PortGroups = { readonly port: SubsetPort | undefined; readonly groups: Set<number> }

/**
 * Each address once for each port, and together with those that have the same ports; all in an order that repeats. The work is by the
 * addresses plus the ports, not by their product; many of them take several turns of the event loop.
 */
export async function packedSubsets(subsets: readonly EndpointSubset[]): Promise<readonly EndpointSubset[]> {
  const { byPort, places } = await groupedByPorts(subsets)
  const together = new Map<string, Packed>()
  const packedOf = new Map<string, Packed>()
  for (const { port, groups } of byPort.values()) {
    await yieldTurn()
    const groupsText = [...groups].join()
    let packed = packedOf.get(groupsText)
    if (packed === undefined) {
      const { key, ordered } = await finishedInTurns(inOrder([...groups].map((group) => places[group] ?? new Map())))
      packed = together.get(key) ?? { places: ordered, ports: [] }
      together.set(key, packed)
      packedOf.set(groupsText, packed)
    }
    if (port !== undefined) packed.ports.push(port)
  }
  const packed: [string, EndpointSubset][] = []
  await eachInTurns(together.values(), (one) => {
    const subset = subsetOf(one)
    packed.push([JSON.stringify(subset.ports ?? []), subset])
  })
  return packed.sort(byText).map(([, subset]) => subset)
}

/** Addresses with the same list of ports are a group: its place in `places` is its number. */
async function groupedByPorts(subsets: readonly EndpointSubset[]) {
  const byPort = new Map<string, PortGroups>()
  const places: Places[] = []
  const numbers = new Map<string, number>()
  // The subsets of a Service share one list, unless a port has another number in each pod.
  const known = new Map<readonly SubsetPort[], number>()
  const numberOf = (ports: readonly SubsetPort[]): number => {
    const texts = ports.length === 0 ? [''] : ports.map(portText)
    const key = texts.join(' ')
    const number = numbers.get(key) ?? places.push(new Map()) - 1
    if (numbers.has(key)) return number
    numbers.set(key, number)
    for (const [at, text] of texts.entries()) {
      const entry = byPort.get(text) ?? { port: ports[at], groups: new Set() }
      byPort.set(text, entry)
      entry.groups.add(number)
    }
    return number
  }
  await eachInTurns(subsets, ({ addresses = [], notReadyAddresses = [], ports = [] }) => {
    const number = known.get(ports) ?? numberOf(ports)
    known.set(ports, number)
    const group = places[number] ?? new Map()
    for (const address of addresses) {
      const text = addressText(address)
      if (!group.has(text)) group.set(text, { address, isReady: true })
    }
    for (const address of notReadyAddresses) group.set(addressText(address), { address, isReady: false })
  })
  return { byPort, places }
}

/** `key`: the same for the same places. */
function* inOrder(groups: readonly Places[]): Steps<{ readonly key: string; readonly ordered: readonly Place[] }> {
  const ordered: Place[] = []
  let key = ''
  for (const [text, place] of yield* sortedInSteps([...(yield* merged(groups))], byText)) {
    yield
    ordered.push(place)
    key += JSON.stringify([text, place.isReady])
  }
  return { key, ordered }
}

function* merged(groups: readonly Places[]): Steps<Places> {
  const [only = new Map(), ...more] = groups
  if (more.length === 0) return only
  const all: Places = new Map()
  for (const group of groups) {
    for (const [text, place] of group) {
      yield
      if (!place.isReady || !all.has(text)) all.set(text, place)
    }
  }
  return all
}

function byText<V>([a]: readonly [string, V], [b]: readonly [string, V]): number {
  return a < b ? -1 : 1
}

type Packed = { readonly places: readonly Place[]; readonly ports: SubsetPort[] }

function subsetOf({ places, ports }: Packed): EndpointSubset {
  const addresses = places.filter(({ isReady }) => isReady).map(({ address }) => address)
  const notReadyAddresses = places.filter(({ isReady }) => !isReady).map(({ address }) => address)
  return {
    ...(addresses.length > 0 && { addresses }),
    ...(notReadyAddresses.length > 0 && { notReadyAddresses }),
    ...(ports.length > 0 && { ports: sortedPorts(ports) }),
  }
}

function sortedPorts(ports: readonly SubsetPort[]): readonly SubsetPort[] {
  return ports
    .map((port) => [portText(port), port] as const)
    .sort(byText)
    .map(([, port]) => port)
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
 * place. A subset that keeps none is left out. undefined: that was the last one (truncateEndpoints).
 */
export function truncatedSubsets(subsets: readonly EndpointSubset[]): readonly EndpointSubset[] | undefined {
  const sum = (part: 'addresses' | 'notReadyAddresses') =>
    subsets.reduce((total, subset) => total + (subset[part]?.length ?? 0), 0)
  const [ready, notReady] = [sum('addresses'), sum('notReadyAddresses')]
  if (ready + notReady <= mostAddresses) return undefined
  const part = ready > mostAddresses ? 'addresses' : 'notReadyAddresses'
  const [most, all] = part === 'addresses' ? [mostAddresses, ready] : [mostAddresses - ready, notReady]
  let left = most
  return subsets.flatMap(({ addresses = [], notReadyAddresses = [], ...subset }) => {
    const cut = part === 'addresses' ? addresses : notReadyAddresses
    const kept = cut.slice(0, Math.min(left, Math.ceil((cut.length / all) * most)))
    left -= kept.length
    const both = part === 'addresses' ? { addresses: kept } : { addresses, notReadyAddresses: kept }
    const present = Object.entries(both).filter(([, some]) => some.length > 0)
    return present.length === 0 ? [] : [{ ...Object.fromEntries(present), ...subset }]
  })
}
