/** Loop: deletes finished Jobs after their `ttlSecondsAfterFinished` (pkg/controller/ttlafterfinished). */
import { finishedConditionOf, type Job } from '../../../../api/batch/job.ts'
import type { Clock } from '../../../../daemon/clock.ts'
import { runController } from '../../../../daemon/controller.ts'
import type { Log } from '../../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../../daemon/run.ts'
import { workQueue } from '../../../../daemon/work-queue.ts'
import { keyFrom, keyText } from '../../../store/informer.ts'
import { removeObject } from '../../../store/object-removal.ts'
import type { Store } from '../../../store/store.ts'
import { watchClock } from '../clock-jumps.ts'
import type { OwnedObjects } from '../owned-objects.ts'

export type TtlNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/** Until the Job is to be deleted, at least 0; undefined: it stays. */
export function ttlLeftMs(job: Job, nowMs: number): number | undefined {
  const { ttlSecondsAfterFinished } = job.spec
  const end = finishedConditionOf(job)
  if (ttlSecondsAfterFinished === undefined || end === undefined || job.metadata.deletionTimestamp !== undefined) {
    return undefined
  }
  const finishedMs = Date.parse(end.lastTransitionTime ?? '')
  if (Number.isNaN(finishedMs)) return undefined
  return Math.max(0, finishedMs + ttlSecondsAfterFinished * 1000 - nowMs)
}

export function ttlAfterFinishedController(needs: TtlNeeds, jobs: OwnedObjects<'jobs'>): Loop {
  const { clock, log } = needs
  const queue = workQueue(clock)
  const waiting = new Set<string>()
  jobs.onChange((present, previous) => {
    const key = keyText((present ?? previous)?.metadata ?? {})
    if (present === undefined || ttlLeftMs(present, 0) === undefined) return void waiting.delete(key)
    waiting.add(key)
    queue.add(key)
  })

  const reconcile = async (key: string) => {
    jobs.catchUp()
    const job = jobs.get(keyFrom(key))
    const leftMs = job && ttlLeftMs(job, clock.wallMs())
    if (job === undefined || leftMs === undefined) return undefined
    if (leftMs > 0) return { requeueAfterMs: leftMs }
    // Its pods go first, so that no log is lost of a Job that seems to be gone.
    await removeObject(needs, 'jobs', job, {
      propagationPolicy: 'Foreground',
      isStillWanted: (fresh) => ttlLeftMs(fresh, clock.wallMs()) === 0,
    })
    return undefined
  }
  const work = {
    name: 'work',
    run: async (signal: AbortSignal) => {
      await jobs.listed
      if (!signal.aborted) await runController({ name: 'ttl-after-finished', reconcile }, queue, log, signal)
    },
  }
  const jumps = watchClock(clock, () => {
    for (const key of waiting) queue.add(key)
  })
  return { name: 'ttl-after-finished', run: (signal) => runLoops([work, jumps], signal, log) }
}
