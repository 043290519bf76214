/** Loop: the rules of host ports at addresses of IPv6 that this node wants, from its pods. */
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { LocalPods } from '../policies/pod-isolation.ts'
import { type HostPortRules, hostPortRules } from './host-port-rules.ts'

export type HostPortManagerNeeds = {
  readonly reads: { readonly localPods: Reader<LocalPods> }
  readonly writes: { readonly ipv6HostPortRules: Cell<HostPortRules | undefined> }
  readonly clock: Clock
}

export function hostPortManager({ reads, writes, clock }: HostPortManagerNeeds): Loop {
  const changed = alarm(clock)
  return {
    name: 'host-ports',
    async run(signal) {
      const stop = reads.localPods.onChange(changed.ring)
      try {
        while (!signal.aborted) {
          writes.ipv6HostPortRules.set(hostPortRules(reads.localPods.get().pods))
          await changed.sleep(longestTimerMs, signal)
        }
      } finally {
        stop()
      }
    },
  }
}
