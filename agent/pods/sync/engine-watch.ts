/** Two loops that observe the container engine: its events, and a list of all containers at long intervals. */
import { alarm } from '../../../daemon/alarm.ts'
import { backoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ContainerRuntime } from '../../runtime/runtime.ts'

export type EngineWatchNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'watch'>
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly resyncMs: number
}

export type EngineListener = {
  /** List all containers. Called again soon after a failure. */
  relist(): Promise<void>
  /** The engine answers, for the first time or again. */
  opened(): void
  changed(podUID: string): void
}

export interface EngineWatch {
  /** List all containers now. */
  wake(): void
  run(listener: EngineListener, signal: AbortSignal): Promise<void>
}

/**
 * The longest wait of pods for an engine that starts late. A connection to a socket without a listener costs nothing.
 */
const retry = { firstMs: 200, maxMs: 2_000 }

export function engineWatch(needs: EngineWatchNeeds): EngineWatch {
  const { runtime, clock, random, log, resyncMs } = needs
  const wake = alarm(clock)

  const relist = async (listener: EngineListener, signal: AbortSignal) => {
    for (let failures = 0; !signal.aborted; ) {
      let waitMs = resyncMs
      try {
        await listener.relist()
        failures = 0
      } catch (error) {
        waitMs = backoffMs(failures++, retry, random)
        log.debug('Containers not listed', { retryInMs: Math.round(waitMs), error })
      }
      await wake.sleep(waitMs, signal)
    }
  }

  const watch = async (listener: EngineListener, signal: AbortSignal) => {
    let failures = 0
    const opened = () => {
      failures = 0
      wake.ring()
      listener.opened()
    }
    while (!signal.aborted) {
      try {
        await runtime.watch({ opened, changed: listener.changed }, signal)
      } catch (error) {
        const retryInMs = backoffMs(failures++, retry, random)
        // An unreachable engine is logged once, by `runtime-health.ts`.
        log.debug('Container engine events not received', { retryInMs: Math.round(retryInMs), error })
        await clock.sleep(retryInMs, signal)
      }
    }
  }

  return {
    wake: wake.ring,
    async run(listener, signal) {
      await Promise.all([watch(listener, signal), relist(listener, signal)])
    },
  }
}
