/** The two loops that notice what happens in the container engine: its events, and a slow look at everything. */
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { ContainerRuntime } from './runtime.ts'

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

const retry = { firstMs: 200, maxMs: 30_000 }

export function engineWatch(needs: EngineWatchNeeds, listener: EngineListener): EngineWatch {
  const { runtime, clock, random, log, resyncMs } = needs
  let wake: () => void = () => undefined

  const survey = async (signal: AbortSignal) => {
    for (let failures = 0; !signal.aborted; ) {
      const woken = new AbortController()
      wake = () => woken.abort()
      let waitMs = resyncMs
      try {
        await listener.survey()
        failures = 0
      } catch (error) {
        waitMs = backoffMs(failures++, retry, random)
        log.debug('Containers not looked at', { retryInMs: Math.round(waitMs), error })
      }
      await clock.sleep(waitMs, AbortSignal.any([signal, woken.signal]))
    }
  }

  const watch = async (signal: AbortSignal) => {
    let away = false
    let failures = 0
    const opened = () => {
      if (away) log.info('Container engine is back')
      away = false
      failures = 0
      wake()
      listener.opened()
    }
    while (!signal.aborted) {
      try {
        await runtime.watch({ opened, changed: listener.changed }, signal)
      } catch (error) {
        if (!away) log.warn('Container engine does not answer', { error })
        away = true
        await clock.sleep(backoffMs(failures++, retry, random), signal)
      }
    }
  }

  return {
    wake: () => wake(),
    async run(signal) {
      await Promise.all([watch(signal), survey(signal)])
    },
  }
}
