/** Ports at the addresses of nodes that pods and Services have, kept as they change. */
import { needsNodePorts, type Service } from '../../../api/network/service.ts'
import type { Pod } from '../../../api/pod.ts'
import { type BalancedPortKey, portKey } from './balanced-services.ts'

export interface HostPorts {
  /** Whether the ports of some node may have changed. */
  put(uid: string, pod: Pod | undefined): boolean
  /** By the name of the node. */
  byNode(): ReadonlyMap<string, ReadonlySet<BalancedPortKey>>
}

/** Host ports of pods that have not ended. Few pods have any. */
export function hostPortUses(): HostPorts {
  const pods = new Map<string, { readonly node: string; readonly ports: readonly BalancedPortKey[] }>()
  return {
    put(uid, pod) {
      const before = pods.get(uid)
      const ports = pod === undefined ? [] : hostPortsOf(pod)
      const node = pod?.spec.nodeName ?? ''
      if (ports.length === 0 || node === '') return pods.delete(uid)
      if (before?.node === node && before.ports.join() === ports.join()) return false
      pods.set(uid, { node, ports })
      return true
    },
    byNode() {
      const found = new Map<string, Set<BalancedPortKey>>()
      for (const { node, ports } of pods.values()) {
        const known = found.get(node) ?? new Set()
        for (const port of ports) known.add(port)
        found.set(node, known)
      }
      return found
    },
  }
}

function hostPortsOf({ spec, status }: Pod): readonly BalancedPortKey[] {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return []
  // An init container that ends has none: its node publishes those of containers that run as long as the pod.
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...spec.containers, ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort, protocol }) => (hostPort ? [portKey(protocol, hostPort)] : [])),
  )
}

/** The node ports of a Service. */
export function nodePortsOf({ spec = {} }: Service): readonly BalancedPortKey[] {
  if (!needsNodePorts(spec)) return []
  return (spec.ports ?? []).flatMap(({ nodePort, protocol }) => (nodePort ? [portKey(protocol, nodePort)] : []))
}
