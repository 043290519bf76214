/** Requests to restart a machine that a button made: the annotation of its Node, as any client may set it. */
import { rebootRequestedAnnotation } from '../../../api/node/reboot-annotations.ts'
import { rebootRequestLifetimeMs } from '../../../api/node/remote-reboot.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { dueTimes } from '../../../daemon/due-times.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { LocalAnswer, LocalRequest } from '../../apiserver/filters/in-process-api.ts'

export type RestartNeeds = {
  /** As the user of the buttons. */
  readonly request: (request: LocalRequest, signal: AbortSignal) => Promise<LocalAnswer>
  readonly clock: Clock
  readonly log: Log
}

export interface MachineRestarts {
  /**
   * The button of this node was pressed. The request has the time of the press, however late it is written. Again within five minutes
   * it does nothing, so that a machine restarts at most this often; within ten seconds where the request was not accepted.
   */
  press(nodeName: string): void
  readonly loop: Loop
}

/** Any client of the broker may press buttons without end. */
const requestsAtOnce = 20
const pauseMs = 1_000
const afterFailureMs = 10_000
const idleMs = 24 * 3600_000

export function restarts({ request, clock, log }: RestartNeeds): MachineRestarts {
  /** By node, the time of the press. */
  const waiting = new Map<string, string>()
  /** Nodes whose buttons do nothing, until they come due. */
  const paused = dueTimes()
  const wake = alarm(clock)

  const ask = async (node: string, pressedAt: string, signal: AbortSignal) => {
    const path = `/api/v1/nodes/${encodeURIComponent(node)}`
    const body = { metadata: { annotations: { [rebootRequestedAnnotation]: pressedAt } } }
    const { code } = await request({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' }, signal)
    if (code === 200) return log.info('Restart of a machine requested', { node })
    log.warn('Restart of a machine not requested', { node, code })
    paused.set(node, clock.monotonicMs() + afterFailureMs)
  }

  return {
    press(node) {
      const now = clock.monotonicMs()
      paused.take(now)
      if (paused.get(node) !== undefined) return
      paused.set(node, now + rebootRequestLifetimeMs)
      waiting.set(node, rfc3339(clock.wallMs()))
      wake.ring()
    },
    loop: {
      name: 'home-assistant-restarts',
      async run(signal) {
        while (!signal.aborted) {
          for (const [node, pressedAt] of [...waiting].slice(0, requestsAtOnce)) {
            waiting.delete(node)
            await ask(node, pressedAt, signal)
          }
          if (waiting.size > 0) await clock.sleep(pauseMs, signal)
          else await wake.sleep(idleMs, signal)
        }
      },
    },
  }
}
