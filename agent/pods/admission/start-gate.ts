/** Decides before the first container of a pod whether the pod may start now. */
import type { Pod } from '../../../api/pod.ts'
import type { WaitingReason } from '../record/pod-record.ts'

export interface StartGate {
  /** Why the pod may not start, and when to ask again; undefined: it may. */
  hold(pod: Pod): StartDelay | undefined
  /** The pod is about to start. Resolves when this is saved, if it needs to be saved; never rejects. */
  starting(pod: Pod): Promise<void>
  /** All desired pods of this node: the records of other pods are removed. */
  wanted(podUIDs: ReadonlySet<string>): void
}

export type StartDelay = WaitingReason & {
  readonly againInMs: number
  /** An Event is recorded for it. */
  readonly isNew: boolean
}

/** Every pod may start. */
export const openGate: StartGate = { hold: () => undefined, starting: async () => undefined, wanted: () => undefined }
