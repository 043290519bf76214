/** PodUsage on files: control groups, the network namespace of each pod's first process, folders. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../../daemon/clock.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { ContainerList } from '../../usage/container-list.ts'
import type { GroupReading, InterfaceReading, PodDiskReading, PodReading, PodUsage } from '../../usage/usage.ts'
import { folderCounter } from '../disk/folder-usage.ts'
import { byPod, readPodDisks } from '../disk/pod-disks.ts'
import type { VolumeFolders } from '../disk/volume-store.ts'
import { type GroupFolders, groupFolders, readGroup } from './cgroup-files.ts'
import { deviceNames, readCpuLimit, readIo } from './cgroup-io.ts'
import { interfacesOf } from './net-dev.ts'

export type PodUsageNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  readonly containerList: Pick<ContainerList, 'containers' | 'invalidate'>
  readonly volumes: VolumeFolders
  readonly clock: Clock
}

const diskAgeMs = 60_000 // as the kubelet

export function podUsage({ root, containerList, volumes, clock }: PodUsageNeeds): PodUsage {
  /** By container. A changed process ID invalidates the entry. */
  let places = new Map<string, { readonly pid: number; readonly folders: GroupFolders }>()
  let disks: { readonly readings: readonly PodDiskReading[]; readonly atMs: number } | undefined
  const counter = folderCounter()
  let walking: Promise<readonly PodDiskReading[]> | undefined

  const foldersOf = ({ id, pid }: RuntimeContainer): GroupFolders | undefined => {
    if (pid === undefined) return undefined
    const known = places.get(id)
    if (known?.pid === pid) return known.folders
    const folders = groupFolders(root, { id, pid })
    if (folders !== undefined) places.set(id, { pid, folders })
    return folders
  }

  /** Undefined: the container does not run. */
  const readingOf = (container: RuntimeContainer, brief: boolean): GroupReading | undefined => {
    if (container.state !== 'running' && container.state !== 'paused') return undefined
    const folders = foldersOf(container)
    const reading = folders === undefined ? undefined : readGroup(folders, brief)
    if (reading !== undefined && Object.keys(reading).length > 0) return reading
    places.delete(container.id)
    containerList.invalidate()
    return undefined
  }

  const running = async (brief: boolean) => {
    const containers = await containerList.containers()
    const here = new Set(containers.map(({ id }) => id))
    places = new Map([...places].filter(([id]) => here.has(id)))
    return [...byPod(containers)].map(([uid, own]) => ({
      uid,
      own: own.flatMap((container) => {
        if (brief && container.identity.kind === 'sandbox') return []
        const reading = readingOf(container, brief)
        return reading === undefined ? [] : [{ container, reading }]
      }),
    }))
  }

  const walk = async () => {
    try {
      const readings = await readPodDisks(await containerList.containers(), volumes, counter)
      disks = { readings, atMs: clock.monotonicMs() }
      return readings
    } finally {
      walking = undefined
    }
  }

  return {
    async podUsage() {
      return (await running(true)).flatMap(({ uid, own }) => {
        const containers = own.map(({ container: { identity }, reading: { memory, pids } }) => ({
          name: identity.containerName,
          ...(memory && { memoryWorkingSetBytes: memory.workingSetBytes }),
          ...(pids && { pids: pids.current }),
        }))
        return containers.length === 0 ? [] : [{ uid, containers }]
      })
    },

    async podReadings(whole = false) {
      const names = whole ? deviceNames(root) : undefined
      return (await running(false)).flatMap(({ uid, own }): PodReading | readonly PodReading[] => {
        const [any] = own
        if (any === undefined) return []
        const sandbox = own.find(({ container }) => container.identity.kind === 'sandbox')
        const { podName: name, podNamespace: namespace } = any.container.identity
        return {
          uid,
          namespace,
          name,
          startedAt: (sandbox ?? any).container.startedAt,
          sandbox: sandbox?.reading,
          network: networkOf(root, sandbox?.container),
          containers: own
            .filter(({ container }) => container.identity.kind === 'container')
            .map(({ container: { id, identity, image, startedAt }, reading }) => ({
              id,
              name: identity.containerName,
              image,
              startedAt,
              ...reading,
              ...(names && moreOf(places.get(id)?.folders, names)),
            })),
        }
      })
    },

    async podDiskUsage(maxAgeMs = diskAgeMs) {
      if (disks !== undefined && clock.monotonicMs() - disks.atMs < maxAgeMs) return disks.readings
      walking ??= walk()
      return walking
    },
  }
}

function moreOf(folders: GroupFolders | undefined, names: ReadonlyMap<string, string>) {
  if (folders === undefined) return {}
  const cpuLimit = readCpuLimit(folders)
  return { io: readIo(folders, names), ...(cpuLimit && { cpuLimit }) }
}

/** The traffic of a pod with its own address. On the host's network it would be that of the whole machine. */
function networkOf(root: string, sandbox: RuntimeContainer | undefined): readonly InterfaceReading[] | undefined {
  if (sandbox?.pid === undefined || sandbox.ip === undefined) return undefined
  try {
    return interfacesOf(readFileSync(join(root, `proc/${sandbox.pid}/net/dev`), 'utf8'))
  } catch {
    return undefined // it ended meanwhile
  }
}
