/** What is noted of one pod between two looks, since the engine does not know it. */
import type { Container, PodStatus } from '../../api/pod.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import { hasEnded } from './pod-containers.ts'
import { backoffKey, nothingRemembered, type PodMemory, type Waiting } from './pod-steps.ts'
import { afterRestart } from './restarts.ts'
import type { RuntimeContainer } from './runtime.ts'

export interface PodNotes {
  /** The part of a plan's memory that is noted here. */
  memory(): Pick<
    PodMemory,
    'backoffs' | 'exits' | 'troubles' | 'sandboxRetryAtMs' | 'sandboxTrouble' | 'stuck' | 'restartCounts'
  >
  /** All containers there are. Gives those of which it is news that they ended. */
  observe(containers: readonly RuntimeContainer[]): readonly RuntimeContainer[]
  /** What was reported, for what only the report remembers. */
  reported(status: PodStatus): void
  /** The container could not be made: not before this time has passed again. */
  trouble(containerName: string, why: Waiting, forMs: number): void
  /** The container was made, after `previous`: nothing is in its way. */
  made(container: Container, previous: RuntimeContainer | undefined): void
  readonly hasSandboxFailed: boolean
  sandboxMade(): void
  /** Gives how long it is waited for. */
  sandboxFailed(why: string): number
  removed(id: string): void
  /** The engine could not remove it. */
  stuck(id: string): void
  /** What was in the way may have changed. */
  forgetTroubles(): void
}

/** What the engine cannot remove stands in nobody's way meanwhile. */
const stuckMs = 30_000
const sandboxRetry = { firstMs: 1_000, maxMs: 30_000 }

export function podNotes(clock: Clock): PodNotes {
  const backoffs = new Map(nothingRemembered.backoffs)
  const exits = new Map(nothingRemembered.exits)
  const troubles = new Map(nothingRemembered.troubles)
  const restartCounts = new Map(nothingRemembered.restartCounts)
  const stuck = new Map(nothingRemembered.stuck)
  let sandboxFailures = 0
  let sandboxRetryAtMs: number | undefined
  let sandboxTrouble = ''

  return {
    memory: () => ({ backoffs, exits, troubles, sandboxRetryAtMs, sandboxTrouble, stuck, restartCounts }),
    observe(containers) {
      const ids = new Set(containers.map(({ id }) => id))
      for (const map of [exits, stuck]) for (const id of [...map.keys()]) if (!ids.has(id)) map.delete(id)
      const ended = containers.filter((container) => hasEnded(container) && !exits.has(container.id))
      for (const { id, finishedAt, createdAt } of ended) {
        const agoMs = clock.wallMs() - Date.parse(finishedAt ?? createdAt)
        // The date may have jumped since: it ended now at the latest.
        exits.set(id, clock.monotonicMs() - Math.max(0, Number.isNaN(agoMs) ? 0 : agoMs))
      }
      return ended
    },
    reported({ containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] }) {
      const all = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
      for (const { name, containerID, restartCount } of all) {
        if (containerID !== undefined) restartCounts.set(name, restartCount)
      }
    },
    trouble(name, why, forMs) {
      troubles.set(name, { ...why, retryAtMs: clock.monotonicMs() + forMs })
    },
    made(container, previous) {
      troubles.delete(container.name)
      if (previous === undefined) return
      const nowMs = clock.monotonicMs()
      const key = backoffKey(container)
      backoffs.set(key, afterRestart(backoffs.get(key), exits.get(previous.id) ?? nowMs, nowMs))
    },
    get hasSandboxFailed() {
      return sandboxFailures > 0
    },
    sandboxMade() {
      sandboxFailures = 0
      sandboxTrouble = ''
    },
    sandboxFailed(why) {
      const waitMs = backoffMs(sandboxFailures++, sandboxRetry, () => 1)
      sandboxRetryAtMs = clock.monotonicMs() + waitMs
      sandboxTrouble = why
      return waitMs
    },
    removed: (id) => void stuck.delete(id),
    stuck: (id) => void stuck.set(id, clock.monotonicMs() + stuckMs),
    forgetTroubles() {
      troubles.clear()
      sandboxRetryAtMs = undefined
    },
  }
}
