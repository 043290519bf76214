/** Termination messages: the path of the file, and how much of it is reported. */
import type { Container, ContainerStatus } from '../../../api/pod.ts'
import type { ContainerMount } from '../../runtime/runtime.ts'

/**
 * Limits of pkg/kubelet/container/runtime.go: for the file of one container, for its log as a fallback, and for all containers of
 * a pod together.
 */
export const mostMessageBytes = 4096
export const mostLogLines = 80
export const mostLogBytes = 2048
const mostPodBytes = 12 * 1024

const standardPath = '/dev/termination-log'

/** The mount of the message file. None when the container mounts something else there. */
export function messageMount(
  { terminationMessagePath = standardPath }: Container,
  mounts: readonly ContainerMount[],
  file: string,
): readonly ContainerMount[] {
  const path = terminationMessagePath === '' ? standardPath : terminationMessagePath
  const target = path.startsWith('/') ? path : `/${path}`
  if (mounts.some((mount) => mount.target === target)) return []
  return [{ source: file, target, readOnly: false, propagation: 'rprivate' }]
}

/** Whether the end of its log is used for a container without a message. */
export function asksForLog({ terminationMessagePolicy }: Container, exitCode: number): boolean {
  return terminationMessagePolicy === 'FallbackToLogsOnError' && exitCode !== 0
}

/** The limit is divided equally between the containers of a pod. */
export function withinPod(statuses: readonly ContainerStatus[], containers: number): readonly ContainerStatus[] {
  const most = Math.floor(mostPodBytes / Math.max(1, containers))
  const shortened = (state: ContainerStatus['state']): ContainerStatus['state'] => {
    const { message } = state?.terminated ?? {}
    if (state?.terminated === undefined || message === undefined || message.length * 3 <= most) return state
    return { ...state, terminated: { ...state.terminated, message: firstBytes(message, most) } }
  }
  return statuses.map(({ state, lastState, ...status }) => {
    const [now, before] = [shortened(state), shortened(lastState)]
    return {
      ...status,
      ...(now === undefined ? {} : { state: now }),
      ...(before === undefined ? {} : { lastState: before }),
    }
  })
}

/** Does not split a character. */
function firstBytes(text: string, most: number): string {
  const bytes = Buffer.from(text)
  let end = Math.min(most, bytes.length)
  while (end > 0 && end < bytes.length && isContinuation(bytes[end])) end--
  return bytes.subarray(0, end).toString()
}

/** The end of the text, without a split character. */
export function lastBytes(bytes: Buffer, most: number): string {
  let start = Math.max(0, bytes.length - most)
  while (start > 0 && start < bytes.length && isContinuation(bytes[start])) start++
  return bytes.subarray(start).toString()
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
