/**
 * Loop: evicts pods that exceed their own limits of local storage, whatever space is free on the disk. Critical and static pods are
 * never evicted (eviction_manager.go, evictPod).
 */
import { isCriticalPod } from '../../api/pod/critical-pod.ts'
import type { Pod } from '../../api/pod.ts'
import type { Reader } from '../../daemon/cell.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { PodDiskReading, PodUsage } from '../usage/usage.ts'
import { type EvictablePods, immediatelySeconds } from './evictable-pods.ts'
import { brokenStorageLimit, hasStorageLimits, incompleteCount } from './local-storage.ts'

export type StorageLimitsNeeds = {
  readonly pods: Pick<EvictablePods, 'active' | 'endPod'>
  readonly usage: Pick<PodUsage, 'podDiskUsage'>
  readonly reads: {
    /** Images and container layers are on another filesystem than the agent's data; undefined while that is unknown. */
    readonly imagesApart: Reader<boolean | undefined>
  }
  readonly clock: Clock
  readonly log: Log
}

const periodMs = 10_000 // as the kubelet (pkg/kubelet/kubelet.go, evictionMonitoringPeriod)
/** Measuring takes at most one part in this many of the time. */
const restPerWork = 50

export function storageLimits({ pods, usage, reads, clock, log }: StorageLimitsNeeds): Loop {
  /** By pod: the reason that was logged for an incomplete count. */
  let logged: ReadonlyMap<string, string> = new Map()

  /**
   * Limits are applied to the part that was counted. An eviction for an uncounted part would delete a healthy pod because of a
   * failing card, so the part is logged, once for each reason.
   */
  const logIncomplete = (limited: readonly Pod[], use: ReadonlyMap<string, PodDiskReading>) => {
    const next = new Map<string, string>()
    for (const { metadata } of limited) {
      const uid = metadata.uid ?? ''
      const own = use.get(uid)
      const reason = own && incompleteCount(own)
      if (reason === undefined) continue
      next.set(uid, reason)
      if (logged.get(uid) === reason) continue
      log.warn('Disk usage of pod not counted in full: its limits hold for the counted part', {
        pod: `${metadata.namespace}/${metadata.name}`,
        because: reason,
      })
    }
    logged = next
  }

  const check = async (limited: readonly Pod[]) => {
    const use = new Map((await usage.podDiskUsage(periodMs / 2)).map((one) => [one.uid, one]))
    logIncomplete(limited, use)
    for (const pod of limited) {
      const uid = pod.metadata.uid ?? ''
      const own = use.get(uid)
      const message = own && brokenStorageLimit(pod, own, reads.imagesApart.get() ?? true)
      if (message === undefined) continue
      log.warn('Pod evicted', { pod: `${pod.metadata.namespace}/${pod.metadata.name}`, why: message })
      pods.endPod(uid, { reason: 'Evicted', message, gracePeriodSeconds: immediatelySeconds, event: 'Warning' })
    }
  }

  return {
    name: 'storage-limits',
    async run(signal) {
      let failing = false
      while (!signal.aborted) {
        const begunMs = clock.monotonicMs()
        const limited = pods.active().filter((pod) => hasStorageLimits(pod) && !isCriticalPod(pod))
        try {
          if (limited.length > 0) await check(limited)
          failing = false
        } catch (error) {
          if (!failing) log.warn('Cannot measure the disk usage of pods', { error })
          failing = true
        }
        const tookMs = clock.monotonicMs() - begunMs
        await clock.sleep(Math.max(periodMs, tookMs * restPerWork), signal)
      }
    },
  }
}
