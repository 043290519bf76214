/** What comes in a session up to its announced end. */
import { sessionChannels } from '../../api/sessions.ts'
import type { SessionFrames } from '../../daemon/sessions/session-frames.ts'

/** Gives undefined at each end that is announced: what follows may be read by further calls. Rejects where the session was cut. */
export function incomingPieces(frames: Pick<SessionFrames, 'next'>): () => Promise<Buffer | undefined> {
  const { input, end } = sessionChannels
  return async () => {
    for (;;) {
      const frame = await frames.next()
      // Only the announced end is one: a connection that is cut looks like an end, too.
      if (frame === undefined) throw new Error('The copy was cut')
      if (frame.channel === end && frame.payload[0] === input) return undefined
      if (frame.channel === input && frame.payload.length > 0) return frame.payload
    }
  }
}
