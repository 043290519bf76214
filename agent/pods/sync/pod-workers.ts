/** Syncs pods: each pod in its own sequence, several concurrently, with retries (pkg/kubelet/pod_workers.go). */
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { isUnreachable } from '../../runtime/runtime.ts'

export type PodWorkersNeeds = {
  /** The number of concurrent syncs. */
  readonly parallel: number
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

/** Reconciles one pod; returns the milliseconds after which it is synced again in any case. */
export type Sync = (uid: string, signal: AbortSignal) => Promise<number | undefined>

export interface PodWorkers {
  /** Enqueues pods for a sync, in this order. */
  add(uids: Iterable<string>): void
  addAfter(uid: string, ms: number): void
  run(sync: Sync, signal: AbortSignal): Promise<void>
}

/** A call to the engine may take long; the next agent continues unfinished work. */
const lastSyncsMs = 2_000

export function podWorkers({ parallel, clock, random, log }: PodWorkersNeeds): PodWorkers {
  const queue = workQueue(clock, random)
  /** By UID: the last failure. A retry that fails for the same reason is not logged again. */
  const failures = new Map<string, string>()

  const syncOne = async (sync: Sync, uid: string, signal: AbortSignal) => {
    try {
      queue.done(uid, await sync(uid, signal))
      failures.delete(uid)
    } catch (error) {
      const retryInMs = queue.failed(uid)
      // An unreachable engine is logged once, by `runtime-health.ts`; when the agent stops, syncs are aborted.
      if (isUnreachable(error) || signal.aborted) return log.debug('Pod not synced', { podUID: uid, retryInMs, error })
      const reason = storyOf(error)
      const level = failures.get(uid) === reason ? 'debug' : 'warn'
      failures.set(uid, reason)
      log[level]('Pod not synced', { podUID: uid, retryInMs, error })
    }
  }

  return {
    add(uids) {
      for (const uid of uids) queue.add(uid)
    },
    addAfter: queue.addAfter,
    async run(sync, signal) {
      const under = new Set<Promise<void>>()
      for await (const uid of queue.keys(signal)) {
        const one: Promise<void> = syncOne(sync, uid, signal).finally(() => under.delete(one))
        under.add(one)
        if (under.size >= parallel) await Promise.race(under)
      }
      await Promise.race([Promise.all(under), clock.sleep(lastSyncsMs)])
    },
  }
}
