/** Pulls images beside everything else: a few at a time, each once however many pods wait for it, failures further apart. */
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import type { PullState } from './images.ts'
import type { ContainerRuntime } from './runtime.ts'

export interface ImagePuller {
  /** Begins, unless it is going on. `ended` is called once, whatever becomes of it. */
  pull(image: string, ended: () => void): void
  /** What became of the image since `sinceMs` (monotonic). */
  stateOf(image: string, sinceMs: number): PullState
  /** How long the last pull took. */
  tookMs(image: string): number | undefined
  /** Until `signal` aborts: pulls under way are then called off. */
  run(signal: AbortSignal): Promise<void>
}

export type ImagePullerNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'pullImage'>
  readonly clock: Clock
  readonly log: Log
}

const firstWaitMs = 10_000
const maxWaitMs = 300_000
const forgetAfterMs = 600_000

type History = {
  readonly waiting: readonly (() => void)[]
  readonly pulling: boolean
  readonly pulledAtMs?: number
  readonly tookMs?: number
  readonly failure?: { readonly atMs: number; readonly waitMs: number; readonly message: string }
}

export function imagePuller({ runtime, clock, log }: ImagePullerNeeds, parallel: number): ImagePuller {
  const calledOff = new AbortController()
  const images = new Map<string, History>()
  let line: readonly string[] = []
  let busy = 0

  const pullNow = async (image: string) => {
    const beganMs = clock.monotonicMs()
    try {
      await runtime.pullImage(image, calledOff.signal)
      const nowMs = clock.monotonicMs()
      settle(image, { pulledAtMs: nowMs, tookMs: nowMs - beganMs })
      log.info('Image pulled', { image, tookMs: Math.round(nowMs - beganMs) })
    } catch (error) {
      const failure = nextFailure(images.get(image)?.failure, storyOf(error), clock.monotonicMs())
      settle(image, { failure })
      if (!calledOff.signal.aborted) log.warn('Image not pulled', { image, retryInMs: failure.waitMs, error })
    }
  }

  const settle = (image: string, result: Pick<History, 'pulledAtMs' | 'tookMs' | 'failure'>) => {
    const waiting = images.get(image)?.waiting ?? []
    images.set(image, { waiting: [], pulling: false, ...result })
    for (const ended of waiting) ended()
  }

  const work = async () => {
    if (busy >= parallel) return
    busy++
    for (let next = line[0]; next !== undefined; next = line[0]) {
      line = line.slice(1)
      await pullNow(next)
    }
    busy--
  }

  return {
    pull(image, ended) {
      const history = images.get(image)
      const waiting = [...(history?.waiting ?? []), ended]
      images.set(image, { ...history, waiting, pulling: true })
      if (history?.pulling) return
      line = [...line, image]
      void work()
    },
    stateOf(image, sinceMs) {
      const { pulling, pulledAtMs, failure } = images.get(image) ?? { pulling: false }
      if (pulling) return { state: 'pulling' }
      if (pulledAtMs !== undefined) return pulledAtMs >= sinceMs ? { state: 'pulled' } : { state: 'none' }
      if (failure === undefined) return { state: 'none' }
      const failedMsAgo = clock.monotonicMs() - failure.atMs
      return { state: 'failed', message: failure.message, failedMsAgo, retryInMs: failure.waitMs - failedMsAgo }
    },
    tookMs: (image) => images.get(image)?.tookMs,
    async run(signal) {
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      line = []
      calledOff.abort()
    },
  }
}

function nextFailure(last: History['failure'], message: string, nowMs: number): NonNullable<History['failure']> {
  const grows = last !== undefined && nowMs - last.atMs <= last.waitMs + forgetAfterMs
  return { atMs: nowMs, waitMs: grows ? Math.min(maxWaitMs, last.waitMs * 2) : firstWaitMs, message }
}
