/** What a handler of a session works with. */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Pod } from '../../api/pod.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { SessionFrames } from '../../daemon/sessions/session-frames.ts'
import type { VolumeBackups } from '../pods/volumes/volume-backups.ts'
import type { VolumeCopies } from '../pods/volumes/volume-moves.ts'
import type { RuntimeContainer } from '../runtime/runtime.ts'
import type { EngineStreams } from './engine-streams.ts'

export type OpenSession = {
  readonly frames: SessionFrames
  /** Aborts when the session ends, from whichever side. */
  readonly signal: AbortSignal
  /** Announces that what was requested has begun: call it before anything is sent. */
  started(): Promise<void>
}

/** What sessions with the node need of it. */
export type NodeParts = {
  /** Answers HTTP requests on the stream. */
  readonly serve: (stream: Duplex) => void
  /** The address by which other machines reach the node; undefined while it has none. */
  readonly address: () => string | undefined
}

/** The loopback address in the network of a pod, which is not that of the machine. */
export interface PodLoopback {
  /** Rejects where nothing listens there. `containerID`: any container of the pod that runs. */
  connect(containerID: string, port: number, signal: AbortSignal): Promise<Socket>
  /** Ends what it started; connections continue. */
  close(): void
}

export type PodSessionNeeds = {
  readonly engine: EngineStreams
  /** The pods that are to run here, with their status. */
  readonly pods: () => readonly Pod[]
  /** The containers of one pod, of this node only. */
  readonly containersOf: (podUID: string) => Promise<readonly RuntimeContainer[]>
  readonly node: NodeParts
  readonly loopback: Pick<PodLoopback, 'connect'>
  readonly copies: VolumeCopies
  readonly backups: VolumeBackups
  readonly clock: Clock
}

/** What a handler of a session works with. */
export type PodSession = PodSessionNeeds & OpenSession & { readonly pod: Pod }
