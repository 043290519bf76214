/** Streams such as that of `kubectl logs`. Their code is loaded with the first request. */

import { aborted } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { KnownTime } from '../../daemon/server-check.ts'
import type { EndpointView } from '../adapters/http/endpoint-answers.ts'
import type { NodeCredentials } from '../node/certificate/certificate-manager.ts'
import type { PodManager } from '../pods/pod-manager.ts'
import type { VolumeBackups } from '../pods/volumes/volume-backups.ts'
import type { VolumeCopies } from '../pods/volumes/volume-moves.ts'
import type { ContainerRuntime } from '../runtime/runtime.ts'
import type { EngineStreams } from '../sessions/engine-streams.ts'
import type { SessionRunner } from '../sessions/session-runner.ts'

export type SessionParts = {
  /** `https://HOST:PORT` of the API that is used now. */
  readonly apiUrl: () => string
  readonly credentials: () => NodeCredentials
  readonly knownTime: KnownTime
  readonly pods: Pick<PodManager, 'pods'>
  readonly runtime: Pick<ContainerRuntime, 'listContainers'>
  /** Loads it. */
  readonly engine: () => Promise<EngineStreams>
  readonly copies: VolumeCopies
  readonly backups: VolumeBackups
  /** What the node proxy shows. */
  readonly view: EndpointView
  /** The node's own address, once it is known. */
  readonly address: () => string | undefined
  readonly clock: Clock
  readonly log: Log
}

export interface Sessions extends Loop {
  /** The controller requests a session under this id. */
  requested(id: string): void
  /** The connection to the controller has ended: the controller has ended the sessions, or will. */
  disconnected(): void
}

export function assembleSessions(parts: SessionParts): Sessions {
  const { pods, runtime, clock, log } = parts
  let loaded: ReturnType<typeof load> | undefined
  const load = async () => {
    const { sessionRunner } = await import('../sessions/session-runner.ts')
    const { servePodSession } = await import('../sessions/pod-sessions.ts')
    const { dialSession } = await import('../adapters/http/session-dial.ts')
    const { sessionEndpoint } = await import('../adapters/http/session-endpoint.ts')
    const dial = (id: string, signal: AbortSignal) =>
      dialSession(id, { url: parts.apiUrl(), knownTime: parts.knownTime, ...parts.credentials() }, signal)
    const runner: SessionRunner = sessionRunner({ dial, clock, log })
    const { podLoopback } = await import('../adapters/kernel/pod-loopback.ts')
    const engine = await parts.engine()
    const loopback = podLoopback(engine)
    const needs = {
      engine,
      loopback,
      copies: parts.copies,
      backups: parts.backups,
      pods: pods.pods,
      containersOf: runtime.listContainers,
      node: { serve: sessionEndpoint(parts.view), address: parts.address },
      clock,
    }
    return {
      runner,
      loopback,
      serve: (id: string) => runner.start(id, (stream, signal) => servePodSession(stream, signal, needs)),
    }
  }
  return {
    name: 'sessions',
    requested(id) {
      loaded ??= load()
      loaded
        .then(({ serve }) => serve(id) || log.warn('Session not started: there are too many', { id }))
        .catch((error) => log.error('Sessions cannot be served', { error }))
    },
    disconnected() {
      loaded?.then(
        ({ runner }) => runner.end(),
        () => undefined, // logged with the request
      )
    },
    async run(signal) {
      await aborted(signal)
      await loaded?.then(({ runner, loopback }) => {
        loopback.close()
        return runner.end()
      })
    },
  }
}
