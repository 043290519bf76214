/**
 * Lists the containers of this machine and syncs the pods whose containers changed (Relist in
 * pkg/kubelet/pleg/generic.go).
 */
import type { Log } from '../../../daemon/log.ts'
import type { ContainerRuntime, RuntimeContainer } from '../../runtime/runtime.ts'
import type { PodIsolation } from '../admission/pod-isolation.ts'
import { fingerprint, onAdopted } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import type { PodStatusManager } from '../status/pod-status-manager.ts'
import type { VolumeStore } from '../volumes/volume-store.ts'
import type { WantedPods } from '../wanted/pod-config.ts'
import { foundPod, networkSandbox } from './found-pod.ts'
import type { PodLogLinks } from './log-links.ts'
import type { PodUpdates } from './pod-updates.ts'
import type { PodWorkers } from './pod-workers.ts'

export type RelistNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'listContainers'>
  readonly volumes: Pick<VolumeStore, 'podUIDs' | 'remove'>
  readonly records: PodRecords
  readonly wanted: WantedPods
  readonly workers: Pick<PodWorkers, 'add'>
  readonly statuses: Pick<PodStatusManager, 'resendGone'>
  readonly updates: Pick<PodUpdates, 'dispatch'>
  readonly isolation: Pick<PodIsolation, 'observe' | 'observedAll'>
  readonly logLinks?: Pick<PodLogLinks, 'clean'>
  readonly log: Log
}

/** The first call adopts the containers that an earlier agent left, and removes volumes of pods that are gone. */
export async function relist(needs: RelistNeeds): Promise<void> {
  const { runtime, records, wanted, statuses } = needs
  const byPod = new Map<string, RuntimeContainer[]>()
  for (const container of await runtime.listContainers()) {
    const { podUID } = container.identity
    byPod.set(podUID, [...(byPod.get(podUID) ?? []), container])
  }
  const uids = [...byPod.keys(), ...wanted.all.keys(), ...records.entries.keys()]
  const differs = (uid: string) => records.get(uid)?.observed !== fingerprint(byPod.get(uid) ?? [])
  statuses.resendGone()
  if (records.isComplete) {
    needs.workers.add(wanted.oldestFirst(uids.filter(differs)))
    return
  }
  for (const [uid, containers] of byPod) {
    const { podNamespace, podName } = containers[0]?.identity ?? {}
    const path = `${podNamespace}/${podName}`
    records.of(uid)
    records.update(uid, (record) => onAdopted(record, path))
    const { ip, ipv6 } = containers.find((one) => one.identity.kind === 'sandbox' && one.ip !== undefined) ?? {}
    const addresses = { ip, ipv6, sandbox: networkSandbox(containers) }
    needs.isolation.observe(uid, foundPod({ pod: wanted.all.get(uid), path }, addresses))
  }
  needs.isolation.observedAll()
  records.setComplete()
  wanted.refresh()
  await needs.logLinks?.clean()
  await removeVolumes(needs, new Set([...uids, ...wanted.undecodable]))
  needs.updates.dispatch(uids)
}

/** Removes the volumes of pods that were deleted while no agent was running. */
async function removeVolumes({ volumes, log }: RelistNeeds, here: ReadonlySet<string>): Promise<void> {
  for (const uid of await volumes.podUIDs()) {
    if (here.has(uid)) continue
    await volumes.remove(uid).catch((error) => log.warn('Volumes not removed', { podUID: uid, error }))
  }
}
