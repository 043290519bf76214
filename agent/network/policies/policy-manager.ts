/** Loop: the rules of NetworkPolicies that this node wants, from its policies and its pods. */
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { LocalPods } from './pod-isolation.ts'
import { noParts, type PolicyRules, policyRules } from './policy-rules.ts'
import type { ReceivedPolicies } from './received-state.ts'

export type PolicyManagerNeeds = {
  readonly reads: { readonly policies: Reader<ReceivedPolicies>; readonly localPods: Reader<LocalPods> }
  readonly writes: {
    /** Undefined: there are no policies. */
    readonly policyRules: Cell<PolicyRules | undefined>
    /** `policyRules` has all pods that run: those of an earlier agent in the kernel are not needed any more. */
    readonly policiesReady: Cell<boolean>
  }
  readonly clock: Clock
}

export function policyManager({ reads, writes, clock }: PolicyManagerNeeds): Loop {
  const { policies, localPods } = reads
  const changed = alarm(clock)
  let made = { of: policies.get(), parts: noParts() }

  const update = () => {
    const message = policies.get()
    const { pods, isComplete } = localPods.get()
    if (made.of !== message) made = { of: message, parts: noParts() }
    writes.policyRules.set(typeof message === 'object' ? policyRules(message, pods, made.parts) : undefined)
    writes.policiesReady.set(typeof message !== 'object' || isComplete)
  }

  return {
    name: 'policies',
    async run(signal) {
      const stops = [policies.onChange(changed.ring), localPods.onChange(changed.ring)]
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
