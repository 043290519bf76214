/** What a handler of a session works with. */
import type { SessionFrames } from '../../daemon/sessions/session-frames.ts'

export type OpenSession = {
  readonly frames: SessionFrames
  /** Aborts when the session ends, from whichever side. */
  readonly signal: AbortSignal
  /** Announces that what was requested has begun: call it before anything is sent. */
  started(): Promise<void>
}
