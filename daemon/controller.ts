/** The loop of every controller: takes keys from its queue, reconciles each, and retries failures. */

import { yieldTurn } from './limits/turn-limit.ts'
import type { Log } from './log.ts'
import { beginOperation } from './watchdog/event-loop.ts'
import type { WorkQueue } from './work-queue.ts'
import { queueMeter } from './work-queue-metrics.ts'

/** `requeueAfterMs`: call again without a change, for the passing of time matters too. */
export type Reconciled = { readonly requeueAfterMs?: number } | undefined

export interface Controller {
  readonly name: string
  reconcile(key: string, signal: AbortSignal): Promise<Reconciled>
}

/**
 * Visits the queue's keys until `signal` aborts, at most `atOnce` at a time and never one key twice at a time. An error is
 * logged and its key comes back later. Many visits that wait for nothing take several turns of the event loop. Resolves when no visit is under way any more.
 */
export async function runController(
  controller: Controller,
  queue: WorkQueue,
  log: Log,
  signal: AbortSignal,
  atOnce = 1,
): Promise<void> {
  const meter = queueMeter(controller.name, queue)
  const visit = async (key: string) => {
    await yieldTurn()
    const beganMs = performance.now()
    beginOperation('reconcile', controller.name)
    try {
      const again = await controller.reconcile(key, signal)
      queue.done(key, again?.requeueAfterMs)
    } catch (error) {
      log.warn('Reconcile failed', { controller: controller.name, key, retryInMs: queue.failed(key), error })
    } finally {
      meter.worked(performance.now() - beganMs)
    }
  }
  const visits = new Set<Promise<void>>()
  let ended: () => void = () => undefined
  for await (const key of queue.keys(signal)) {
    meter.waited(queue.lastWaitMs)
    const started = visit(key).finally(() => {
      visits.delete(started)
      ended()
    })
    visits.add(started)
    // Not Promise.race: each call would add a reaction to every visit that is under way.
    if (visits.size < atOnce) continue
    await new Promise<void>((resolve) => {
      ended = resolve
    })
  }
  await Promise.all(visits)
  meter.end()
}
