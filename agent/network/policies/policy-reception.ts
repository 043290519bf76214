/** Listener and loop: the policies of this node → a cell, and a checkpoint, so that pods are isolated after a reboot without a controller. */
import type { PoliciesMessage } from '../../../api/network/node-policies.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { closedPolicies, haveSameRules, type ReceivedPolicies } from './received-state.ts'

export interface PolicyCheckpoint {
  /** `damaged`: there is a file that cannot be used. Undefined: there is none. Never rejects. */
  load(): Promise<PoliciesMessage | 'damaged' | undefined>
  save(message: PoliciesMessage): Promise<void>
  clear(): Promise<void>
}

export type PolicyReceptionNeeds = {
  readonly writes: { readonly policies: Cell<ReceivedPolicies> }
  readonly checkpoint: PolicyCheckpoint
  readonly clock: Clock
  readonly log: Log
}

export interface PolicyReception extends Loop {
  /** Reads the checkpoint into the cell; once, before messages arrive. `hadNetwork`: this node was part of a network of the fleet before. Never rejects. */
  load(hadNetwork: boolean): Promise<void>
  policies(message: PoliciesMessage): void
  /** The controller publishes no policies: the cell and the checkpoint are emptied. */
  policiesOff(): void
  /** Where nothing was received, the cell gets policies with which all pods are closed. */
  close(): void
}

/** A new rule is saved soon. Addresses of peers change with every pod of the fleet: a card is written for them once a minute at the most. */
const saveMs = { rules: 1_000, addresses: 60_000 }

export function policyReception({ writes, checkpoint, clock, log }: PolicyReceptionNeeds): PolicyReception {
  const { policies } = writes
  const wake = alarm(clock)
  let saved: ReceivedPolicies
  let hasFailed = false

  const save = async () => {
    const now = policies.get()
    try {
      if (typeof now === 'object') await checkpoint.save(now)
      else await checkpoint.clear()
      saved = now
      hasFailed = false
    } catch (error) {
      const what = 'The checkpoint of the policies was not saved'
      if (hasFailed) log.debug(what, { error })
      else log.warn(what, { error })
      hasFailed = true
    }
  }

  const waitUnsaved = async (signal: AbortSignal) => {
    const sinceMs = clock.monotonicMs()
    for (;;) {
      const isUrgent = !hasFailed && !haveSameRules(policies.get(), saved)
      const leftMs = sinceMs + (isUrgent ? saveMs.rules : saveMs.addresses) - clock.monotonicMs()
      if (leftMs <= 0 || signal.aborted) return
      await wake.sleep(leftMs, signal)
    }
  }

  return {
    name: 'policy-reception',
    async load(hadNetwork) {
      const found = await checkpoint.load()
      if (found === 'damaged') log.warn('Pods have no connections until the controller has sent their policies')
      saved = found === 'damaged' ? undefined : found
      policies.set(found === 'damaged' ? closedPolicies : (found ?? (hadNetwork ? 'none' : undefined)))
    },
    policies(message) {
      const known = policies.get()
      const isOlder = typeof known === 'object' && known.epoch === message.epoch && known.version >= message.version
      if (isOlder) return
      policies.set(message)
      wake.ring()
    },
    policiesOff() {
      if (policies.get() === 'none') return
      policies.set('none')
      wake.ring()
    },
    close() {
      if (policies.get() === undefined) policies.set(closedPolicies)
    },
    async run(signal) {
      while (!signal.aborted) {
        if (policies.get() === saved || (policies.get() === 'none' && saved === undefined)) {
          await wake.sleep(longestTimerMs, signal)
          continue
        }
        await waitUnsaved(signal)
        await save()
      }
      if (typeof policies.get() === 'object' && policies.get() !== saved) await save()
    },
  }
}
