/** Evicts the first pod of the ranking, and waits for its end. */
import { isCriticalPod } from '../../api/pod/critical-pod.ts'
import { graceSecondsOf } from '../../api/pod/pod-deletion.ts'
import type { Pod } from '../../api/pod.ts'
import { withOwnSignal } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { PodDiskReading, PodUsage, PodUse } from '../usage/usage.ts'
import { type EvictablePods, immediatelySeconds } from './evictable-pods.ts'
import { evictionMessage } from './eviction-message.ts'
import type { Observations } from './observations.ts'
import { rankForEviction } from './ranking.ts'
import { pressureOf, type Threshold } from './thresholds.ts'

export type PodEvictorNeeds = {
  readonly pods: EvictablePods
  readonly usage: Pick<PodUsage, 'podUsage' | 'podDiskUsage'>
  /** A pod was chosen because of this signal. */
  readonly evicted?: (signal: string) => void
  readonly clock: Clock
  readonly log: Log
}

export interface PodEvictor {
  /** The UID of the evicted pod; undefined when there is none to evict. Critical pods are never evicted. */
  evictOne(threshold: Threshold, observations: Observations): Promise<string | undefined>
  /**
   * Resolves when the pod has stopped, after 30 s, or when `signal` aborts. Pods are evicted one at a time, so that the next
   * decision sees the resources that this one freed.
   */
  stopped(uid: string, signal: AbortSignal): Promise<void>
}

const cleanupMs = 30_000
/** The maximum age of disk usage that a decision accepts: reading it again is expensive. */
const diskUseAgeMs = 15_000

export function podEvictor(
  { pods, usage, evicted, clock, log }: PodEvictorNeeds,
  { maxPodGraceSeconds }: { readonly maxPodGraceSeconds: number },
): PodEvictor {
  const factsFor = async ({ signal }: Threshold, { imagesApart }: Observations) => {
    const ofDisk = pressureOf(signal) === 'DiskPressure'
    const [use, disk] = await Promise.all([
      ofDisk ? [] : usage.podUsage(),
      ofDisk ? usage.podDiskUsage(diskUseAgeMs) : [],
    ])
    return {
      use: new Map(use.map((one): [string, PodUse] => [one.uid, one])),
      disk: new Map(disk.map((one): [string, PodDiskReading] => [one.uid, one])),
      imagesApart: imagesApart ?? false,
    }
  }

  const graceFor = ({ spec }: Pod, { graceMs }: Threshold) =>
    graceMs === undefined
      ? immediatelySeconds
      : Math.min(
          maxPodGraceSeconds,
          spec.terminationGracePeriodSeconds === undefined ? maxPodGraceSeconds : graceSecondsOf({ spec }),
        )

  return {
    async evictOne(threshold, observations) {
      const active = pods.active()
      if (active.length === 0) return undefined
      const facts = await factsFor(threshold, observations)
      const victim = rankForEviction(threshold.signal, active, facts).find((pod) => !isCriticalPod(pod))
      if (victim === undefined) return undefined
      const { namespace, name, uid = '' } = victim.metadata
      const { observed } = observations
      const [use, disk] = [facts.use.get(uid), facts.disk.get(uid)]
      const message = evictionMessage({ pod: victim, threshold, observed, use, disk })
      const gracePeriodSeconds = graceFor(victim, threshold)
      log.warn('Pod evicted', {
        pod: `${namespace}/${name}`,
        threshold: threshold.signal,
        gracePeriodSeconds,
        why: message,
      })
      pods.endPod(uid, { reason: 'Evicted', message, gracePeriodSeconds, event: 'Warning', disruption: message })
      evicted?.(threshold.signal)
      return uid
    },
    async stopped(uid, signal) {
      const hasStopped = await withOwnSignal(signal, async (own) => {
        const stopped = pods.stopped(uid, own.signal).then(() => true)
        const late = clock.sleep(cleanupMs, own.signal).then(() => false)
        return await Promise.race([stopped, late]).finally(() => own.abort())
      })
      if (!hasStopped && !signal.aborted) log.warn('Evicted pod does not end', { podUID: uid })
    },
  }
}
