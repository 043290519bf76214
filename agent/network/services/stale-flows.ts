/** Flows of UDP that the kernel still leads to endpoints that are gone (pkg/proxy/conntrack/cleanup.go). */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import type { RuleFamily } from '../rule-family.ts'
import { addressesOf } from './rule-text.ts'

/** UDP flows from any client. TCP flows end by themselves: an endpoint that is gone resets them or they time out. */
export type UdpFlow = {
  /** Where the client sends to. */
  readonly address: string
  readonly port: number
  /** What answers, after translation. */
  readonly endpoint: string
  readonly endpointPort: number
}

/** The endpoints that serve, as `IP:PORT`, by where clients send to. Services without any are left out: nothing would be better. */
export type UdpTargets = {
  /** By `IP:PORT`. */
  readonly byAddress: ReadonlyMap<string, ReadonlySet<string>>
  readonly byNodePort: ReadonlyMap<number, ReadonlySet<string>>
}

/** Policies and zones do not count: a change of the Service leaves flows as they are, as it does those of TCP. */
export function udpTargets(services: Iterable<ServiceState>, family: RuleFamily): UdpTargets {
  const ofFamily = (addresses: readonly string[] | undefined) => addressesOf(family, addresses)
  const byAddress = new Map<string, ReadonlySet<string>>()
  const byNodePort = new Map<number, ReadonlySet<string>>()
  for (const service of services) {
    const others = [service.externalIPs, service.loadBalancerIPs].flatMap(ofFamily)
    for (const { port, nodePort, endpoints } of servedUdpPorts(service)) {
      // The address of another Service, too: that one keeps it.
      for (const key of others.map((ip) => `${ip}:${port}`)) byAddress.set(key, byAddress.get(key) ?? endpoints)
      for (const ip of ofFamily(service.clusterIPs)) byAddress.set(`${ip}:${port}`, endpoints)
      if (nodePort !== undefined) byNodePort.set(nodePort, endpoints)
    }
  }
  return { byAddress, byNodePort }
}

function servedUdpPorts(service: ServiceState) {
  return service.ports
    .filter(({ protocol }) => protocol === 'UDP')
    .map(({ name = '', port, nodePort }) => ({ port, nodePort, endpoints: servingEndpoints(service, name) }))
    .filter(({ endpoints }) => endpoints.size > 0)
}

function servingEndpoints(service: ServiceState, portName: string): ReadonlySet<string> {
  const serves = ({ ready, serving }: { readonly ready: boolean; readonly serving: boolean }) =>
    ready || serving || service.publishNotReadyAddresses === true
  return new Set(
    service.endpoints.flatMap(({ ports, addresses }) => {
      const target = ports.find(({ name = '', protocol }) => name === portName && protocol === 'UDP')
      return target === undefined ? [] : addresses.filter(serves).map(({ ip }) => `${ip}:${target.port}`)
    }),
  )
}

export function isStaleFlow({ address, port, endpoint, endpointPort }: UdpFlow, targets: UdpTargets): boolean {
  const known = [targets.byAddress.get(`${address}:${port}`), targets.byNodePort.get(port)]
  return known.some((endpoints) => endpoints !== undefined && !endpoints.has(`${endpoint}:${endpointPort}`))
}

/** Nothing that is stale now was not before. */
export function areSameTargets(before: UdpTargets, after: UdpTargets): boolean {
  return isSame(before.byAddress, after.byAddress) && isSame(before.byNodePort, after.byNodePort)
}

function isSame<Key>(
  one: ReadonlyMap<Key, ReadonlySet<string>>,
  other: ReadonlyMap<Key, ReadonlySet<string>>,
): boolean {
  if (one.size !== other.size) return false
  return [...one].every(([key, endpoints]) => {
    const others = other.get(key)
    return others !== undefined && others.size === endpoints.size && [...endpoints].every((each) => others.has(each))
  })
}
