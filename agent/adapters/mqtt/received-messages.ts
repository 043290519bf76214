/** What arrives on a topic → a message, or a line in the log. */
import type { Decoded } from '../../../api/decode.ts'
import { problemText } from '../../../api/problem.ts'
import type { Log } from '../../../daemon/log.ts'

/** A message that is not understood is dropped and logged: an older or newer controller is better than none. */
export function understood<T>(decoded: Decoded<T>, topic: string, log: Log): T | undefined {
  if (decoded.ok) return decoded.value
  log.warn('A message was not understood', { topic, problems: decoded.problems.slice(0, 10).map(problemText) })
  return undefined
}

/** Of a NodeStatus that this agent made itself. */
export function isReadyIn(status: string): boolean {
  const { conditions = [] } = JSON.parse(status) as { conditions?: { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}
