/** The loop of every controller: takes keys from its queue, reconciles each, and retries failures. */

import type { Log } from './log.ts'
import { beginOperation } from './watchdog/event-loop.ts'
import type { WorkQueue } from './work-queue.ts'

/** `requeueAfterMs`: call again without a change, for the passing of time matters too. */
export type Reconciled = { readonly requeueAfterMs?: number } | undefined

export interface Controller {
  readonly name: string
  reconcile(key: string, signal: AbortSignal): Promise<Reconciled>
}

/** Visits the queue's keys one at a time until `signal` aborts. An error is logged and its key comes back later. */
export async function runController(
  controller: Controller,
  queue: WorkQueue,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  for await (const key of queue.keys(signal)) {
    beginOperation('reconcile', controller.name)
    try {
      const again = await controller.reconcile(key, signal)
      queue.done(key, again?.requeueAfterMs)
    } catch (error) {
      log.warn('Reconcile failed', { controller: controller.name, key, retryInMs: queue.failed(key), error })
    }
  }
}
