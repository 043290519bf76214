/** Flows of UDP to host ports of IPv6 that the kernel still leads elsewhere: a client that goes on sending keeps them for ever. */
import type { LocalPod } from '../policies/policy-rules.ts'
import type { UdpFlow } from '../services/stale-flows.ts'
import { addressOfPort, portsOfIPv6 } from './host-port-rules.ts'

/** What answers, as `ADDRESS PORT`, by where clients send to: `ADDRESS PORT`, or ` PORT` at each address of the node. */
export type HostPortTargets = ReadonlyMap<string, string>

/** `pods`: by UID. */
export function hostPortTargets(pods: ReadonlyMap<string, LocalPod>): HostPortTargets {
  const targets = new Map<string, string>()
  for (const pod of pods.values())
    for (const { protocol, port, containerPort, hostIP } of portsOfIPv6(pod))
      if (protocol === 'udp') targets.set(`${addressOfPort(hostIP) ?? ''} ${port}`, `${pod.ipv6} ${containerPort}`)
  return targets
}

/**
 * If the flow is to this node, which its address alone does not show. `before`: the targets of earlier rules; a flow to one of those that
 * no pod has any more is stale while it is translated.
 */
export function isStaleHostFlow(flow: UdpFlow, before: HostPortTargets, now: HostPortTargets): boolean {
  const { address, port, endpoint, endpointPort } = flow
  const find = (targets: HostPortTargets) => targets.get(`${address} ${port}`) ?? targets.get(` ${port}`)
  const target = find(now)
  if (target !== undefined) return target !== `${endpoint} ${endpointPort}`
  return find(before) === `${endpoint} ${endpointPort}`
}

/** Nothing that is stale now was not before. */
export function areSameHostTargets(before: HostPortTargets, now: HostPortTargets): boolean {
  return before.size === now.size && [...now].every(([key, target]) => before.get(key) === target)
}
