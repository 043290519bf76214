/** Loop: the ids of requested sessions → messages to their nodes. */
import type { CallMessage } from '../../../api/topics.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { SessionBoard } from '../../sessions/session-board.ts'
import type { Broker } from '../broker.ts'

export type SessionRequestNeeds = {
  readonly sessions: Pick<SessionBoard, 'takeRequests' | 'onRequest'>
  readonly broker: Pick<Broker, 'publish'>
  readonly clock: Clock
  readonly log: Log
}

/** A request that cannot be published is logged; its session ends when the node does not connect. */
export function sessionRequests({ sessions, broker, clock, log }: SessionRequestNeeds): Loop {
  const requested = alarm(clock)
  return {
    name: 'session-requests',
    async run(signal) {
      sessions.onRequest(requested.ring)
      while (!signal.aborted) {
        for (const { node, id } of sessions.takeRequests()) {
          const call: CallMessage = { call: 'session', session: id }
          broker
            .publish({ kind: 'calls', node }, JSON.stringify(call))
            .catch((error) => log.warn('Session not requested', { node, error }))
        }
        await requested.sleep(longestTimerMs, signal)
      }
    },
  }
}
