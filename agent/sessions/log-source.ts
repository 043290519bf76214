/** Selects the container whose log is read (validateContainerLogStatus in pkg/kubelet/kubelet_pods.go). */
import type { ContainerStatus, Pod } from '../../api/pod.ts'

/** `id` as the engine writes it. */
export type LogSource = { readonly id: string } | { readonly problem: string }

/** By the status of the pod; `problem` is a sentence of the kubelet. */
export function logSource({ metadata, status }: Pod, container: string, previous: boolean): LogSource {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {}
  const all = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses]
  const found = all.find(({ name }) => name === container)
  const where = `container "${container}" in pod "${metadata.name}"`
  if (found === undefined) return { problem: `${where} is not available` }
  const last = found.lastState?.terminated?.containerID
  if (previous) {
    const gone = `previous terminated container "${container}" in pod "${metadata.name}" not found`
    return sourceOf(last) ?? { problem: gone }
  }
  return present(found, where) ?? sourceOf(last) ?? { problem: `${where} ${whyNone(found)}` }
}

function present({ state, containerID }: ContainerStatus, where: string): LogSource | undefined {
  if (state?.running !== undefined) return sourceOf(containerID) ?? { problem: `${where} is not available` }
  return state?.terminated === undefined ? undefined : sourceOf(state.terminated.containerID)
}

function whyNone({ state }: ContainerStatus): string {
  if (state?.terminated !== undefined) return 'is terminated'
  switch (state?.waiting?.reason) {
    case undefined:
      return 'is waiting to start - no logs yet'
    case 'ErrImagePull':
      return "is waiting to start: image can't be pulled"
    case 'ImagePullBackOff':
      return 'is waiting to start: trying and failing to pull image'
    default:
      return `is waiting to start: ${state?.waiting?.reason}`
  }
}

/** A status names its container as `docker://ID`. */
function sourceOf(containerID: string | undefined): LogSource | undefined {
  const id = /^\w+:\/\/(.+)$/.exec(containerID ?? '')?.[1]
  return id === undefined ? undefined : { id }
}
