/** Gives each container a file for its termination message, and reads it after the container has ended. */
import type { Container, Pod } from '../../../api/pod.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import {
  type ContainerMount,
  type ContainerRuntime,
  isUnreachable,
  type RuntimeContainer,
} from '../../runtime/runtime.ts'
import { isRunning } from '../record/pod-containers.ts'
import { onTerminationMessage } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import {
  asksForLog,
  lastBytes,
  messageMount,
  mostLogBytes,
  mostLogLines,
  mostMessageBytes,
} from '../record/termination-messages.ts'
import type { VolumeStore } from '../volumes/volume-store.ts'
import { podPath } from '../wanted/desired-pods.ts'
import { containerNamed } from './hooks.ts'

export type TerminationMessageNeeds = {
  readonly records: PodRecords
  readonly runtime: Pick<ContainerRuntime, 'logTail'>
  readonly volumes: Pick<VolumeStore, 'message'>
  readonly log: Log
}

/** Reads the messages of containers that ended since the last call into the pod's record. */
export async function readTerminationMessages(
  needs: TerminationMessageNeeds,
  pod: Pod,
  containers: readonly RuntimeContainer[],
): Promise<void> {
  const uid = pod.metadata.uid ?? ''
  for (const one of containers) {
    const container = containerNamed(pod, one.identity.containerName)
    const isRead = needs.records.get(uid)?.terminationMessages.has(one.id) ?? false
    if (container === undefined || isRead || isRunning(one) || one.state === 'created') continue
    const message = await messageOf(needs, container, one)
    needs.records.update(uid, (record) => onTerminationMessage(record, one.id, message))
  }
}

async function messageOf(
  { runtime, volumes }: TerminationMessageNeeds,
  container: Container,
  { id, identity, exitCode }: RuntimeContainer,
): Promise<string> {
  const { podUID, attempt } = identity
  const written = await volumes.message(podUID, container.name, attempt, mostMessageBytes)
  if (written.length > 0 || !asksForLog(container, exitCode)) return lastBytes(written, mostMessageBytes)
  try {
    return lastBytes(await runtime.logTail(id, mostLogLines, mostLogBytes), mostLogBytes)
  } catch (error) {
    if (isUnreachable(error)) throw error
    return `Error on reading termination message from logs: ${storyOf(error)}`
  }
}

/** The mount of the message file. If the file cannot be created, the container runs without one. */
export async function terminationMessageMount(
  { volumes, log }: { readonly volumes: Pick<VolumeStore, 'messageFile'>; readonly log: Log },
  pod: Pod,
  container: Container,
  attempt: number,
  mounts: readonly ContainerMount[],
): Promise<readonly ContainerMount[]> {
  try {
    const file = await volumes.messageFile(pod.metadata.uid ?? '', container.name, attempt)
    return messageMount(container, mounts, file)
  } catch (error) {
    log.warn('Container has no termination message', { pod: podPath(pod), container: container.name, error })
    return []
  }
}
