/** The loop of visits: each pod by itself, a few at once, and again when time will change something. */
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { isUnreachable } from '../runtime/runtime.ts'

export type VisitsNeeds = {
  /** Brings one pod to its state; gives when it is to be visited again without being asked for. */
  readonly visit: (uid: string, signal: AbortSignal) => Promise<number | undefined>
  /** At once. */
  readonly parallel: number
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface Visits {
  /** Each soon, in this order. */
  add(uids: Iterable<string>): void
  addAfter(uid: string, ms: number): void
  run(signal: AbortSignal): Promise<void>
}

/** The engine may take long over a call; the next agent takes up whatever is half done. */
const lastVisitsMs = 2_000

export function visits({ visit, parallel, clock, random, log }: VisitsNeeds): Visits {
  const queue = workQueue(clock, random)
  /** The last failure of each pod that fails: a retry that fails for the same reason is not logged again. */
  const failures = new Map<string, string>()

  const visitOne = async (uid: string, signal: AbortSignal) => {
    try {
      queue.done(uid, await visit(uid, signal))
      failures.delete(uid)
    } catch (error) {
      const retryInMs = queue.failed(uid)
      // That the engine is away is told once, by who asks it how it is; and at the end visits are called off.
      if (isUnreachable(error) || signal.aborted) return log.debug('Pod not visited', { podUID: uid, retryInMs, error })
      const reason = storyOf(error)
      const level = failures.get(uid) === reason ? 'debug' : 'warn'
      failures.set(uid, reason)
      log[level]('Pod not brought to its state', { podUID: uid, retryInMs, error })
    }
  }

  return {
    add(uids) {
      for (const uid of uids) queue.add(uid)
    },
    addAfter: queue.addAfter,
    async run(signal) {
      const under = new Set<Promise<void>>()
      for await (const uid of queue.keys(signal)) {
        const one: Promise<void> = visitOne(uid, signal).finally(() => under.delete(one))
        under.add(one)
        if (under.size >= parallel) await Promise.race(under)
      }
      await Promise.race([Promise.all(under), clock.sleep(lastVisitsMs)])
    },
  }
}
