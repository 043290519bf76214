/**
 * The cells at which the agent's loops meet. Each cell has one writer, which is handed its write end once; all others read the board. A loop names
 * what it reads and writes in its needs (`reads`, `writes`), so that loops are built in any order and none holds another one. A cell for each IP family belongs to the table of its
 * rules in the kernel, `ip bramble` or `ip6 bramble`; those of IPv6 are undefined while pods of this node have no IPv6 addresses.
 */
import { isDeepStrictEqual } from 'node:util'
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import type { AgentRelease, AgentUpdateReport } from '../../api/node/agent-update.ts'
import type { OsReport, OsUpgrade } from '../../api/node/os-updates.ts'
import type { RebootRequest } from '../../api/node/remote-reboot.ts'
import type { NodeStatus, PressureType } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import type { Pool } from '../../api/storage/pools.ts'
import { type ByFamily, byFamily } from '../../api/text/ip-address.ts'
import { type Cell, cell, type Reader } from '../../daemon/cell.ts'
import { isSameHealth } from '../health/health-manager.ts'
import type { NetworkObstacle } from '../network/gate/network-obstacle.ts'
import type { HostPortRules } from '../network/host-ports/host-port-rules.ts'
import { isSameNetwork } from '../network/messages/received-network.ts'
import { areSameServices, type ServiceStates } from '../network/messages/service-states.ts'
import type { LocalPods } from '../network/policies/pod-isolation.ts'
import type { PolicyRules } from '../network/policies/policy-rules.ts'
import type { ReceivedPolicies } from '../network/policies/received-state.ts'
import { type AddressProofs, areSameProofs, noProofs } from '../network/probes/proven-network.ts'
import type { RuleSet } from '../network/rule-set.ts'
import type { ServiceRules } from '../network/services/service-manager.ts'
import type { MachineCondition, MachineHealth } from '../node/status/conditions.ts'
import { isSameRuntime, type RuntimeState, unknownRuntime } from '../node/status/runtime-health.ts'
import type { NodeDriver } from '../pods/volumes/csi/node-drivers.ts'
import type { Departing } from '../shutdown/departure.ts'

export type AgentCells = {
  /** Written by eviction; undefined until the signals were read once. Read by node status and pod admission. */
  readonly pressures: Cell<readonly PressureType[] | undefined>
  /** Written by eviction: images have a filesystem of their own. Read by the storage limits. */
  readonly imagesApart: Cell<boolean | undefined>
  /** Written by runtime health. Read by node status, machine health, host signals, container options. */
  readonly runtime: Cell<RuntimeState>
  /** Written by machine health; undefined until the checks ran once. Read by node status. */
  readonly machineHealth: Cell<MachineHealth | undefined>
  /** Written by shutdown. Read by node status. */
  readonly shutdownConditions: Cell<readonly MachineCondition[]>
  /** Written by shutdown. Read by node status, pod admission, and for the leave message. */
  readonly goingDown: Cell<Departing | undefined>
  /** Written by shutdown when the control plane has received `goingDown`. Read by node status. */
  readonly departureReported: Cell<Departing | undefined>
  /** Written by membership: what the controller requests; undefined: nothing. Read by remote reboot. */
  readonly rebootRequest: Cell<RebootRequest | undefined>
  /** Written by membership: the release that the controller wants; undefined: it has sent nothing yet. Read by agent updates. */
  readonly agentRelease: Cell<{ readonly release: AgentRelease | undefined } | undefined>
  /** Written by agent updates; undefined: this agent is not updated in this way. Read by registration. */
  readonly updateReport: Cell<AgentUpdateReport | undefined>
  /** Written by agent updates. Read by node status. */
  readonly updateConditions: Cell<readonly MachineCondition[]>
  /** Written by membership: the upgrade that the controller wants; undefined: it has sent nothing yet. Read by OS updates. */
  readonly osUpgrade: Cell<{ readonly upgrade: OsUpgrade | undefined } | undefined>
  /** Written by OS updates; undefined until their files were read once. Read by registration. */
  readonly osReport: Cell<OsReport | undefined>
  /** Written by OS updates. Read by node status. */
  readonly osConditions: Cell<readonly MachineCondition[]>
  /** Written by the measurement of the boot. Read for the leave message. */
  readonly bootMs: Cell<number | undefined>
  /** Written by node status; undefined until the first one. Read by registration, pod admission, container options. */
  readonly nodeStatus: Cell<NodeStatus | undefined>
  /** Written by static pods; undefined while the folder was not read. Read by pods and mirror pods. */
  readonly staticPods: Cell<readonly Pod[] | undefined>
  /** Written by the reception of the fleet's network; undefined: the fleet has none, or it was never received. Read by its gate. */
  readonly fleetNetwork: Cell<NetworkMessage | undefined>
  /** Written by the same: true once all messages were received since the start, or the fleet has no network. Read by the gate. */
  readonly fleetNetworkCurrent: Cell<boolean>
  /** Written by the same, from all shards; undefined likewise. Read by the parts of the network. */
  readonly serviceStates: Cell<ServiceStates | undefined>
  /** Written by the gate: why this node has no part in the network of the fleet. Read by pods, policies and machine health. */
  readonly networkObstacle: Cell<NetworkObstacle | undefined>
  /** Written by the gate: `fleetNetwork`; undefined also where something is in the way. Read by the parts of the network. */
  readonly networkMessage: Cell<NetworkMessage | undefined>
  /** Written by the probes of addresses: which of other nodes may be used. Read by peers. */
  readonly addressProofs: Cell<AddressProofs>
  /** Written by peers: the rules of the network of pods; undefined: the fleet has none. Read by the network manager. */
  readonly peerRules: ByFamily<Cell<RuleSet | undefined>>
  /** Written by the gate: `networkMessage` is that of `fleetNetworkCurrent`. Read by services. */
  readonly networkCurrent: Cell<boolean>
  /** Written by services: `serviceRules` has what was received. Read by the network manager. */
  readonly rulesCurrent: ByFamily<Cell<boolean>>
  /** Written by silent nodes: those whose endpoints of the family are left out while there is no controller. Read by services. */
  readonly silentNodes: ByFamily<Cell<readonly string[]>>
  /** Written by services. Read by the network manager. */
  readonly serviceRules: ByFamily<Cell<ServiceRules | undefined>>
  /** Written by the network manager. Read by peers. */
  readonly ruleProblem: ByFamily<Cell<string | undefined>>
  /** Written by the network manager: how often another program removed them. Read by peers. */
  readonly ruleRemovals: ByFamily<Cell<number>>
  /** Written by the network manager: what the kernel has. Read by services, and before a pod starts. */
  readonly appliedRules: ByFamily<Cell<readonly RuleSet[]>>
  /** Written by peers. Read before a pod starts. */
  readonly routesApplied: Cell<boolean>
  /** Written by peers: pods on an earlier network may be started again on the present one. Read by the engine's network of pods. */
  readonly podsMayMove: Cell<boolean>
  /** Written by peers. Read by node status. */
  readonly networkConditions: Cell<readonly MachineCondition[]>
  /** Written by the name server: why it does not answer pods. Read for the status of the service. */
  readonly nameProblem: Cell<string | undefined>
  /** Written by the name server: it answers, or has failed to once. Read before a pod starts. */
  readonly namesTried: Cell<boolean>
  /** Written by the name server. Read by the network manager. */
  readonly nameRules: Cell<RuleSet | undefined>
  /** Written by the publisher of names in the house. Read by the network manager. */
  readonly mdnsRules: ByFamily<Cell<RuleSet | undefined>>
  /** Written by the reception of policies. Read by policies, and before a pod starts. */
  readonly policies: Cell<ReceivedPolicies>
  /** Written by pods, with the address of each. Read by policies. */
  readonly localPods: Cell<LocalPods>
  /** Written by policies. Read by the network manager, and before a pod starts. */
  readonly policyRules: ByFamily<Cell<PolicyRules | undefined>>
  /** Written by the same: `policyRules` has all pods that run. Read by the network manager. */
  readonly policiesReady: ByFamily<Cell<boolean>>
  /** Written by load balancers. Read by the network manager. */
  readonly balancerRules: ByFamily<Cell<RuleSet | undefined>>
  /** Written by the peers: the bridge of the pods of this node; undefined: not known. Read by the publisher of names in the house. */
  readonly podLink: Cell<string | undefined>
  readonly hostPortRules: ByFamily<Cell<HostPortRules | undefined>>
  /** Those that are there. Written by the orders for volumes; undefined: not opened yet. Read by registration. */
  readonly pools: Cell<readonly Pool[] | undefined>
  /** Written by the registration of CSI drivers; undefined until those of the start were asked. Read by the report of the CSINode. */
  readonly csiDrivers: Cell<readonly NodeDriver[] | undefined>
  /** Written by the volumes of CSI drivers; undefined until those of an earlier agent were read. Read by node status. */
  readonly volumesInUse: Cell<readonly string[] | undefined>
}

/** The cells as everyone may read them. */
export type AgentBoard = { readonly [Name in keyof AgentCells]: ReadEnd<AgentCells[Name]> }
type ReadEnd<T> =
  T extends Cell<infer Value> ? Reader<Value> : T extends ByFamily<infer One> ? ByFamily<ReadEnd<One>> : never

/** The write ends of these cells, each of which is handed out once. Throws for a cell that has a writer. */
export type WriteEnds = <Name extends keyof AgentCells>(...names: readonly Name[]) => Pick<AgentCells, Name>

/** For an agent: the board, and the write ends of its cells. */
export function openBoard(): { readonly board: AgentBoard; readonly write: WriteEnds } {
  const cells = agentBoard()
  return { board: cells, write: writeEnds(cells) }
}

export function writeEnds(cells: AgentCells): WriteEnds {
  const taken = new Set<keyof AgentCells>()
  return (...names) => {
    for (const name of names) {
      if (taken.has(name)) throw new Error(`The cell ${name} of the board has a writer already`)
      taken.add(name)
    }
    return cells
  }
}

export function agentBoard(): AgentCells {
  return {
    pressures: cell<readonly PressureType[] | undefined>(
      undefined,
      (before, after) => before?.join() === after?.join(),
    ),
    imagesApart: cell<boolean | undefined>(undefined),
    csiDrivers: cell<readonly NodeDriver[] | undefined>(undefined, isDeepStrictEqual),
    volumesInUse: cell<readonly string[] | undefined>(undefined, isDeepStrictEqual),
    runtime: cell(unknownRuntime, isSameRuntime),
    machineHealth: cell<MachineHealth | undefined>(undefined, isSameHealth),
    shutdownConditions: cell<readonly MachineCondition[]>([]),
    goingDown: cell<Departing | undefined>(undefined),
    departureReported: cell<Departing | undefined>(undefined),
    rebootRequest: cell<RebootRequest | undefined>(undefined, isDeepStrictEqual),
    agentRelease: cell<{ readonly release: AgentRelease | undefined } | undefined>(undefined, isDeepStrictEqual),
    updateReport: cell<AgentUpdateReport | undefined>(undefined, isDeepStrictEqual),
    updateConditions: cell<readonly MachineCondition[]>([], isDeepStrictEqual),
    osUpgrade: cell<{ readonly upgrade: OsUpgrade | undefined } | undefined>(undefined, isDeepStrictEqual),
    osReport: cell<OsReport | undefined>(undefined, isDeepStrictEqual),
    osConditions: cell<readonly MachineCondition[]>([], isDeepStrictEqual),
    bootMs: cell<number | undefined>(undefined),
    nodeStatus: cell<NodeStatus | undefined>(undefined),
    staticPods: cell<readonly Pod[] | undefined>(undefined),
    fleetNetwork: cell<NetworkMessage | undefined>(undefined, isSameNetwork),
    fleetNetworkCurrent: cell<boolean>(false),
    networkObstacle: cell<NetworkObstacle | undefined>(undefined, isDeepStrictEqual),
    networkMessage: cell<NetworkMessage | undefined>(undefined, isSameNetwork),
    serviceStates: cell<ServiceStates | undefined>(undefined, areSameServices),
    addressProofs: cell<AddressProofs>(noProofs, areSameProofs),
    peerRules: byFamily(() => cell<RuleSet | undefined>(undefined)),
    networkCurrent: cell<boolean>(false),
    rulesCurrent: byFamily(() => cell<boolean>(false)),
    silentNodes: byFamily(() => cell<readonly string[]>([], areSameNames)),
    serviceRules: byFamily(() => cell<ServiceRules | undefined>(undefined)),
    ruleProblem: byFamily(() => cell<string | undefined>(undefined)),
    ruleRemovals: byFamily(() => cell(0)),
    appliedRules: byFamily(() => cell<readonly RuleSet[]>([])),
    routesApplied: cell<boolean>(false),
    podsMayMove: cell<boolean>(false),
    networkConditions: cell<readonly MachineCondition[]>([], isDeepStrictEqual),
    nameProblem: cell<string | undefined>(undefined),
    namesTried: cell<boolean>(false),
    nameRules: cell<RuleSet | undefined>(undefined, isDeepStrictEqual),
    mdnsRules: byFamily(() => cell<RuleSet | undefined>(undefined, isDeepStrictEqual)),
    policies: cell<ReceivedPolicies>(undefined),
    localPods: cell<LocalPods>({ pods: new Map(), isComplete: false }),
    policyRules: byFamily(() => cell<PolicyRules | undefined>(undefined)),
    policiesReady: byFamily(() => cell<boolean>(false)),
    balancerRules: byFamily(() => cell<RuleSet | undefined>(undefined, isDeepStrictEqual)),
    podLink: cell<string | undefined>(undefined),
    hostPortRules: byFamily(() => cell<HostPortRules | undefined>(undefined)),
    pools: cell<readonly Pool[] | undefined>(undefined, isDeepStrictEqual),
  }
}

function areSameNames(before: readonly string[], after: readonly string[]): boolean {
  return before.join() === after.join()
}
