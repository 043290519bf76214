/** Loop: takes the addresses of load balancers that the controller has given to this node, and gives up those that it has not. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { type ByFamily, byFamily } from '../../../api/text/ip-address.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { NodeEvent } from '../../node/status/node-event.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import type { RuleSet } from '../rule-set.ts'
import {
  type AddressPhase,
  type AddressPhases,
  type AddressStep,
  otherHolderMs,
  planAddresses,
} from './address-plan.ts'
import { balancerRules } from './balancer-rules.ts'
import { addressPartners, wantedAddresses } from './wanted-addresses.ts'

/** The link of this node to the clients of load balancers. */
export type BalancerLink = { readonly device: string; readonly mac: string }

/** Addresses of this machine for load balancers. */
export interface BalancerHost {
  /** Read without starting a process. */
  held(): ReadonlySet<string>
  /** What the machine has, other than for a load balancer. Read without starting a process. */
  own(): ReadonlySet<string>
  /** The link with this address of the node; undefined: there is none, or it has no carrier. */
  link(address: string): BalancerLink | undefined
  /** MAC addresses that the kernel has on the link, by address: of those that were probed, and of others. Those of IPv6 cost a process. */
  answers(device: string, withIPv6: boolean): Promise<ReadonlyMap<string, string>>
  /** Takes all steps in their order. Rejects with the first failure; the others are done. */
  apply(steps: readonly AddressStep[], device: string | undefined): Promise<void>
  /** Removes all of it. */
  clear(): Promise<void>
}

export type BalancerManagerNeeds = {
  readonly host: BalancerHost
  readonly isConnected: () => boolean
  /** Records an Event of the node. */
  readonly event: (event: NodeEvent) => void
  readonly reads: {
    readonly networkMessage: Reader<NetworkMessage | undefined>
    readonly serviceStates: Reader<ServiceStates | undefined>
    readonly appliedRules: ByFamily<Reader<readonly RuleSet[]>>
  }
  readonly writes: {
    /** undefined: the fleet has no network of the family. */
    readonly balancerRules: ByFamily<Cell<RuleSet | undefined>>
  }
  readonly clock: Clock
  readonly log: Log
}

/** A link that goes down is found within this time, without a process; an answer to a probe within the other. */
const linkMs = 2_000
const answerMs = 250
const retryMs = 1_000

export function balancerManager(needs: BalancerManagerNeeds, { nodeName }: { readonly nodeName: string }): Loop {
  const { host, reads, writes, clock, log } = needs
  const changed = alarm(clock)
  const reportBlocked = blockedReports(needs)
  let phases: AddressPhases = new Map()
  let failure: string | undefined

  const wanted = (): readonly string[] => {
    const [network, states] = [reads.networkMessage.get(), reads.serviceStates.get()]
    // Without all of the Services, what an earlier agent held stays as long as the kernel keeps it.
    if (network === undefined) return []
    if (states?.isComplete !== true) return [...host.held()]
    const others = host.own()
    return wantedAddresses(states.services, network, nodeName).filter((ip) => !others.has(ip))
  }

  const giveUp = async (held: ReturnType<BalancerHost['held']>): Promise<void> => {
    if (held.size > 0 || phases.size > 0) await host.clear()
    for (const address of held) log.info('Load balancer address given up', { address })
    phases = new Map()
  }

  const carryOut = async (
    plan: ReturnType<typeof planAddresses>,
    isPart: (ip: string) => boolean,
    device: string | undefined,
  ): Promise<void> => {
    const steps = plan.steps.filter(({ ip }) => isPart(ip))
    await host.apply(steps, device)
    phases = new Map([...phasesOf(phases, (ip) => !isPart(ip)), ...phasesOf(plan.phases, isPart)])
    logSteps(log, steps)
    reportBlocked(phases)
  }

  const pass = async (): Promise<number> => {
    const network = reads.networkMessage.get()
    const addresses = wanted()
    const held = host.held()
    writes.balancerRules.IPv4.set(network && balancerRules(addresses, ipv4Rules))
    writes.balancerRules.IPv6.set(network?.ipv6 && balancerRules(addresses, ipv6Rules))
    if (addresses.length === 0) {
      await giveUp(held)
      return longestTimerMs
    }
    const own = network?.nodes.find(({ name }) => name === nodeName)?.address
    const link = own === undefined ? undefined : host.link(own)
    const facts = {
      wanted: addresses,
      partners: addressPartners(reads.serviceStates.get()?.services ?? new Map(), nodeName),
      held,
      answers: link === undefined ? new Map<string, string>() : await host.answers(link.device, isAskingIPv6(phases)),
      mac: link?.mac,
      hasRules: byFamily((family) => reads.appliedRules[family].get().length > 0),
      isConnected: needs.isConnected(),
    }
    const plan = planAddresses(phases, facts, clock.monotonicMs())
    // A link that has IPv6 off refuses those of IPv6: those of IPv4 do not wait for them.
    for (const isPart of [isOfIPv4, isOfIPv6]) await carryOut(plan, isPart, link?.device)
    return Math.min(plan.nextMs ?? linkMs, [...phases.values()].some(isAsking) ? answerMs : linkMs)
  }

  const attempt = async (): Promise<number> => {
    try {
      const restMs = await pass()
      failure = undefined
      return restMs
    } catch (error) {
      // What the kernel has is read again by the next pass.
      if (failure !== storyOf(error)) log.warn('Addresses of load balancers are not complete', { error })
      failure = storyOf(error)
      return retryMs
    }
  }

  return {
    name: 'load-balancers',
    async run(signal) {
      const { networkMessage, serviceStates, appliedRules } = reads
      const stops = [networkMessage, serviceStates, ...Object.values(appliedRules)].map((one) =>
        one.onChange(changed.ring),
      )
      try {
        while (!signal.aborted) await changed.sleep(await attempt(), signal)
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

function isAskingIPv6(phases: AddressPhases): boolean {
  return [...phases].some(([ip, { phase }]) => phase === 'probing' && isOfIPv6(ip))
}

function isOfIPv6(ip: string): boolean {
  return ip.includes(':')
}

function isOfIPv4(ip: string): boolean {
  return !isOfIPv6(ip)
}

function phasesOf(
  phases: AddressPhases,
  isPart: (ip: string) => boolean,
): readonly (readonly [string, AddressPhase])[] {
  return [...phases].filter(([ip]) => isPart(ip))
}

/** Answers of the link are waited for. */
function isAsking(phase: AddressPhase): boolean {
  return phase.phase === 'probing' || (phase.phase === 'held' && phase.checkUntilMs !== undefined)
}

function logSteps(log: Log, steps: readonly AddressStep[]): void {
  for (const { step, ip } of steps) {
    if (step === 'take') log.info('Load balancer address taken', { address: ip })
    if (step === 'release') log.info('Load balancer address given up', { address: ip })
  }
}

/** An address for which another machine has answered for longer than a change of its node takes is reported, once. */
function blockedReports({ clock, log, event }: Pick<BalancerManagerNeeds, 'clock' | 'log' | 'event'>) {
  const reported = new Map<string, string>()
  return (phases: AddressPhases) => {
    for (const ip of [...reported.keys()]) if (phases.get(ip)?.phase === 'held' || !phases.has(ip)) reported.delete(ip)
    for (const [ip, blocked] of blockedAddresses(phases, clock.monotonicMs())) {
      if (reported.get(ip) === blocked.mac) continue
      reported.set(ip, blocked.mac)
      log.warn('Another machine answers for the address of a load balancer', { address: ip, mac: blocked.mac })
      const remedy =
        'It is a node without a connection to the controller, or a machine that must have another address: take the address from the range of the DHCP server'
      const message = `The machine with the MAC address ${blocked.mac} answers for ${ip}, which a load balancer shall have here. ${remedy}`
      event({ type: 'Warning', reason: 'LoadBalancerAddressInUse', message })
    }
  }
}

function blockedAddresses(phases: AddressPhases, nowMs: number) {
  return [...phases].flatMap(([ip, phase]) => {
    const blocked = phase.phase === 'held' ? undefined : phase.blocked
    return blocked === undefined || nowMs - blocked.sinceMs < otherHolderMs ? [] : [[ip, blocked] as const]
  })
}
