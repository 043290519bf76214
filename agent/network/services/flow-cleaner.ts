/** Loop: removes the kernel's flows of UDP to endpoints that are gone, once new flows go to others. */
import { alarm } from '../../../daemon/alarm.ts'
import type { Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { RuleFamily } from '../rule-family.ts'
import type { RuleSet } from '../rule-set.ts'
import type { ServiceRules } from './service-manager.ts'
import { areSameTargets, isStaleFlow, type UdpFlow, type UdpTargets, udpTargets } from './stale-flows.ts'

/** The kernel's table of connections. */
export interface FlowTable {
  /** Flows of UDP that `isWanted` picks, one for each address and endpoint, at most `most`. Rejects when they cannot be read. */
  list(isWanted: (flow: UdpFlow) => boolean, most: number): Promise<readonly UdpFlow[]>
  /** Removes the flows of all clients; does nothing if there is no such flow. */
  remove(flow: UdpFlow): Promise<void>
}

export type FlowCleanerNeeds = {
  /** Family of the rules and flows. Default: IPv4. */
  readonly family: RuleFamily
  readonly flows: FlowTable
  readonly reads: {
    readonly serviceRules: Reader<ServiceRules | undefined>
    /** What the kernel has. */
    readonly appliedRules: Reader<readonly RuleSet[]>
  }
  readonly clock: Clock
  readonly log: Log
}

/** Flows removed after one listing. Each removal is a short process. */
const mostRemoved = 200
const mostLists = 20
const retryMs = 30_000

export function flowCleaner({ flows, reads, clock, log, family }: FlowCleanerNeeds): Loop {
  const changed = alarm(clock)
  /** Undefined: there may be flows of before this agent. */
  let cleaned: UdpTargets | undefined
  let isFailing = false

  const clean = async (targets: UdpTargets) => {
    for (let lists = 0; lists < mostLists; lists++) {
      const stale = await flows.list((flow) => isStaleFlow(flow, targets), mostRemoved)
      for (const flow of stale) await flows.remove(flow)
      if (stale.length > 0) log.info('Flows of UDP to endpoints that are gone removed', { flows: stale.length })
      if (stale.length < mostRemoved) return
    }
  }

  /** Resolves with the time to wait. */
  const pass = async (): Promise<number> => {
    const rules = reads.serviceRules.get()
    if (rules === undefined || !reads.appliedRules.get().includes(rules)) return longestTimerMs
    const targets = udpTargets(rules.services.values(), family)
    if (cleaned !== undefined && areSameTargets(cleaned, targets)) return longestTimerMs
    if (targets.byAddress.size > 0) await clean(targets)
    cleaned = targets
    return longestTimerMs
  }

  return {
    name: family.family === 'IPv4' ? 'udp-flows' : 'udp-flows-ipv6',
    async run(signal) {
      const stop = reads.appliedRules.onChange(changed.ring)
      try {
        while (!signal.aborted) {
          let waitMs = retryMs
          try {
            waitMs = await pass()
            isFailing = false
          } catch (error) {
            if (!isFailing) log.warn('Flows of UDP to endpoints that are gone stay until they time out', { error })
            isFailing = true
          }
          await changed.sleep(waitMs, signal)
        }
      } finally {
        stop()
      }
    },
  }
}
