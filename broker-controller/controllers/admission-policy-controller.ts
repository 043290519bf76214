/**
 * Loop: notes in the status of each ValidatingAdmissionPolicy which generation of it is in force
 * (pkg/controller/validatingadmissionpolicystatus/controller.go). Expressions are not checked against the schemas of the kinds that they
 * match, so `typeChecking` stays absent: it would mean that nothing is wrong with them.
 */
import type { ValidatingAdmissionPolicy } from '../../api/admission/validating-admission-policy.ts'
import type { Clock } from '../../daemon/clock.ts'
import { runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../store/informer.ts'
import { rewrite } from '../store/rewrite.ts'
import type { Store } from '../store/store.ts'

export type AdmissionPolicyNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

export function admissionPolicyController({ store, clock, log }: AdmissionPolicyNeeds): Loop {
  const run = async (signal: AbortSignal) => {
    const queue = workQueue(clock)
    const policies = informer({ store, clock, log }, 'validatingadmissionpolicies', (present) => {
      if (present !== undefined && observedStatus(present) !== undefined) queue.add(keyText(present.metadata))
    })
    const reconcile = async (key: string) => {
      await rewrite({ store, clock }, 'validatingadmissionpolicies', {
        key: keyFrom(key),
        part: 'status',
        change(policy) {
          const status = observedStatus(policy)
          return status && { ...policy, status }
        },
      })
      return undefined
    }
    const work = async () => {
      await policies.listed
      if (!signal.aborted) await runController({ name: 'admission-policies', reconcile }, queue, log, signal)
    }
    await runLoops(
      [
        { name: 'admission-policies', run: policies.run },
        { name: 'work', run: work },
      ],
      signal,
      log,
    )
  }
  return { name: 'admission-policies', run }
}

/** The status with the generation as it is now; undefined: it has that already. */
export function observedStatus({
  metadata: { generation = 0 },
  status,
}: ValidatingAdmissionPolicy): ValidatingAdmissionPolicy['status'] {
  if (generation <= (status?.observedGeneration ?? 0)) return undefined
  return { ...status, observedGeneration: generation }
}
