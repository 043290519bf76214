/**
 * Events for running pods with a volume on a file system that stops answering, such as NFS without its server: their programs
 * wait in system calls, and nothing else shows why. One Event when it stops and one when it answers again, whatever the number of checks.
 * Containers with a folder that was replaced on its server are started again, as they would never see the new one: at most once in each check.
 */
import type { Pod, PodStatus } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { restartPolicyFor } from '../record/pod-containers.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { isOver, onVolumeReplaced } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import type { VolumeSilence, VolumeStore } from './volume-store.ts'
import { isClaim } from './wanted-claims.ts'

export type SilentVolumesNeeds = {
  readonly records: Pick<PodRecords, 'entries' | 'update'>
  readonly workers: { add(uids: readonly string[]): void }
  readonly volumes: Pick<VolumeStore, 'silence' | 'placedAt'>
  readonly checkMs: number
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  readonly clock: Clock
  readonly log: Log
}

/** Without a path it is a claim or a share. */
type MountedVolume = { readonly pod: Pod; readonly uid: string; readonly name: string; readonly path?: string }

export function silentVolumes(needs: SilentVolumesNeeds): { run(signal: AbortSignal): Promise<void> } {
  const { records, workers, volumes, checkMs, recordEvent, clock, log } = needs
  let silent: ReadonlySet<string> = new Set()

  const check = async (signal: AbortSignal) => {
    const found = new Set<string>()
    const replaced: MountedVolume[] = []
    for (const volume of mountedVolumes(records)) {
      if (signal.aborted) return
      const silence = await silenceOf(volume)
      if (silence !== undefined) found.add(keyOf(volume))
      if (silence?.isReplaced) replaced.push(volume)
      recordChange(volume, silence?.why)
    }
    silent = found
    // After all were checked: the first container that starts mounts it again for all pods.
    for (const volume of replaced) startAgain(volume)
  }

  const recordChange = (volume: MountedVolume, why: string | undefined) => {
    const event = changeOfSilence(volume.name, { was: silent.has(keyOf(volume)), why })
    if (event !== undefined) recordEvent(volume.pod, event)
  }

  const silenceOf = async ({ uid, name, path }: MountedVolume): Promise<VolumeSilence | undefined> => {
    const placed = path ?? (await volumes.placedAt(uid, name))
    return placed === undefined ? undefined : await volumes.silence(placed)
  }

  const startAgain = ({ pod, uid, name }: MountedVolume) => {
    const ids = containersWith(pod, name, records.entries.get(uid)?.status)
    if (ids.length === 0) return
    records.update(uid, (record) => onVolumeReplaced(record, ids))
    workers.add([uid])
  }

  return {
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(checkMs, signal)
        await check(signal).catch((error: unknown) => log.warn('Volumes of running pods not checked', { error }))
      }
    },
  }
}

function keyOf({ uid, name }: MountedVolume): string {
  return `${uid}/${name}`
}

/** `why`: it does not answer now. */
function changeOfSilence(
  volume: string,
  { was, why }: { readonly was: boolean; readonly why: string | undefined },
): PodEvent | undefined {
  if (was === (why !== undefined)) return undefined
  return why === undefined
    ? { type: 'Normal', reason: 'VolumeResponding', message: `volume "${volume}" answers again` }
    : { type: 'Warning', reason: 'VolumeNotResponding', message: `volume "${volume}": ${why}` }
}

/** The ids of its running containers that have the volume, and may start again. */
function containersWith(pod: Pod, volume: string, status: PodStatus | undefined): readonly string[] {
  const { initContainers = [], containers } = pod.spec
  const wanted = [...initContainers, ...containers].filter(
    (container) =>
      container.volumeMounts?.some(({ name }) => name === volume) && restartPolicyFor(pod, container) !== 'Never',
  )
  const names = new Set(wanted.map(({ name }) => name))
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].flatMap((one) => {
    const id = one.state?.running === undefined ? undefined : one.containerID?.split('://')[1]
    return id !== undefined && names.has(one.name) ? [id] : []
  })
}

/** The volumes of the pods that run that may be on a file system of another machine. */
function mountedVolumes(records: Pick<PodRecords, 'entries'>): readonly MountedVolume[] {
  return [...records.entries].flatMap(([uid, record]) => {
    const { pod, status } = record
    if (pod === undefined || status?.phase !== 'Running' || isOver(pod, record)) return []
    return (pod.spec.volumes ?? []).flatMap((volume) => {
      const { name, hostPath, nfs } = volume
      if (hostPath !== undefined) return [{ pod, uid, name, path: hostPath.path }]
      return nfs !== undefined || isClaim(volume) ? [{ pod, uid, name }] : []
    })
  })
}
