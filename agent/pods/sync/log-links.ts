/**
 * The links by which log collectors find the logs of containers, in the kubelet's layout (pkg/kubelet/kuberuntime/helpers.go and
 * legacy.go). Their targets are the files that the engine writes.
 */

import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { isHalfMade } from '../record/pod-containers.ts'

/** In a folder of `/var/log`, by its path below it. */
export type LogLink = { readonly folders: readonly string[]; readonly name: string; readonly target: string }

export interface PodLogLinks {
  /** Makes the links of these containers, and removes those that were made of other containers of the pod. Never fails. */
  observe(podUID: string, containers: readonly RuntimeContainer[]): Promise<void>
  /** Removes links to logs that no longer exist. Never fails. */
  clean(): Promise<void>
}

/** A name of ext4 has at most 255 bytes. */
const mostNameBytes = 255
const suffix = '.log'
const safeName = /^[A-Za-z0-9][A-Za-z0-9.-]*$/

/** None for a container without a log file: another log driver, or it was never started. */
export function logLinks(containers: readonly RuntimeContainer[]): readonly LogLink[] {
  return containers.flatMap((container): readonly LogLink[] => {
    const { id, identity, logPath } = container
    const { kind, podNamespace, podName, podUID, containerName, attempt } = identity
    const podFolder = `${podNamespace}_${podName}_${podUID}`
    const isSafe = [podNamespace, podName, podUID, containerName].every((name) => safeName.test(name))
    if (kind !== 'container' || logPath === undefined || isHalfMade(container)) return []
    if (!isSafe || podFolder.length > mostNameBytes) return []
    const first = { folders: ['pods', podFolder, containerName], name: `${attempt}${suffix}`, target: logPath }
    const name = `${podName}_${podNamespace}_${containerName}-${id}`.slice(0, mostNameBytes - suffix.length)
    const target = ['/var/log', ...first.folders, first.name].join('/')
    return [first, { folders: ['containers'], name: `${name}${suffix}`, target }]
  })
}
