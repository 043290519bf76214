/** Pulls images beside everything else: a few at a time, each once however many pods wait for it, failures further apart. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import type { PullState } from './images.ts'
import type { ContainerRuntime, RegistryCredentials } from './runtime.ts'

/** Whoever has other credentials does not wait for the failures of the first. */
export type WantedImage = {
  readonly image: string
  /** Tried one after the other. */
  readonly credentials: readonly RegistryCredentials[]
}

export interface ImagePuller {
  /** Begins, unless it is going on. `ended` is called once, whatever becomes of it. */
  pull(wanted: WantedImage, ended: () => void): void
  /** What became of the image since `sinceMs` (monotonic). */
  stateOf(wanted: WantedImage, sinceMs: number): PullState
  /** How long the last pull took. */
  tookMs(wanted: WantedImage): number | undefined
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
  let line: readonly WantedImage[] = []
  let busy = 0

  const pullNow = async (wanted: WantedImage) => {
    const { image } = wanted
    const key = keyOf(wanted)
    const beganMs = clock.monotonicMs()
    try {
      await pullWithAny(runtime, wanted, calledOff.signal)
      const nowMs = clock.monotonicMs()
      settle(key, { pulledAtMs: nowMs, tookMs: nowMs - beganMs })
      log.info('Image pulled', { image, tookMs: Math.round(nowMs - beganMs) })
    } catch (error) {
      const failure = nextFailure(images.get(key)?.failure, storyOf(error), clock.monotonicMs())
      settle(key, { failure })
      if (!calledOff.signal.aborted) log.warn('Image not pulled', { image, retryInMs: failure.waitMs, error })
    }
  }

  const settle = (key: string, result: Pick<History, 'pulledAtMs' | 'tookMs' | 'failure'>) => {
    const waiting = images.get(key)?.waiting ?? []
    images.set(key, { waiting: [], pulling: false, ...result })
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
    pull(wanted, ended) {
      const key = keyOf(wanted)
      const history = images.get(key)
      const waiting = [...(history?.waiting ?? []), ended]
      images.set(key, { ...history, waiting, pulling: true })
      if (history?.pulling) return
      line = [...line, wanted]
      void work()
    },
    stateOf(wanted, sinceMs) {
      const { pulling, pulledAtMs, failure } = images.get(keyOf(wanted)) ?? { pulling: false }
      if (pulling) return { state: 'pulling' }
      if (pulledAtMs !== undefined) return pulledAtMs >= sinceMs ? { state: 'pulled' } : { state: 'none' }
      if (failure === undefined) return { state: 'none' }
      const failedMsAgo = clock.monotonicMs() - failure.atMs
      return { state: 'failed', message: failure.message, failedMsAgo, retryInMs: failure.waitMs - failedMsAgo }
    },
    tookMs: (wanted) => images.get(keyOf(wanted))?.tookMs,
    async run(signal) {
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      line = []
      calledOff.abort()
    },
  }
}

/** With each of the credentials until one opens; without any where there are none. */
async function pullWithAny(
  runtime: Pick<ContainerRuntime, 'pullImage'>,
  { image, credentials }: WantedImage,
  signal: AbortSignal,
): Promise<void> {
  const [first, ...rest] = credentials
  try {
    await runtime.pullImage(image, signal, first)
  } catch (error) {
    if (rest.length === 0 || signal.aborted) throw error
    await pullWithAny(runtime, { image, credentials: rest }, signal)
  }
}

function keyOf({ image, credentials }: WantedImage): string {
  if (credentials.length === 0) return image
  return `${image} ${createHash('sha256').update(JSON.stringify(credentials)).digest('hex')}`
}

function nextFailure(last: History['failure'], message: string, nowMs: number): NonNullable<History['failure']> {
  const grows = last !== undefined && nowMs - last.atMs <= last.waitMs + forgetAfterMs
  return { atMs: nowMs, waitMs: grows ? Math.min(maxWaitMs, last.waitMs * 2) : firstWaitMs, message }
}
