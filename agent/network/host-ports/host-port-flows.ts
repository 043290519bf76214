/**
 * UDP flows to host ports that the kernel still leads elsewhere: a client that keeps sending keeps its flow forever.
 */
import { type IPFamily, isIPv4 } from '../../../api/text/ip-address.ts'
import type { LocalPod, PodHostPort } from '../policies/policy-rules.ts'
import type { UdpFlow } from '../services/stale-flows.ts'
import { addressOfPort, portsOfIPv6 } from './host-port-rules.ts'

/** By where clients send to: `ADDRESS PORT`, or ` PORT` at each address of the node. */
export type HostPortTargets = ReadonlyMap<string, HostPortTarget>

/** `endpoint`: what answers, as `ADDRESS PORT`. The next pod may have the same. */
export type HostPortTarget = { readonly uid: string; readonly endpoint: string }

type PortFamily = {
  readonly addressOf: (pod: LocalPod) => string | undefined
  readonly portsOf: (pod: LocalPod) => readonly PodHostPort[]
  /** Address that a `hostIP` stands for; undefined: each address of the node. */
  readonly hostAddressOf: (hostIP: string) => string | undefined
}

/** Docker translates the IPv4 ports, rules of the agent those of IPv6. */
const portFamilies: Readonly<Record<IPFamily, PortFamily>> = {
  IPv4: {
    addressOf: ({ ip }) => ip,
    portsOf: ({ hostPorts = [] }) => hostPorts.filter(({ hostIP }) => hostIP === '' || isIPv4(hostIP)),
    hostAddressOf: (hostIP) => (hostIP === '' || hostIP === '0.0.0.0' ? undefined : hostIP),
  },
  IPv6: { addressOf: ({ ipv6 }) => ipv6, portsOf: portsOfIPv6, hostAddressOf: addressOfPort },
}

/** `pods`: by UID. */
export function hostPortTargets(pods: ReadonlyMap<string, LocalPod>, family: IPFamily): HostPortTargets {
  const { addressOf, portsOf, hostAddressOf } = portFamilies[family]
  const targets = new Map<string, HostPortTarget>()
  for (const [uid, pod] of pods)
    for (const { protocol, port, containerPort, hostIP } of portsOf(pod)) {
      const target = { uid, endpoint: `${addressOf(pod)} ${containerPort}` }
      if (protocol === 'udp') targets.set(`${hostAddressOf(hostIP) ?? ''} ${port}`, target)
    }
  return targets
}

/**
 * If the flow is to this node, which its address alone does not show. `before`: earlier targets; a flow to one of those that no pod has any
 * more is stale while it is translated. Loopback is not translated: Docker's proxy, or a program of the node, answers there.
 */
export function isStaleHostFlow(flow: UdpFlow, before: HostPortTargets, now: HostPortTargets): boolean {
  const { address, port, endpoint, endpointPort } = flow
  if (address.startsWith('127.') || address === '::1') return false
  const find = (targets: HostPortTargets) => (targets.get(`${address} ${port}`) ?? targets.get(` ${port}`))?.endpoint
  const target = find(now)
  if (target !== undefined) return target !== `${endpoint} ${endpointPort}`
  return find(before) === `${endpoint} ${endpointPort}`
}

/** Nothing that is stale now was not before. A flow that began while no pod had the port is, also if the next pod has the address of the last. */
export function areSameHostTargets(before: HostPortTargets, now: HostPortTargets): boolean {
  const isSame = ([key, { uid, endpoint }]: readonly [string, HostPortTarget]) =>
    before.get(key)?.uid === uid && before.get(key)?.endpoint === endpoint
  return before.size === now.size && [...now].every(isSame)
}
