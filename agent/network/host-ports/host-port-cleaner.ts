/** Loop: removes flows of UDP to host ports of IPv6 that rules of now would lead elsewhere, as Docker does for those of IPv4. */
import { alarm } from '../../../daemon/alarm.ts'
import type { Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { RuleSet } from '../rule-set.ts'
import type { FlowTable } from '../services/flow-cleaner.ts'
import { areSameHostTargets, type HostPortTargets, hostPortTargets, isStaleHostFlow } from './host-port-flows.ts'
import type { HostPortRules } from './host-port-rules.ts'

export type HostPortCleanerNeeds = {
  /** Of IPv6. */
  readonly flows: FlowTable
  /** Whether this machine has the address. */
  readonly isOwn: (address: string) => Promise<boolean>
  readonly reads: {
    readonly ipv6HostPortRules: Reader<HostPortRules | undefined>
    /** What the kernel has. */
    readonly ipv6AppliedRules: Reader<readonly RuleSet[]>
  }
  readonly clock: Clock
  readonly log: Log
}

/** Of one list: flows of all clients from one address of the node to one pod are one. */
const mostRemoved = 1_000
const retryMs = 30_000

export function hostPortCleaner({ flows, isOwn, reads, clock, log }: HostPortCleanerNeeds): Loop {
  const changed = alarm(clock)
  let cleaned: HostPortTargets = new Map()
  let isFailing = false

  /** Resolves once flows agree with the rules that the kernel has. */
  const pass = async (): Promise<void> => {
    const rules = reads.ipv6HostPortRules.get()
    if (rules === undefined || !reads.ipv6AppliedRules.get().includes(rules)) return
    const targets = hostPortTargets(rules.pods)
    if (areSameHostTargets(cleaned, targets)) return
    let removed = 0
    for (const flow of await flows.list((one) => isStaleHostFlow(one, cleaned, targets), mostRemoved)) {
      if (!(await isOwn(flow.address))) continue
      await flows.remove(flow)
      removed++
    }
    if (removed > 0) log.info('Flows of UDP to host ports removed: their pod is another, or gone', { flows: removed })
    cleaned = targets
  }

  return {
    name: 'udp-flows-host-ports',
    async run(signal) {
      const stop = reads.ipv6AppliedRules.onChange(changed.ring)
      try {
        while (!signal.aborted) {
          try {
            await pass()
            isFailing = false
          } catch (error) {
            if (!isFailing) log.warn('Flows of UDP to host ports that changed stay until they time out', { error })
            isFailing = true
          }
          await changed.sleep(isFailing ? retryMs : longestTimerMs, signal)
        }
      } finally {
        stop()
      }
    },
  }
}
