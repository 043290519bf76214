/** Loop: routes to the pods of other nodes, and Docker's part in the network of pods, as the fleet's message wants them. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { NodeAddress, NodeStatus } from '../../../api/node.ts'
import { type ByFamily, ipFamilies, isIPv4 } from '../../../api/text/ip-address.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { MachineCondition } from '../../node/status/conditions.ts'
import { type AddressProofs, provenNetworkOf, unprovenAddresses } from '../probes/proven-network.ts'
import { ruleFamilies } from '../rule-family.ts'
import type { RuleSet } from '../rule-set.ts'
import { type WireguardLink, wireguardSync } from '../wireguard/wireguard-sync.ts'
import { holdEarlierRoutes } from './earlier-routes.ts'
import type { PeerNetwork } from './family-network.ts'
import { firewallProblem, firewallRemedy } from './firewall-backend.ts'
import type { IPv6Guard } from './ipv6-guard.ts'
import { networkCondition } from './network-condition.ts'
import { podNetworkForm } from './peer-ipv6.ts'
import { peerRules } from './peer-rules.ts'
import {
  newPeersState,
  nextPass,
  onDoubt,
  onGivenUp,
  onNetwork,
  onVerify,
  type PeersState,
  verifyMs,
} from './peers-state.ts'
import { moveDelayMs } from './pod-moves.ts'
import { type HostNetwork, routeSync } from './route-sync.ts'

/** The engine's network of pods. */
export interface PodBridge {
  /**
   * Pods on a network of the other mode lose it, and are started again on one of the present mode; pods can reach themselves through
   * a Service.
   */
  adjust(): Promise<void>
}

export type PeersManagerNeeds = {
  readonly host: HostNetwork
  readonly wireguard: WireguardLink
  readonly bridge: PodBridge
  readonly ipv6: Pick<IPv6Guard, 'verify' | 'remove'>
  readonly reads: {
    readonly networkMessage: Reader<NetworkMessage | undefined>
    /** Which addresses of nodes may be used. */
    readonly addressProofs: Reader<AddressProofs>
    /** Without a message: the controller has none, and not only the checkpoint. */
    readonly networkCurrent: Reader<boolean>
    /** Why this node has no part in the network of the fleet: its pods leave their present one. */
    readonly networkObstacle: Reader<unknown>
    readonly ruleProblem: ByFamily<Reader<string | undefined>>
    /** Changes when another program has removed the table: it may have removed Docker's rules, too. */
    readonly ruleRemovals: ByFamily<Reader<number>>
    readonly nodeStatus: Reader<NodeStatus | undefined>
    /** Changes when the engine starts, among others. */
    readonly runtime: Reader<{ readonly info?: { readonly firewallBackend?: string | undefined } | undefined }>
  }
  readonly writes: {
    /** Undefined: the fleet has no network, or pods of this node no addresses of the family. */
    readonly peerRules: ByFamily<Cell<RuleSet | undefined>>
    /** The bridge of the pods of this node; undefined: it is not known. */
    readonly podLink: Cell<string | undefined>
    readonly networkConditions: Cell<readonly MachineCondition[]>
    /** The routes were put in place once, or as many of them as can be. */
    readonly routesApplied: Cell<boolean>
    /** Pods on a network of the other mode may be started again. */
    readonly podsMayMove: Cell<boolean>
  }
  /** Forwarding of IPv6 packets; `restore` resolves where nothing was enabled. */
  readonly ipv6Forwarding: { enable(): Promise<void>; restore(): Promise<void> }
  /** The kernel of this machine has IPv6 on. */
  readonly hasIPv6: boolean
  readonly clock: Clock
  readonly log: Log
}

/** A link that goes down takes its routes with it; a file of the kernel shows that. */
const linksMs = 5_000

export function peersManager(needs: PeersManagerNeeds, { nodeName }: { readonly nodeName: string }): Loop {
  const { bridge, reads, writes, clock, log } = needs
  const wake = alarm(clock)
  let wanted: PeerNetwork | undefined
  let state = newPeersState
  const { attempt, failures } = attempts(log)
  const { routes, sync, unreached } = dataPath(needs, attempt, () => wantedOf(needs, nodeName))

  const enter = (next: PeersState) => {
    state = next
    writes.podsMayMove.set(next.mayMove)
  }
  /** The rules first: they are there before a route leads packets to them. */
  const receive = (message: NetworkMessage | undefined) => {
    const form = podNetworkForm(message, nodeName, needs.hasIPv6)
    const delayMs = message === undefined ? 0 : moveDelayMs(message, nodeName)
    enter(onNetwork(state, { isOn: message !== undefined, form, delayMs, nowMs: clock.monotonicMs() }))
    want()
  }
  const want = () => {
    wanted = wantedOf(needs, nodeName)
    setRules(writes, wanted, routes.podLink())
    wake.ring()
  }
  const leave = () => {
    if (!reads.networkCurrent.get() || reads.networkMessage.get() !== undefined) return
    enter(onGivenUp(state))
    wake.ring()
  }
  const doubt = () => {
    enter(onDoubt(state))
    wake.ring()
  }

  const pass = async () => {
    const nowMs = clock.monotonicMs()
    const failed = { hasBridgeFailed: failures.has('bridge'), hasFirewallFailed: failures.has('firewall') }
    const next = nextPass(state, { nowMs, isIdle: routes.isIdle(), ...failed })
    if (next.pass === 'idle') {
      if (next.adjustsBridge) await attempt('bridge', bridge.adjust)
      enter({ ...state, isLeavingDue: state.isLeavingDue && failures.has('bridge') })
      return
    }
    if (next.movesNow) enter({ ...state, mayMove: true })
    await sync(wanted, next.isDue)
    if (next.isDue) {
      enter(onVerify(state, next, clock.monotonicMs()))
      const { isFirewallDue } = next
      await verifyRules(needs, attempt, { isOn: state.isOn, withIPv6: wanted?.ipv6 !== undefined, isFirewallDue })
    }
    if (next.adjustsBridge) {
      enter({ ...state, isBridgeDue: false })
      await attempt('bridge', bridge.adjust)
    }
    report()
  }
  const report = () => {
    const { isOn } = state
    if (!isOn && failures.size === 0) routes.forget()
    writes.routesApplied.set(isOn)
    writes.networkConditions.set(
      isOn ? [conditionOf({ wanted, failures, ...unreached(), ...readFor(reads, nodeName) })] : [],
    )
  }

  return {
    name: 'peers',
    async run(signal) {
      const stops = [
        reads.networkMessage.subscribe(receive),
        ...[reads.networkCurrent, reads.networkObstacle].map((one: Reader<unknown>) => one.subscribe(leave)),
        reads.addressProofs.onChange(want),
        ...[...Object.values(reads.ruleProblem), reads.networkCurrent].map((one: Reader<unknown>) =>
          one.onChange(wake.ring),
        ),
        ...[reads.runtime, ...Object.values(reads.ruleRemovals)].map((one: Reader<unknown>) => one.onChange(doubt)),
      ]
      try {
        if (state.isOn) await holdEarlierRoutes({ routes, reads, clock }, wake, signal)
        while (!signal.aborted) {
          await pass()
          await wake.sleep(state.isOn || !routes.isIdle() ? linksMs : idleMs(state.isLeavingDue), signal)
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

function idleMs(isLeavingDue: boolean): number {
  return isLeavingDue ? verifyMs : longestTimerMs
}

function setRules(
  { peerRules: rules, podLink: link }: PeersManagerNeeds['writes'],
  wanted: PeerNetwork | undefined,
  podLink: string | undefined,
): void {
  link.set(podLink)
  for (const family of ipFamilies) rules[family].set(wanted && peerRules(wanted, ruleFamilies[family], podLink))
}

type Wants = { readonly isOn: boolean; readonly withIPv6: boolean; readonly isFirewallDue: boolean }

/** What is beside our table of IPv4: Docker's rules, and IPv6 where pods have none. */
async function verifyRules(needs: PeersManagerNeeds, attempt: Attempt, wants: Wants): Promise<void> {
  const { isOn, withIPv6, isFirewallDue } = wants
  const { host, ipv6, ipv6Forwarding, reads } = needs
  const acceptMarked = async () => {
    const problem = firewallProblem(reads.runtime.get().info?.firewallBackend)
    if (problem !== undefined) throw new Error(`${problem}. ${firewallRemedy}`)
    await host.acceptMarked(withIPv6)
  }
  if (isFirewallDue) await attempt('firewall', isOn ? acceptMarked : host.refuseMarked)
  await attempt('ipv6', isOn ? ipv6.verify : ipv6.remove)
  await attempt('ipv6 forwarding', withIPv6 ? ipv6Forwarding.enable : ipv6Forwarding.restore)
}

type Attempt = (subject: string, work: () => Promise<void>) => Promise<void>

/** Routes, and the peers behind them: those are looked at by a process. */
function dataPath(
  { host, wireguard: link, writes, clock, log }: PeersManagerNeeds,
  attempt: Attempt,
  wantedNow: () => PeerNetwork | undefined,
) {
  const routes = routeSync({ host, log })
  const wireguard = wireguardSync({ link, clock, log })
  const sync = async (wanted: PeerNetwork | undefined, isDue: boolean) => {
    let hasChanged = false
    const podLink = routes.podLink()
    await attempt('routes', async () => {
      hasChanged = await routes.sync(wanted, isDue)
    })
    // Another message, or another proof, may have arrived meanwhile: its rules are there already.
    if (routes.podLink() !== podLink) setRules(writes, wantedNow(), routes.podLink())
    const tunnel = wanted?.tunnel?.kind === 'wireguard' ? wanted.tunnel : undefined
    if (isDue || hasChanged) await attempt('wireguard', () => wireguard.sync(tunnel))
  }
  return {
    routes,
    sync,
    unreached: () => ({
      gaps: routes.gaps(),
      silent: [...routes.overlaps(), ...wireguard.silent(), ...routes.ipv6Gaps()],
    }),
  }
}

/** `failures`: by subject, the failure that was logged last, until an attempt succeeds. */
function attempts(log: Log) {
  const failures = new Map<string, string>()
  const attempt = async (subject: string, work: () => Promise<void>) => {
    try {
      await work()
      failures.delete(subject)
    } catch (error) {
      const failure = storyOf(error)
      if (failures.get(subject) !== failure) log.warn('The network of pods is not complete', { subject, error })
      failures.set(subject, failure)
    }
  }
  return { attempt, failures }
}

type Reached = {
  readonly wanted: PeerNetwork | undefined
  /** Addresses of this node. */
  readonly addresses: readonly NodeAddress[]
  readonly failures: ReadonlyMap<string, string>
  readonly gaps: readonly string[]
  /**
   * What is wrong, and no reason to place no pods here: nodes that may be switched off, networks with addresses of the fleet, nodes that are
   * not reached by IPv6.
   */
  readonly silent: readonly string[]
  /** The same: nodes that have not proven their address. */
  readonly unproven: readonly string[]
  /** Why the kernel does not have the rules. */
  readonly rules: readonly (string | undefined)[]
}

function wantedOf({ reads, hasIPv6 }: PeersManagerNeeds, nodeName: string) {
  const message = reads.networkMessage.get()
  return message && provenNetworkOf(message, nodeName, reads.addressProofs.get(), hasIPv6)
}

function readFor(reads: PeersManagerNeeds['reads'], node: string) {
  const { networkMessage, addressProofs, nodeStatus, ruleProblem } = reads
  const message = networkMessage.get()
  const unproven = message === undefined ? [] : unprovenAddresses(message, node, addressProofs.get())
  const rules = ipFamilies.map((family) => ruleProblem[family].get())
  return { addresses: nodeStatus.get()?.addresses ?? [], unproven, rules }
}

function conditionOf({ wanted, addresses, failures, gaps, silent, unproven, rules }: Reached): MachineCondition {
  const absent = wanted === undefined ? [whyNoNetwork(addresses)] : []
  // An engine that does not answer has a condition of its own; routes and rules work without it.
  const missing = [...failures].flatMap(([subject, failure]) => (subject === 'bridge' ? [] : [failure]))
  const problems = [...absent, ...missing, ...rules.flatMap((problem) => problem ?? [])]
  const routes = (wanted?.routes.length ?? 0) - gaps.length
  return networkCondition({
    problems,
    gaps: [...gaps, ...(wanted?.gaps ?? [])],
    silent: [...unproven, ...silent],
    routes,
  })
}

function whyNoNetwork(addresses: readonly NodeAddress[]): string {
  const own = addresses.flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []))
  if (own.length === 0 || own.some(isIPv4)) return 'The controller has not assigned a range for pods to this node'
  return `This node has no IPv4 address, which the network of pods needs (InternalIP ${own.join(', ')}): add one to its link, or set nodeIP`
}
