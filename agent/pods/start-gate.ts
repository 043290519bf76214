/** May a pod be started now? Asked before anything of it runs. */
import type { Waiting } from './pod-steps.ts'

export interface StartGate {
  /** Why not, and when to ask again; undefined: it may. */
  hold(podUID: string): Hold | undefined
  /** It is about to be started. On disk when it resolves, where that is worth a write; never rejects. */
  starting(podUID: string): Promise<void>
}

export type Hold = Waiting & {
  readonly againInMs: number
  /** Worth an event. */
  readonly isNews: boolean
}
