/** Loop: the rules of host ports that this node wants, from its pods. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ByFamily } from '../../../api/text/ip-address.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { LocalPods } from '../policies/pod-isolation.ts'
import { type HostPortRules, hostPortRules } from './host-port-rules.ts'

export type HostPortManagerNeeds = {
  readonly reads: {
    readonly localPods: Reader<LocalPods>
    readonly networkMessage: Reader<NetworkMessage | undefined>
  }
  readonly writes: {
    /** undefined: the fleet has no network, and the node no name server. */
    readonly hostPortRules: ByFamily<Cell<HostPortRules | undefined>>
  }
  readonly clock: Clock
}

export function hostPortManager({ reads, writes, clock }: HostPortManagerNeeds): Loop {
  const changed = alarm(clock)
  return {
    name: 'host-ports',
    async run(signal) {
      const stops = [reads.localPods.onChange(changed.ring), reads.networkMessage.onChange(changed.ring)]
      try {
        while (!signal.aborted) {
          const { pods } = reads.localPods.get()
          const hasNetwork = reads.networkMessage.get() !== undefined
          writes.hostPortRules.IPv4.set(hasNetwork ? hostPortRules(pods, 'IPv4') : undefined)
          writes.hostPortRules.IPv6.set(hostPortRules(pods, 'IPv6'))
          await changed.sleep(longestTimerMs, signal)
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}
