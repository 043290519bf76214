/** Requests to restart a machine that a button made: the annotation of its Node, as any client may set it. */
import { rebootRequestedAnnotation } from '../../api/node/reboot-annotations.ts'
import { rebootRequestLifetimeMs } from '../../api/node/remote-reboot.ts'
import { alarm } from '../../daemon/alarm.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { LocalAnswer, LocalRequest } from '../apiserver/local-requests.ts'

export type RestartNeeds = {
  /** As the user of the buttons. */
  readonly request: (request: LocalRequest, signal: AbortSignal) => Promise<LocalAnswer>
  readonly clock: Clock
  readonly log: Log
}

export interface MachineRestarts {
  /** The button of this node was pressed. Again within five minutes it does nothing: that request is still in force. */
  press(nodeName: string): void
  readonly loop: Loop
}

/** Any client of the broker may press buttons without end. */
const requestsAtOnce = 20
const pauseMs = 1_000
const idleMs = 24 * 3600_000

export function restarts({ request, clock, log }: RestartNeeds): MachineRestarts {
  const waiting = new Set<string>()
  /** By node, monotonic; those of the last five minutes. */
  const requestedMs = new Map<string, number>()
  const wake = alarm(clock)

  const ask = async (node: string, signal: AbortSignal) => {
    const path = `/api/v1/nodes/${encodeURIComponent(node)}`
    const body = { metadata: { annotations: { [rebootRequestedAnnotation]: rfc3339(clock.wallMs()) } } }
    const { code } = await request({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' }, signal)
    if (code === 200) log.info('Restart of a machine requested', { node })
    else log.warn('Restart of a machine not requested', { node, code })
  }

  return {
    press(node) {
      const now = clock.monotonicMs()
      for (const [name, atMs] of requestedMs) {
        if (now - atMs >= rebootRequestLifetimeMs) requestedMs.delete(name)
      }
      if (requestedMs.has(node)) return
      requestedMs.set(node, now)
      waiting.add(node)
      wake.ring()
    },
    loop: {
      name: 'home-assistant-restarts',
      async run(signal) {
        while (!signal.aborted) {
          for (const node of [...waiting].slice(0, requestsAtOnce)) {
            waiting.delete(node)
            await ask(node, signal)
          }
          if (waiting.size > 0) await clock.sleep(pauseMs, signal)
          else await wake.sleep(idleMs, signal)
        }
      },
    },
  }
}
