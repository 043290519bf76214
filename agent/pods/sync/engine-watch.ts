/** The two loops that notice what happens in the container engine: its events, and a slow look at everything. */
import { alarm } from '../../../daemon/alarm.ts'
import { backoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ContainerRuntime } from '../runtime/runtime.ts'

export type EngineWatchNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'watch'>
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly resyncMs: number
}

export type EngineListener = {
  /** Look at everything. When it fails it is asked again soon. */
  survey(): Promise<void>
  /** The engine answers (again). */
  opened(): void
  changed(podUID: string): void
}

export interface EngineWatch {
  /** Look at everything now. */
  wake(): void
  run(signal: AbortSignal): Promise<void>
}

/** One that starts late keeps its pods waiting no longer than that; asking a socket nobody listens on costs nothing. */
const retry = { firstMs: 200, maxMs: 2_000 }

export function engineWatch(needs: EngineWatchNeeds, listener: EngineListener): EngineWatch {
  const { runtime, clock, random, log, resyncMs } = needs
  const news = alarm(clock)

  const survey = async (signal: AbortSignal) => {
    for (let failures = 0; !signal.aborted; ) {
      let waitMs = resyncMs
      try {
        await listener.survey()
        failures = 0
      } catch (error) {
        waitMs = backoffMs(failures++, retry, random)
        log.debug('Containers not looked at', { retryInMs: Math.round(waitMs), error })
      }
      await news.sleep(waitMs, signal)
    }
  }

  const watch = async (signal: AbortSignal) => {
    let failures = 0
    const opened = () => {
      failures = 0
      news.ring()
      listener.opened()
    }
    while (!signal.aborted) {
      try {
        await runtime.watch({ opened, changed: listener.changed }, signal)
      } catch (error) {
        const retryInMs = backoffMs(failures++, retry, random)
        // That the engine is away is told once, by who asks it how it is.
        log.debug('Container engine not watched', { retryInMs: Math.round(retryInMs), error })
        await clock.sleep(retryInMs, signal)
      }
    }
  }

  return {
    wake: news.ring,
    async run(signal) {
      await Promise.all([watch(signal), survey(signal)])
    },
  }
}
