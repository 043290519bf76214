/** What `bramble-agent network` reads of this machine, and removes from it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../daemon/clock.ts'
import { readSavedAddresses } from '../adapters/disk/address-checkpoint.ts'
import {
  networkCheckpointPath,
  readSavedNetwork,
  readSavedObstacle,
  readSavedServices,
} from '../adapters/disk/network-checkpoint.ts'
import { agentOn } from '../adapters/disk/single-instance.ts'
import { volumeFolders } from '../adapters/disk/volume-store.ts'
import { askAgent } from '../adapters/http/agent-socket.ts'
import { localSocketPath } from '../adapters/http/local-socket.ts'
import { balancerHost } from '../adapters/network/balancer-host.ts'
import { hostNetwork } from '../adapters/network/host-network.ts'
import { kernelIPv6Forwarding } from '../adapters/network/ipv6-forwarding.ts'
import { hasIPv6 } from '../adapters/network/ipv6-support.ts'
import { ownerOfNetwork } from '../adapters/network/network-owner.ts'
import { nftTable } from '../adapters/network/nft/nft.ts'
import { nftIPv6Guard } from '../adapters/network/nft/nft-ipv6-guard.ts'
import { isolatedPods } from '../adapters/network/nft-isolation.ts'
import { nodeDnsHost } from '../adapters/network/node-dns-address.ts'
import { nftPortGuard } from '../adapters/network/ports/nft-port-guard.ts'
import { readWireguard } from '../adapters/network/wireguard-link.ts'
import { findIdentity } from '../join/identity.ts'
import { readLiveNetwork } from '../network/live-network.ts'
import type { NetworkSources } from '../network/network-command.ts'
import { proofsOf } from '../network/probes/proven-network.ts'
import { ipv4Rules, ipv6Rules } from '../network/rule-family.ts'

export function networkSources({ root, dataDir }: { readonly root: string; readonly dataDir: string }): NetworkSources {
  /** False where the kernel has no such file, as for a module that is not loaded. */
  const isOn = async (setting: string) =>
    (await readFile(join(root, 'proc/sys/net', setting), 'utf8').catch(() => '')).trim() === '1'
  return {
    nodeName: async () => (await findIdentity(dataDir))?.identity.nodeName,
    async liveNetwork() {
      const { memoryDirectory } = await volumeFolders(dataDir)
      return readLiveNetwork(await askAgent(localSocketPath(memoryDirectory), '/network'))
    },
    async savedNetwork() {
      const folder = networkCheckpointPath(dataDir)
      const obstacle = await readSavedObstacle(folder)
      return {
        message: obstacle === undefined ? await readSavedNetwork(folder) : undefined,
        obstacle,
        services: await readSavedServices(folder),
        proofs: proofsOf(await readSavedAddresses(folder)),
      }
    },
    async otherAgent() {
      const [owner, own] = await Promise.all([ownerOfNetwork(root), agentOn(dataDir)])
      return owner === own ? undefined : owner
    },
    host: hostNetwork(root),
    balancers: balancerHost(root),
    table: nftTable(ipv4Rules),
    portTable: nftPortGuard(root),
    ipv6Table: nftTable(ipv6Rules),
    hasIPv6: hasIPv6(root),
    ipv6Forwarding: kernelIPv6Forwarding(root, dataDir),
    ipv6: nftIPv6Guard(root),
    isolatedPods: () => isolatedPods(),
    names: nodeDnsHost(),
    forwards: () => isOn('ipv4/ip_forward'),
    forwardsIPv6: () => isOn('ipv6/conf/all/forwarding'),
    filtersBridges: () => isOn('bridge/bridge-nf-call-iptables'),
    wireguard: () => readWireguard(),
    nowMs: systemClock.wallMs,
  }
}
