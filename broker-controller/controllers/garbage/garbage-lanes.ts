/**
 * The queues of what concerns extension servers, one for each of their groups: a server that does not answer holds up what belongs to its own
 * group, and nothing else.
 */
import { aborted } from '../../../daemon/aborted.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Controller, runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type WorkQueue, workQueue } from '../../../daemon/work-queue.ts'

export interface GarbageLanes {
  add(group: string, key: string): void
  readonly run: (signal: AbortSignal) => Promise<void>
}

/** Each visit asks the server a few times. */
const visitsAtOnce = 4

export function garbageLanes(
  reconcile: Controller['reconcile'],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): GarbageLanes {
  const lanes = new Map<string, WorkQueue>()
  let start = (_queue: WorkQueue) => {}
  return {
    add(group, key) {
      const present = lanes.get(group) ?? workQueue(clock)
      if (!lanes.has(group)) {
        lanes.set(group, present)
        start(present)
      }
      present.add(key)
    },
    async run(signal) {
      const running: Promise<void>[] = []
      const controller = { name: 'garbage-collector-extensions', reconcile }
      start = (queue) => void running.push(runController(controller, queue, log, signal, visitsAtOnce))
      for (const queue of lanes.values()) start(queue)
      await aborted(signal)
      await Promise.all(running)
    },
  }
}
