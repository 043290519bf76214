/** Loop: the rules of NetworkPolicies that this node wants, from its policies and its pods. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { RuleFamily } from '../rule-family.ts'
import type { LocalPods } from './pod-isolation.ts'
import { noParts, type PolicyRules, policyRules } from './policy-rules.ts'
import type { ReceivedPolicies } from './received-state.ts'

export type PolicyManagerNeeds = {
  /** Family of the rules. Default: IPv4. */
  readonly family: RuleFamily
  readonly reads: {
    readonly policies: Reader<ReceivedPolicies>
    readonly localPods: Reader<LocalPods>
    readonly networkMessage: Reader<NetworkMessage | undefined>
    /** Why pods of this node are not on the network of the fleet: their addresses mean nothing there. */
    readonly networkObstacle: Reader<unknown>
  }
  readonly writes: {
    /** Undefined: there are no policies, or pods have no addresses of the family. */
    readonly policyRules: Cell<PolicyRules | undefined>
    /**
     * `policyRules` has all pods that run: those of an earlier agent in the kernel are not needed any more. Of IPv6 it holds for the rules of
     * host ports as well.
     */
    readonly policiesReady: Cell<boolean>
  }
  readonly clock: Clock
}

export function policyManager({ family, reads, writes, clock }: PolicyManagerNeeds): Loop {
  const { policies, localPods, networkMessage, networkObstacle } = reads
  const isIPv4 = family.family === 'IPv4'
  const changed = alarm(clock)
  let made = { of: policies.get(), parts: noParts() }

  const update = () => {
    const hasFamily = isIPv4 || networkMessage.get()?.ipv6 !== undefined
    const message = hasFamily && networkObstacle.get() === undefined ? policies.get() : undefined
    const { pods, isComplete } = localPods.get()
    if (made.of !== message) made = { of: message, parts: noParts() }
    writes.policyRules.set(typeof message === 'object' ? policyRules(message, pods, family, made.parts) : undefined)
    writes.policiesReady.set(isComplete || (isIPv4 ? typeof message !== 'object' : !hasFamily))
  }

  return {
    name: isIPv4 ? 'policies' : 'policies-ipv6',
    async run(signal) {
      const ofBoth = [policies, localPods, networkObstacle]
      const watched = isIPv4 ? ofBoth : [...ofBoth, networkMessage]
      const stops = watched.map((one) => one.onChange(changed.ring))
      try {
        while (!signal.aborted) {
          update()
          await changed.sleep(longestTimerMs, signal)
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}
