/** What `bramble-agent network` reads of a machine. */
import type { NetworkSources } from '../network-command.ts'

const done = async () => undefined
const yes = async () => true

/** pi-1, alone in its fleet: its kernel has all that it needs. */
export function wholeMachine(received: Pick<NetworkSources, 'liveNetwork' | 'savedNetwork'>): NetworkSources {
  return {
    ...received,
    otherAgent: async () => undefined,
    nodeName: async () => 'pi-1',
    host: {
      links: async () => ({ routes: [], hasTunnel: false, hasWireguard: false }),
      made: async () => ({ routes: [], tunnelPeers: [] }),
      apply: async () => [],
      refuseMarked: done,
      isAccepting: yes,
      acceptsIPv6: yes,
    },
    table: { isIntact: yes, remove: done },
    portTable: { remove: done },
    ipv6Table: { isIntact: yes },
    hasIPv6: true,
    ipv6Forwarding: { restore: done },
    ipv6: { remove: done, isClosed: yes },
    balancers: { held: () => new Set(), clear: done },
    names: { release: done },
    isolatedPods: async () => [],
    forwards: yes,
    forwardsIPv6: yes,
    filtersBridges: yes,
    wireguard: async () => undefined,
    nowMs: () => 0,
  }
}
