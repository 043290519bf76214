/** The bytes that a node passes on in a session, as a connection. */
import type { Duplex } from 'node:stream'
import { sessionChannels } from '../../../api/sessions.ts'
import { sessionDuplex } from '../../../daemon/sessions/session-duplex.ts'
import type { SessionFrames } from '../../../daemon/sessions/session-frames.ts'
import { sessionStatusIn } from '../streams/node-session.ts'

/** Its error is that of the node. The session ends with it. */
export function connectionOn(frames: SessionFrames): Duplex {
  return sessionDuplex(frames, {
    receive: sessionChannels.output,
    send: sessionChannels.input,
    other({ channel, payload }) {
      if (channel !== sessionChannels.status) return undefined
      const { message } = sessionStatusIn(payload) ?? {}
      if (message !== undefined) throw new Error(message)
      return 'ended'
    },
  })
}
