/** May a pod be started now? Asked before anything of it runs. */
import type { Pod } from '../../../api/pod.ts'
import type { WaitingReason } from '../record/pod-record.ts'

export interface StartGate {
  /** Why not, and when to ask again; undefined: it may. */
  hold(pod: Pod): StartDelay | undefined
  /** It is about to be started. On disk when it resolves, where that is worth a write; never rejects. */
  starting(pod: Pod): Promise<void>
  /** All pods that this node shall have: what is on record of others is forgotten. */
  wanted(podUIDs: ReadonlySet<string>): void
}

export type StartDelay = WaitingReason & {
  readonly againInMs: number
  /** Worth an event. */
  readonly isNew: boolean
}

/** Every pod may start. */
export const openGate: StartGate = { hold: () => undefined, starting: async () => undefined, wanted: () => undefined }
