/** Gives the containers of one pod a file for their last words, and reads it when they have ended. */
import type { Container, Pod } from '../../api/pod.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { pathOf } from './desired-pods.ts'
import { containerNamed } from './hooks.ts'
import { isRunning } from './pod-containers.ts'
import { type ContainerMount, type ContainerRuntime, isUnreachable, type RuntimeContainer } from './runtime.ts'
import {
  asksForLog,
  lastBytes,
  messageMount,
  mostLogBytes,
  mostLogLines,
  mostMessageBytes,
} from './termination-messages.ts'
import type { VolumeStore } from './volumes/volume-store.ts'

export type MessageReaderNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'logTail'>
  readonly volumes: Pick<VolumeStore, 'messageFile' | 'message'>
  readonly log: Log
}

export interface MessageReader {
  /** By container id. */
  readonly messages: ReadonlyMap<string, string>
  /** Where the container finds its file. One that cannot be had is missed by nobody but a reader: it runs without. */
  mountFor(
    pod: Pod,
    container: Container,
    attempt: number,
    mounts: readonly ContainerMount[],
  ): Promise<readonly ContainerMount[]>
  /** Of those that ended since the last look. */
  read(pod: Pod, containers: readonly RuntimeContainer[]): Promise<void>
  /** All there are; the others' words are dropped. */
  present(ids: ReadonlySet<string>): void
}

export function messageReader({ runtime, volumes, log }: MessageReaderNeeds): MessageReader {
  const messages = new Map<string, string>()

  const messageOf = async (container: Container, { id, identity, exitCode }: RuntimeContainer) => {
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

  return {
    messages,
    async mountFor(pod, container, attempt, mounts) {
      try {
        const file = await volumes.messageFile(pod.metadata.uid ?? '', container.name, attempt)
        return messageMount(container, mounts, file)
      } catch (error) {
        log.warn('Container has no termination message', { pod: pathOf(pod), container: container.name, error })
        return []
      }
    },
    async read(pod, containers) {
      for (const one of containers) {
        const container = containerNamed(pod, one.identity.containerName)
        if (container === undefined || messages.has(one.id) || isRunning(one) || one.state === 'created') continue
        messages.set(one.id, await messageOf(container, one))
      }
    },
    present(ids) {
      for (const id of [...messages.keys()]) if (!ids.has(id)) messages.delete(id)
    },
  }
}
