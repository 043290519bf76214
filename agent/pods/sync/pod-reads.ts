/** What the sync of a pod reads beside its containers, and passes on: its address, its probes, the files of its volumes, its deadline. */
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import {
  isLeaving,
  isOver,
  newRecord,
  onActiveSince,
  onProbed,
  onVolumesWritten,
  type PodRecord,
} from '../record/pod-record.ts'
import { elapsedMs } from '../record/trusted-time.ts'
import { refreshFiles, republish } from '../volumes/container-mounts.ts'
import { callsDriver } from '../volumes/driver-tokens.ts'
import { podPath } from '../wanted/desired-pods.ts'
import { foundPod, networkSandbox } from './found-pod.ts'
import type { SyncPodNeeds } from './sync-needs.ts'

/** While the date is unknown a deadline is checked this often. */
const undatedMs = 60_000

export function observeAddress(
  uid: string,
  pod: Pod | undefined,
  { podIP: ip, podIPv6: ipv6, pod: last, path }: PodRecord,
  containers: readonly RuntimeContainer[],
  needs: SyncPodNeeds,
): void {
  const known = pod ?? last
  const named = { pod: known, path: known ? podPath(known) : (path ?? '') }
  needs.isolation.observe(uid, foundPod(named, { ip, ipv6, sandbox: networkSandbox(containers) }))
  const isRouted = needs.sources().clusterDomain !== undefined
  if (isRouted && needs.addresses.observe(uid, { ip, ipv6 })) needs.save()
}

export function observeProbes(
  uid: string,
  pod: Pod | undefined,
  containers: readonly RuntimeContainer[],
  { prober, records, hostIP }: SyncPodNeeds,
): void {
  if (pod === undefined || isOver(pod, records.of(uid))) {
    prober.forget(uid)
    records.update(uid, (record) => onProbed(record, newRecord.probes))
    return
  }
  const ownIP = containers.find(({ ip }) => ip !== undefined)?.ip
  const podIP = pod.spec.hostNetwork ? hostIP() : ownIP
  prober.observe(uid, { pod, containers, podIP, leaving: isLeaving(pod) })
  records.update(uid, (record) => onProbed(record, prober.vitals(uid)))
}

/** Writes the files of its volumes again if the pod, its ConfigMaps, Secrets or tokens changed, and has drivers mount theirs again or expand them. */
export async function refreshVolumes(uid: string, pod: Pod, needs: SyncPodNeeds): Promise<void> {
  const sources = needs.sources()
  const tokens = await needs.tokens.of(pod)
  const current = { ...sources, podIP: undefined, tokens }
  const from = [pod, sources.configMaps, sources.secrets, tokens]
  if (!from.every((value, index) => value === needs.records.get(uid)?.volumesFrom[index])) {
    try {
      await refreshFiles(pod, current, needs.volumes)
      needs.records.update(uid, (record) => onVolumesWritten(record, from))
    } catch (error) {
      needs.log.warn('Cannot update the files of a volume', { pod: podPath(pod), error })
    }
  }
  if (!callsDriver(pod, sources)) return
  await republish(pod, current, needs.volumes).catch((error: unknown) =>
    needs.log.warn('Volume not mounted again', { pod: podPath(pod), error }),
  )
}

/**
 * Time until its deadline, on the monotonic clock: from its first container, or from dates where it started before this agent. It
 * did not start before it was created, whatever the clock showed.
 */
export function leftToLive(uid: string, pod: Pod, needs: SyncPodNeeds, runs: boolean): number | undefined {
  const { records, clock } = needs
  const { activeDeadlineSeconds } = pod.spec
  const known = records.of(uid)
  const startTime = known.status?.startTime
  if (activeDeadlineSeconds === undefined || startTime === undefined || isOver(pod, known) || isLeaving(pod)) {
    return undefined
  }
  const nowMs = clock.monotonicMs()
  const { creationTimestamp = '' } = pod.metadata
  const sinceTime = [startTime, creationTimestamp].sort().at(-1) ?? startTime
  const agoMs = elapsedMs(sinceTime, needs.date, runs)
  // Until the date is known the time counts from the first observation.
  const activeSinceMs = known.activeSinceMs ?? nowMs - (agoMs ?? 0)
  if (known.activeSinceMs === undefined || (known.dateUnknown && agoMs !== undefined)) {
    records.update(uid, (record) => onActiveSince(record, nowMs - (agoMs ?? 0), agoMs === undefined))
  }
  const leftMs = activeSinceMs + activeDeadlineSeconds * 1000 - nowMs
  return agoMs === undefined ? Math.min(leftMs, undatedMs) : leftMs
}
