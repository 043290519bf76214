/** Requests about machines that a button made: an annotation of the Node, as any client may set it. */
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { dueTimes } from '../../../daemon/due-times.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { LocalAnswer, LocalRequest } from '../../apiserver/filters/in-process-api.ts'

export type MachineRequestNeeds = {
  /** As the user of the buttons. */
  readonly request: (request: LocalRequest, signal: AbortSignal) => Promise<LocalAnswer>
  readonly clock: Clock
  readonly log: Log
}

export type RequestedOfMachines = {
  /** For the log: `Restart of a machine`. */
  readonly what: string
  readonly loopName: string
  /** For how long the button does nothing after a press. */
  readonly pauseMs: number
  /** Annotations that request it, at the time of the press. Undefined: there is nothing to request. */
  readonly annotations: (node: string, pressedMs: number) => { readonly [name: string]: string } | undefined
}

export interface MachineRequests {
  /** The button of this node was pressed. Again within `pauseMs` it does nothing; within ten seconds where the request was not accepted. */
  press(nodeName: string): void
  readonly loop: Loop
}

/** Any client of the broker may press buttons without end. */
const requestsAtOnce = 20
const betweenMs = 1_000
const afterFailureMs = 10_000
const idleMs = 24 * 3600_000

export function machineRequests(
  { request, clock, log }: MachineRequestNeeds,
  of: RequestedOfMachines,
): MachineRequests {
  const { what, loopName, pauseMs } = of
  /** By node, the annotations of the press. */
  const waiting = new Map<string, { readonly [name: string]: string }>()
  /** Nodes whose buttons do nothing, until they come due. */
  const paused = dueTimes()
  const wake = alarm(clock)

  const ask = async (node: string, annotations: { readonly [name: string]: string }, signal: AbortSignal) => {
    const path = `/api/v1/nodes/${encodeURIComponent(node)}`
    const body = { metadata: { annotations } }
    const { code } = await request({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' }, signal)
    if (code === 200) return log.info(`${what} requested`, { node })
    log.warn(`${what} not requested`, { node, code })
    paused.set(node, clock.monotonicMs() + afterFailureMs)
  }

  return {
    press(node) {
      const now = clock.monotonicMs()
      paused.take(now)
      if (paused.get(node) !== undefined) return
      const annotations = of.annotations(node, clock.wallMs())
      if (annotations === undefined) return
      paused.set(node, now + pauseMs)
      waiting.set(node, annotations)
      wake.ring()
    },
    loop: {
      name: loopName,
      async run(signal) {
        while (!signal.aborted) {
          for (const [node, annotations] of [...waiting].slice(0, requestsAtOnce)) {
            waiting.delete(node)
            await ask(node, annotations, signal)
          }
          if (waiting.size > 0) await clock.sleep(betweenMs, signal)
          else await wake.sleep(idleMs, signal)
        }
      },
    },
  }
}
