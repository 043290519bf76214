/**
 * Loop: writes into the status of each ValidatingAdmissionPolicy which generation of it is in force, and which of its expressions do not fit the
 * types of the kinds that it is about (pkg/controller/validatingadmissionpolicystatus/controller.go).
 */
import type {
  ExpressionWarning,
  ValidatingAdmissionPolicy,
} from '../../../api/admission/validating-admission-policy.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store } from '../../store/store.ts'
import { inPieces } from '../handlers/turns.ts'
import { type KnownKinds, typeWarnings } from './type-warnings.ts'

export type PolicyStatusNeeds = {
  readonly store: Store
  readonly kinds: KnownKinds
  readonly clock: Clock
  readonly log: Log
}

export function policyStatusController({ store, kinds, clock, log }: PolicyStatusNeeds): Loop {
  const run = async (signal: AbortSignal) => {
    const queue = workQueue(clock)
    const policies = informer({ store, clock, log }, 'validatingadmissionpolicies', (present) => {
      if (present !== undefined && isUnobserved(present)) queue.add(keyText(present.metadata))
    })
    const reconcile = async (text: string) => {
      const key = keyFrom(text)
      const policy = await store.get('validatingadmissionpolicies', key)
      if (policy === undefined || !isUnobserved(policy)) return undefined
      const warnings = await inPieces(typeWarnings(policy.spec ?? {}, kinds), clock)
      const { uid, generation } = policy.metadata
      await rewrite({ store, clock }, 'validatingadmissionpolicies', {
        ...{ key, uid, part: 'status' },
        // One that was changed meanwhile is in the queue again.
        change: (present) => (present.metadata.generation === generation ? observed(present, warnings) : undefined),
      })
      return undefined
    }
    const work = async () => {
      await policies.listed
      if (!signal.aborted) await runController({ name: 'policy-status', reconcile }, queue, log, signal)
    }
    await runLoops(
      [
        { name: 'policies', run: policies.run },
        { name: 'work', run: work },
      ],
      signal,
      log,
    )
  }
  return { name: 'policy-status', run }
}

function isUnobserved({ metadata: { generation = 0 }, status }: ValidatingAdmissionPolicy): boolean {
  return generation > (status?.observedGeneration ?? 0)
}

/** The status with the generation as it is now, and with what was found in it: `typeChecking` is empty where nothing was. */
function observed(
  policy: ValidatingAdmissionPolicy,
  warnings: readonly ExpressionWarning[],
): ValidatingAdmissionPolicy {
  const { metadata, status } = policy
  const typeChecking = warnings.length === 0 ? {} : { expressionWarnings: warnings }
  return { ...policy, status: { ...status, observedGeneration: metadata.generation ?? 0, typeChecking } }
}
