/**
 * Pulls images in the background: several at once, each image once for all pods that wait for it. Failed pulls are retried with a
 * back-off.
 */
import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { aborted } from '../../../daemon/aborted.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { ContainerRuntime, PullProgress, RegistryCredentials } from '../../runtime/runtime.ts'
import type { PullState } from './image-decision.ts'

/** Pulls with other credentials are not delayed by failures of the first. */
export type WantedImage = {
  readonly image: string
  /** Tried one after the other. */
  readonly credentials: readonly RegistryCredentials[]
}

/** Callbacks of one pod that waits for a pull. */
export type PullWaiter = {
  /** UID of the pod. */
  readonly uid: string
  /** Called once, when the pull succeeds or fails. */
  readonly ended: () => void
  /** Called every few minutes during a long pull. */
  readonly goesOn: (progress: PullProgress) => void
}

/** `waitedMs`: time in the queue. */
export type PullTimes = { readonly tookMs: number; readonly waitedMs: number }

export interface ImagePuller {
  /** Starts a pull, or waits for the one in progress. */
  pull(wanted: WantedImage, waiter: PullWaiter): void
  /**
   * The state of the image for a pod, since `sinceMs` (monotonic). A pull that this pod does not wait for does not count: the pod would
   * not be notified of its end.
   */
  stateOf(wanted: WantedImage, pod: { readonly uid: string; readonly sinceMs: number }): PullState
  /** Times of the last pull. */
  timesOf(wanted: WantedImage): PullTimes | undefined
  /** Pulls until `signal` aborts, and cancels the pulls in progress then. */
  run(signal: AbortSignal): Promise<void>
}

export type ImagePullerNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'pullImage'>
  readonly clock: Clock
  readonly log: Log
}

export type ImagePullerSettings = {
  /** Maximum of concurrent pulls. */
  readonly parallel: number
  /** A pull without progress for this long is cancelled. */
  readonly stallMs: number
}

const firstWaitMs = 10_000
const maxWaitMs = 300_000
/** Since the last failure: `flowcontrol.Backoff` removes an entry after twice the maximum wait (client-go, hasExpired). */
const forgetAfterMs = 2 * maxWaitMs
const logEveryMs = 30_000
/** Ended pulls that are kept: more than the pods of a machine have images. */
const mostEnded = 500
/** Log lines per Event: Events are sent over a slow link. */
const logsPerEvent = 6

type History = {
  readonly waiting: readonly PullWaiter[]
  readonly pulling?: Pulling
  readonly pulledAtMs?: number
  readonly times?: PullTimes
  readonly failure?: { readonly atMs: number; readonly waitMs: number; readonly message: string }
}

/** Queued, waiting for the first bytes of the registry, or receiving. */
type Pulling = { readonly sinceMs: number; readonly is: 'queued' | 'requested' | 'receiving' }

type InLine = { readonly wanted: WantedImage; readonly sinceMs: number }

export function imagePuller(
  { runtime, clock, log }: ImagePullerNeeds,
  { parallel, stallMs }: ImagePullerSettings,
): ImagePuller {
  const calledOff = new AbortController()
  setMaxListeners(0, calledOff.signal) // every pull listens: many are not a leak
  const images = new Map<string, History>()
  let line: readonly InLine[] = []
  let busy = 0

  const pullNow = async ({ wanted, sinceMs }: InLine) => {
    const { image } = wanted
    const key = keyOf(wanted)
    const beganMs = clock.monotonicMs()
    let progress: PullProgress | undefined
    const over = new AbortController()
    const noted = (last: PullProgress) => {
      if (progress === undefined) change(key, { sinceMs, is: 'receiving' })
      progress = last
    }
    change(key, { sinceMs, is: 'requested' })
    const reporting = reportProgress(
      { clock, log },
      image,
      () => ({ progress, waiting: images.get(key)?.waiting ?? [] }),
      over.signal,
    )
    try {
      await pullWithAny(runtime, wanted, { signal: calledOff.signal, stallMs, progress: noted })
      const nowMs = clock.monotonicMs()
      const times = { tookMs: nowMs - beganMs, waitedMs: beganMs - sinceMs }
      settle(key, { pulledAtMs: nowMs, times })
      log.info('Image pulled', { image, tookMs: Math.round(times.tookMs), ...progress })
    } catch (error) {
      const failure = nextFailure(images.get(key)?.failure, storyOf(error), clock.monotonicMs())
      settle(key, { failure })
      if (!calledOff.signal.aborted) log.warn('Image not pulled', { image, retryInMs: failure.waitMs, error })
    }
    over.abort()
    await reporting
  }

  const settle = (key: string, result: Pick<History, 'pulledAtMs' | 'times' | 'failure'>) => {
    const waiting = images.get(key)?.waiting ?? []
    // Newest last.
    images.delete(key)
    images.set(key, { waiting: [], ...result })
    const oldest = [...images].find(([, { pulling }]) => pulling === undefined)
    if (images.size > mostEnded && oldest !== undefined) images.delete(oldest[0])
    for (const { ended } of waiting) ended()
  }

  const change = (key: string, pulling: Pulling) => images.set(key, { waiting: [], ...images.get(key), pulling })

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
    pull(wanted, waiter) {
      const key = keyOf(wanted)
      const history = images.get(key)
      const sinceMs = clock.monotonicMs()
      const waiting = [...(history?.waiting ?? []), waiter]
      images.set(key, { pulling: { sinceMs, is: 'queued' }, ...history, waiting })
      if (history?.pulling !== undefined) return
      line = [...line, { wanted, sinceMs }]
      void work()
    },
    stateOf(wanted, { uid, sinceMs }) {
      const { pulling, waiting = [], pulledAtMs, failure } = images.get(keyOf(wanted)) ?? {}
      const nowMs = clock.monotonicMs()
      const all = () => [...images.values()].flatMap(({ pulling }) => pulling ?? [])
      if (pulling !== undefined) {
        const isAwaited = waiting.some((one) => one.uid === uid)
        return isAwaited ? { state: 'pulling', silentMs: silentMs(pulling, all(), nowMs) } : { state: 'none' }
      }
      if (pulledAtMs !== undefined) {
        return pulledAtMs >= sinceMs ? { state: 'pulled', agoMs: nowMs - pulledAtMs } : { state: 'none' }
      }
      if (failure === undefined) return { state: 'none' }
      const failedMsAgo = nowMs - failure.atMs
      return { state: 'failed', message: failure.message, failedMsAgo, retryInMs: failure.waitMs - failedMsAgo }
    },
    timesOf: (wanted) => images.get(keyOf(wanted))?.times,
    async run(signal) {
      await aborted(signal)
      line = []
      calledOff.abort()
    },
  }
}

/** Logs a long pull, and notifies its waiters less often, until `signal` aborts. */
async function reportProgress(
  { clock, log }: Pick<ImagePullerNeeds, 'clock' | 'log'>,
  image: string,
  now: () => { readonly progress: PullProgress | undefined; readonly waiting: readonly PullWaiter[] },
  signal: AbortSignal,
): Promise<void> {
  for (let turn = 1; ; turn++) {
    await clock.sleep(logEveryMs, signal)
    if (signal.aborted) return
    const { progress, waiting } = now()
    log.info('Image still being pulled', { image, ...progress })
    if (turn % logsPerEvent !== 0 || progress === undefined) continue
    for (const { goesOn } of waiting) goesOn(progress)
  }
}

/** A queued pull behind one that receives data waits for that pull, not for a registry. */
function silentMs(own: Pulling, all: readonly Pulling[], nowMs: number): number {
  const isFetching = own.is === 'receiving' || (own.is === 'queued' && all.some(({ is }) => is === 'receiving'))
  if (isFetching) return 0
  const askedMs = all.flatMap(({ is, sinceMs }) => (is === 'requested' ? [sinceMs] : []))
  return nowMs - Math.min(own.sinceMs, ...askedMs)
}

/** Message of the event Pulled (pkg/kubelet/images/image_manager.go). Without `times` the image was present before. */
export function pulledMessage(image: string, times: PullTimes | undefined, sizeBytes: number): string {
  if (times === undefined) return `Container image "${image}" already present on machine`
  const { tookMs, waitedMs } = times
  const spans = `${spanText(tookMs)} (${spanText(tookMs + waitedMs)} including waiting)`
  return `Successfully pulled image "${image}" in ${spans}. Image size: ${sizeBytes} bytes.`
}

/** The progress of a long pull. */
export function pullingMessage(image: string, { layers, layersDone, fetchedBytes, knownBytes }: PullProgress): string {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
  const fetched = `${megabytes(fetchedBytes)} of ${megabytes(knownBytes)}`
  return `Pulling image "${image}": ${layersDone} of ${layers} layers are here, ${fetched} fetched`
}

/** `845ms`, `1.234s`, `2m3.5s`. */
function spanText(ms: number): string {
  const whole = Math.floor(ms)
  if (whole < 1000) return `${whole}ms`
  const minutes = Math.floor(whole / 60_000)
  return `${minutes > 0 ? `${minutes}m` : ''}${(whole - minutes * 60_000) / 1000}s`
}

/** Tries each of the credentials until one is accepted; pulls anonymously if there are none. */
async function pullWithAny(
  runtime: Pick<ContainerRuntime, 'pullImage'>,
  { image, credentials }: WantedImage,
  options: Parameters<ContainerRuntime['pullImage']>[1],
): Promise<void> {
  const [first, ...rest] = credentials
  try {
    await runtime.pullImage(image, { ...options, ...(first === undefined ? {} : { credentials: first }) })
  } catch (error) {
    if (rest.length === 0 || options.signal.aborted) throw error
    await pullWithAny(runtime, { image, credentials: rest }, options)
  }
}

function keyOf({ image, credentials }: WantedImage): string {
  if (credentials.length === 0) return image
  return `${image} ${createHash('sha256').update(JSON.stringify(credentials)).digest('hex')}`
}

function nextFailure(last: History['failure'], message: string, nowMs: number): NonNullable<History['failure']> {
  const grows = last !== undefined && nowMs - last.atMs <= forgetAfterMs
  return { atMs: nowMs, waitMs: grows ? Math.min(maxWaitMs, last.waitMs * 2) : firstWaitMs, message }
}
