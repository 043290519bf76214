/**
 * Loop: removes flows of UDP to host ports that new flows would not follow: those of IPv4 are translated by Docker, which removes none
 * (20.10.24), those of IPv6 by rules of the agent.
 */
import { type ByFamily, type IPFamily, ipFamilies } from '../../../api/text/ip-address.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { LocalPods } from '../policies/pod-isolation.ts'
import type { RuleSet } from '../rule-set.ts'
import type { FlowTable } from '../services/flow-cleaner.ts'
import type { UdpFlow } from '../services/stale-flows.ts'
import { areSameHostTargets, type HostPortTargets, hostPortTargets, isStaleHostFlow } from './host-port-flows.ts'
import type { HostPortRules } from './host-port-rules.ts'

export type HostPortCleanerNeeds = {
  readonly flows: ByFamily<FlowTable>
  /** Whether this machine has the address. */
  readonly isOwn: (address: string) => Promise<boolean>
  readonly reads: {
    readonly localPods: Reader<LocalPods>
    readonly hostPortRules: Pick<ByFamily<Reader<HostPortRules | undefined>>, 'IPv6'>
    /** What the kernel has. */
    readonly appliedRules: Pick<ByFamily<Reader<readonly RuleSet[]>>, 'IPv6'>
  }
  readonly clock: Clock
  readonly log: Log
}

/** Flows in one listing: the flows of all clients from one address of the node to one pod count as one. */
const mostListed = 1_000
/**
 * Listings read for one change: flows to other machines on the port of a pod, such as a resolver's port 53, fill
 * listings too.
 */
const mostLists = 20
const retryMs = 30_000

export function hostPortCleaner({ flows, isOwn, reads, clock, log }: HostPortCleanerNeeds): Loop {
  const changed = alarm(clock)
  const cleaned: Record<IPFamily, HostPortTargets> = { IPv4: new Map(), IPv6: new Map() }
  let isFailing = false

  /** The pods to which new flows go now; undefined: not known. */
  const podsInForce: ByFamily<() => LocalPods['pods'] | undefined> = {
    // Docker opens the ports of a pod before the pod has its address here.
    IPv4: () => reads.localPods.get().pods,
    IPv6: () => {
      const rules = reads.hostPortRules.IPv6.get()
      return rules !== undefined && reads.appliedRules.IPv6.get().includes(rules) ? rules.pods : undefined
    },
  }

  /** Returns how many were removed. `elsewhere`: addresses that are not of this machine, to which those of the others are added. */
  const removeOwn = async (family: IPFamily, found: readonly UdpFlow[], elsewhere: Set<string>): Promise<number> => {
    let removed = 0
    for (const flow of found) {
      if (elsewhere.has(flow.address)) continue
      if (!(await isOwn(flow.address))) {
        elsewhere.add(flow.address)
        continue
      }
      await flows[family].remove(flow)
      removed++
    }
    return removed
  }

  /** Resolves once the flows of the family agree with what translates new ones. */
  const clean = async (family: IPFamily): Promise<void> => {
    const pods = podsInForce[family]()
    if (pods === undefined) return
    const [before, now] = [cleaned[family], hostPortTargets(pods, family)]
    if (areSameHostTargets(before, now)) return
    const elsewhere = new Set<string>()
    let removed = 0
    for (let lists = 0; lists < mostLists; lists++) {
      const isWanted = (flow: UdpFlow) => !elsewhere.has(flow.address) && isStaleHostFlow(flow, before, now)
      const found = await flows[family].list(isWanted, mostListed)
      removed += await removeOwn(family, found, elsewhere)
      if (found.length < mostListed) break
    }
    if (removed > 0) log.info('Flows of UDP to host ports removed: their pod is another, or gone', { flows: removed })
    cleaned[family] = now
  }

  /** Resolves with the time to wait. */
  const pass = async (): Promise<number> => {
    const failures: unknown[] = []
    for (const family of ipFamilies) await clean(family).catch((error: unknown) => failures.push(error))
    const [error] = failures
    if (error !== undefined && !isFailing)
      log.warn('Flows of UDP to host ports that changed stay until they time out', { error })
    isFailing = error !== undefined
    return isFailing ? retryMs : longestTimerMs
  }

  return {
    name: 'udp-flows-host-ports',
    async run(signal) {
      const stops = [reads.localPods.onChange(changed.ring), reads.appliedRules.IPv6.onChange(changed.ring)]
      try {
        while (!signal.aborted) await changed.sleep(await pass(), signal)
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}
