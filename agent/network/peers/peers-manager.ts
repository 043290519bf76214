/** Loop: routes to the pods of other nodes, and Docker's part in the network of pods, as the fleet's message wants them. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { MachineCondition } from '../../node/status/conditions.ts'
import type { RuleSet } from '../rule-set.ts'
import { networkCondition } from './network-condition.ts'
import { type PeerNetwork, peerNetworkOf } from './peer-network.ts'
import { peerRules } from './peer-rules.ts'
import { afterSteps, type HostLinks, type MadeRoutes, planRoutes, type RouteStep } from './route-steps.ts'

export type StepFailure = { readonly step: RouteStep; readonly because: string }

/** Routes, tunnel and Docker's rules on this machine. */
export interface HostNetwork {
  /** Read without starting a process. */
  links(): Promise<HostLinks>
  /** What an earlier agent made, as far as the kernel shows it. */
  made(): Promise<MadeRoutes>
  /** Takes all steps in order, also after a failure; resolves with the failures. */
  apply(steps: readonly RouteStep[]): Promise<readonly StepFailure[]>
  /** Docker accepts packets with our mark from now on. Rejects with the reason where it has no place for such a rule. */
  acceptMarked(): Promise<void>
  /** Removes that rule, if it is there. */
  refuseMarked(): Promise<void>
}

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
  readonly bridge: PodBridge
  readonly reads: {
    readonly networkMessage: Reader<NetworkMessage | undefined>
    readonly ruleProblem: Reader<string | undefined>
    /** Changes when the engine starts, among others. */
    readonly runtime: Reader<unknown>
  }
  readonly writes: {
    /** Undefined: the fleet has no network. */
    readonly peerRules: Cell<RuleSet | undefined>
    readonly networkConditions: Cell<readonly MachineCondition[]>
    /** The routes were put in place once, or as many of them as can be. */
    readonly routesApplied: Cell<boolean>
  }
  readonly clock: Clock
  readonly log: Log
}

/** A link that goes down takes its routes with it; a file of the kernel shows that. */
const linksMs = 5_000
/** Docker's rules are looked at by a process. What failed is tried again. */
const verifyMs = 30_000

export function peersManager(needs: PeersManagerNeeds, { nodeName }: { readonly nodeName: string }): Loop {
  const { host, bridge, reads, writes, clock, log } = needs
  const wake = alarm(clock)
  /** Undefined: not known, as nothing was done yet. */
  let made: MadeRoutes | undefined
  let wanted: PeerNetwork | undefined
  let isOn = false
  let verifyAtMs = 0
  let gaps: readonly string[] = []
  let failedSteps = '[]'
  /** By subject: the failure that was logged last. */
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

  /** The rules first: they are there before a route leads packets to them. */
  const receive = (message: NetworkMessage | undefined) => {
    isOn = message !== undefined
    wanted = message && peerNetworkOf(message, nodeName)
    writes.peerRules.set(wanted && peerRules(wanted))
    verifyNow()
  }

  const verifyNow = () => {
    verifyAtMs = 0
    wake.ring()
  }

  const syncRoutes = async (isDue: boolean) => {
    made ??= await host.made()
    const { steps, inTheWay } = planRoutes(wanted, made, await host.links())
    if (steps.length === 0) return showGaps(inTheWay)
    // What has just failed fails again: it waits for the next verification.
    if (!isDue && JSON.stringify(steps) === failedSteps) return
    const failed = await host.apply(steps)
    made = afterSteps(made, steps, failed)
    failedSteps = JSON.stringify(failed.map(({ step }) => step))
    if (steps.length > failed.length) log.info('Routes to pods changed', { steps: steps.length - failed.length })
    showGaps([...failed.flatMap(gapOf), ...inTheWay])
    const others = failed.filter(({ step }) => step.step !== 'addRoute')
    if (others.length > 0) throw new Error(others.map(({ step, because }) => `${step.step}: ${because}`).join('; '))
  }

  const showGaps = (next: readonly string[]) => {
    for (const gap of next) if (!gaps.includes(gap)) log.warn('Pods of a node cannot be reached', { because: gap })
    gaps = next
  }

  const pass = async () => {
    if (!isOn && made === undefined) return
    const isDue = clock.monotonicMs() >= verifyAtMs
    await attempt('routes', () => syncRoutes(isDue))
    if (isDue) {
      verifyAtMs = clock.monotonicMs() + verifyMs
      await attempt('forwarding', isOn ? host.acceptMarked : host.refuseMarked)
      await attempt('bridge', bridge.adjust)
    }
    if (!isOn && failures.size === 0) made = undefined
    writes.routesApplied.set(isOn)
    showCondition()
  }

  const showCondition = () => {
    const absent = wanted === undefined ? ['The controller has not assigned a range for pods to this node'] : []
    const rules = reads.ruleProblem.get()
    const problems = [...absent, ...failures.values(), ...(rules === undefined ? [] : [rules])]
    const routes = (wanted?.routes.length ?? 0) - gaps.length
    writes.networkConditions.set(isOn ? [networkCondition({ problems, gaps, routes })] : [])
  }

  return {
    name: 'peers',
    async run(signal) {
      const stops = [
        reads.networkMessage.subscribe(receive),
        reads.ruleProblem.onChange(wake.ring),
        reads.runtime.onChange(verifyNow),
      ]
      try {
        while (!signal.aborted) {
          await pass()
          await wake.sleep(isOn || made !== undefined ? linksMs : longestTimerMs, signal)
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

function gapOf({ step, because }: StepFailure): readonly string[] {
  return step.step === 'addRoute' ? [`no route to ${step.route.range} by ${step.route.gateway}: ${because}`] : []
}
