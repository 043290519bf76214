/** The network of the fleet on this node: the reception of its messages, and the parts that act on them. */
import { byFamily, ipFamilies } from '../../api/text/ip-address.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { addressCheckpoint } from '../adapters/disk/address-checkpoint.ts'
import { networkCheckpoint, networkCheckpointPath, obstacleFile } from '../adapters/disk/network-checkpoint.ts'
import { policyCheckpoint } from '../adapters/disk/policy-checkpoint.ts'
import { wireguardKeyPath } from '../adapters/disk/wireguard-key.ts'
import type { DockerRuntime } from '../adapters/docker/docker-runtime.ts'
import { readAllRoutes } from '../adapters/kernel/host-routes.ts'
import { hasOwnAddress } from '../adapters/kernel/own-address.ts'
import { balancerHost } from '../adapters/network/balancer-host.ts'
import { conntrackFlows } from '../adapters/network/conntrack.ts'
import { hostNetwork } from '../adapters/network/host-network.ts'
import { type IPv6Forwarding, kernelIPv6Forwarding } from '../adapters/network/ipv6-forwarding.ts'
import { hasIPv6 } from '../adapters/network/ipv6-support.ts'
import { mdnsHost } from '../adapters/network/mdns-sockets.ts'
import {
  type NetworkOwner,
  networkOwner,
  ownedBalancers,
  ownedForwarding,
  ownedGuard,
  ownedHost,
  ownedTable,
  ownedWireguard,
  takenBy,
} from '../adapters/network/network-owner.ts'
import { networkToolProblem } from '../adapters/network/network-tools.ts'
import { nftTable } from '../adapters/network/nft/nft.ts'
import { nftIPv6Guard } from '../adapters/network/nft/nft-ipv6-guard.ts'
import { answersCanary } from '../adapters/network/nft/rule-canary.ts'
import { nftPortGuard } from '../adapters/network/ports/nft-port-guard.ts'
import { podPorts } from '../adapters/network/ports/pod-ports.ts'
import { probeHost } from '../adapters/network/probe-host.ts'
import { wireguardLink } from '../adapters/network/wireguard-link.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { balancerManager } from '../network/balancers/balancer-manager.ts'
import { type NetworkGate, networkGate } from '../network/gate/network-gate.ts'
import { hostPortCleaner } from '../network/host-ports/host-port-cleaner.ts'
import { hostPortManager } from '../network/host-ports/host-port-manager.ts'
import { mdnsManager } from '../network/mdns/mdns-manager.ts'
import { networkReception } from '../network/messages/network-reception.ts'
import type { RuleTable } from '../network/network-manager.ts'
import type { IPv6Guard } from '../network/peers/ipv6-guard.ts'
import { peersManager } from '../network/peers/peers-manager.ts'
import { podIsolation } from '../network/policies/pod-isolation.ts'
import { policyManager } from '../network/policies/policy-manager.ts'
import { policyReception } from '../network/policies/policy-reception.ts'
import { portGuardManager } from '../network/ports/port-guard-manager.ts'
import { type ProbeManager, probeManager } from '../network/probes/probe-manager.ts'
import { ipv6Rules, ruleFamilies } from '../network/rule-family.ts'
import { keyReport } from '../network/wireguard/key-report.ts'
import type { ControlPlane, ControlPlaneListener } from '../node/connection/control-plane.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { PodIsolation } from '../pods/admission/pod-isolation.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'
import type { ApiLink } from './membership.ts'
import { assembleNames } from './names.ts'
import { ruleLoops } from './rule-tables.ts'
import { serviceLoops } from './services.ts'

/** What the engine and the parts of the network share. */
export type NetworkGround = {
  readonly owner: NetworkOwner
  readonly ipv6: IPv6Guard
  /** As found at the start. */
  readonly hasIPv6: boolean
  /** In the kernel it has the name of the guard's table: there is one of the two. */
  readonly ipv6Table: RuleTable
  readonly ipv6Forwarding: IPv6Forwarding
}

export function networkGround(
  { root, dataDir }: { readonly root: string; readonly dataDir: string },
  { peerRules }: Pick<AgentBoard, 'peerRules'>,
): NetworkGround {
  const owner = networkOwner(root)
  const guard = nftIPv6Guard(root, undefined, () => peerRules.IPv6.get() !== undefined)
  const table = guard.inTurn(nftTable(ipv6Rules, 'nft', { isAnswering: () => answersCanary(ipv6Rules) }))
  return {
    owner,
    hasIPv6: hasIPv6(root),
    ipv6: ownedGuard(guard, owner),
    ipv6Table: ownedTable(table, owner),
    ipv6Forwarding: ownedForwarding(kernelIPv6Forwarding(root, dataDir), owner),
  }
}

export type NetworkParts = NetworkGround & {
  readonly root: string
  readonly dataDir: string
  readonly nodeName: string
  readonly configuration: Pick<AgentConfiguration, 'multicastDNS'>
  /** URLs of the controllers: their API and MQTT. */
  readonly controllerUrls: () => readonly string[]
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: Pick<AgentMachine, 'watch' | 'clock' | 'random'>
  readonly engine: Pick<DockerRuntime, 'adjustPodNetwork'>
  readonly link: Pick<ApiLink, 'api' | 'credentials'>
  readonly controlPlane: Pick<ControlPlane, 'connected'>
  readonly event: (event: NodeEvent) => void
  readonly log: Log
}

export type AssembledNetwork = {
  readonly listener: Pick<ControlPlaneListener, 'network' | 'services' | 'networkOff' | 'policies' | 'policiesOff'>
  readonly isolation: PodIsolation
  readonly loops: readonly Loop[]
}

/** Resolves when the cells have what the checkpoint has: before pods start. */
export async function assembleNetwork(parts: NetworkParts): Promise<AssembledNetwork> {
  const { root, dataDir, nodeName, board, write, machine, engine, log, owner } = parts
  const { clockFor } = machine.watch
  const received = write('fleetNetwork', 'serviceStates', 'fleetNetworkCurrent')
  const reception = networkReception({
    writes: {
      networkMessage: received.fleetNetwork,
      serviceStates: received.serviceStates,
      networkCurrent: received.fleetNetworkCurrent,
    },
    checkpoint: networkCheckpoint(networkCheckpointPath(dataDir), log),
    clock: clockFor('network-reception'),
    log,
  })
  await reception.load()
  const gate = gateOf(parts)
  await gate.load()
  const policies = policyReception({
    writes: write('policies'),
    checkpoint: policyCheckpoint(networkCheckpointPath(dataDir), log),
    clock: clockFor('policy-reception'),
    log,
  })
  await policies.load(board.fleetNetwork.get() !== undefined)
  const probes = addressProbes(parts)
  await probes.load()
  const wireguard = wireguardLink(wireguardKeyPath(dataDir))
  const peers = peersManager(
    {
      host: ownedHost(hostNetwork(root), owner),
      wireguard: ownedWireguard(wireguard, owner),
      bridge: { adjust: engine.adjustPodNetwork },
      ipv6: parts.ipv6,
      hasIPv6: parts.hasIPv6,
      ipv6Forwarding: parts.ipv6Forwarding,
      reads: board,
      writes: write('peerRules', 'podLink', 'networkConditions', 'routesApplied', 'podsMayMove'),
      clock: clockFor('peers'),
      log,
    },
    { nodeName },
  )
  const { publicKey } = wireguard
  const keys = keyReport(
    { reads: board, publicKey, api: parts.link.api, clock: clockFor('wireguard-key'), log },
    nodeName,
  )
  const { services, networkOff } = reception
  const network: typeof reception.network = (message) => {
    reception.network(message)
    gate.received()
  }
  const { policyRules, policiesReady } = write('policyRules', 'policiesReady')
  const policyLoops = ipFamilies.map((family) =>
    policyManager({
      family: ruleFamilies[family],
      reads: board,
      writes: { policyRules: policyRules[family], policiesReady: policiesReady[family] },
      clock: clockFor(family === 'IPv4' ? 'policies' : 'policies-ipv6'),
    }),
  )
  return {
    listener: { network, services, networkOff, policies: policies.policies, policiesOff: policies.policiesOff },
    isolation: podIsolation({
      reads: board,
      writes: write('localPods'),
      closePolicies: policies.close,
      clock: machine.clock,
    }),
    loops: [
      reception,
      gate,
      probes,
      peers,
      keys,
      ...(await serviceLoops(parts)),
      // Before those of policies, with which rules of an earlier agent are replaced.
      ...hostPortLoops(parts),
      policies,
      ...policyLoops,
      portGuard(parts),
      loadBalancers(parts),
      ...ruleLoops(parts),
      publishedNames(parts),
      assembleNames(parts),
    ],
  }
}

/** Whether this machine takes part in the network of the fleet. */
function gateOf({ root, dataDir, board, write, machine, log, owner }: NetworkParts): NetworkGate {
  const claim = () => owner.claim().then(() => undefined, takenBy)
  return networkGate({
    machine: { claim, toolProblem: () => networkToolProblem(), routes: async () => readAllRoutes(root) },
    saved: obstacleFile(networkCheckpointPath(dataDir), log),
    reads: board,
    writes: write('networkMessage', 'networkCurrent', 'networkObstacle'),
    clock: machine.watch.clockFor('network-gate'),
    log,
  })
}

/** What pods send on their bridge has their own addresses, with and without a network of the fleet. */
function portGuard({ root, nodeName, board, machine, log }: NetworkParts): Loop {
  const needs = {
    ports: podPorts(root),
    table: nftPortGuard(root),
    reads: board,
    clock: machine.watch.clockFor('pod-ports'),
    log,
  }
  return portGuardManager(needs, nodeName)
}

/** The addresses of load balancers that this node answers for. */
function loadBalancers({ root, nodeName, board, write, machine, controlPlane, event, log, owner }: NetworkParts): Loop {
  return balancerManager(
    {
      host: ownedBalancers(balancerHost(root), owner),
      isConnected: () => controlPlane.connected,
      event,
      reads: board,
      writes: write('balancerRules'),
      clock: machine.watch.clockFor('load-balancers'),
      log,
    },
    { nodeName },
  )
}

/** Rules of host ports, and flows to them. */
function hostPortLoops({ board, write, machine, log }: NetworkParts): readonly Loop[] {
  const { clockFor } = machine.watch
  const flows = byFamily((family) => conntrackFlows(ruleFamilies[family]))
  return [
    hostPortManager({ reads: board, writes: write('hostPortRules'), clock: clockFor('host-ports') }),
    hostPortCleaner({ flows, isOwn: hasOwnAddress, reads: board, clock: clockFor('udp-flows-host-ports'), log }),
  ]
}

/** Proofs of the addresses of nodes. */
function addressProbes({
  root,
  dataDir,
  nodeName,
  board,
  write,
  link,
  machine,
  log,
  owner,
}: NetworkParts): ProbeManager {
  return probeManager({
    nodeName,
    host: probeHost(root, owner.claim),
    credentials: link.credentials.get,
    checkpoint: addressCheckpoint(networkCheckpointPath(dataDir), log),
    reads: board,
    writes: write('addressProofs'),
    clock: machine.watch.clockFor('address-probes'),
    random: machine.random,
    log,
  })
}

/** The names of this node in the house. */
function publishedNames({ root, nodeName, board, write, configuration, machine, log }: NetworkParts): Loop {
  const needs = {
    nodeName,
    host: mdnsHost(root),
    nodeAddress: () => board.nodeStatus.get()?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
    reads: board,
    writes: write('mdnsRules'),
    clock: machine.watch.clockFor('mdns'),
    random: machine.random,
    log,
  }
  return mdnsManager(needs, configuration.multicastDNS)
}
