/** Loop: does the container engine answer, and what does it say of itself? */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { ContainerRuntime, ImageReference, RuntimeInfo } from '../pods/runtime/runtime.ts'

export type RuntimeHealthNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'info' | 'listImages'>
  readonly clock: Clock
  readonly log: Log
  /** Something that is shown of the engine changed. */
  readonly changed: () => void
}

export interface RuntimeHealth {
  /** The engine was asked once, or is so slow that there is nothing to wait for. */
  looked(): boolean
  /** Why the node cannot be Ready for the engine's sake, now; none when it can. */
  problems(): readonly string[]
  /** What the engine last said, even when it is silent now. */
  info(): RuntimeInfo | undefined
  images(): readonly ImageReference[]
  /** How long it has been asked in vain; undefined when it answered the last question, and has the next one not for long. */
  silence(): { readonly sinceMs: number; readonly kind: 'refuses' | 'hangs' } | undefined
  run(signal: AbortSignal): Promise<void>
}

/** A status without the engine's first word would call a node unready that is not; one that hangs is not waited for. */
const patienceMs = 2_000
/** As the kubelet: this long without an answer is an engine that is down. */
const downAfterMs = 30_000
/** So often that one that hangs is told of within 20 s: this, the patience of `dockerHealth`, and the next look at the machine. */
const healthyPeriodMs = 6_000
/** Where nobody listens, that is known at once; what takes longer hangs. */
const promptMs = 2_000
/** A daemon that is starting, or back, should not be waited for. Asking a socket nobody listens on costs nothing. */
const unhealthyPeriodMs = 1_000
const imagesPeriodMs = 5 * 60_000

export function runtimeHealth({ runtime, clock, log, changed }: RuntimeHealthNeeds): RuntimeHealth {
  let startedMs: number | undefined
  let answeredMs: number | undefined
  /** Since when it was asked in vain. */
  let askedMs: number | undefined
  /** When the question under way was put, and whether the last one that failed did so at once. */
  let pendingMs: number | undefined
  let refused = false
  let answering: boolean | undefined
  let told: readonly string[] = []
  let info: RuntimeInfo | undefined
  let images: readonly ImageReference[] = []
  let imagesMs = Number.NEGATIVE_INFINITY

  /** True when something that is shown of the engine changed. */
  const look = async (): Promise<boolean> => {
    try {
      const before = info
      pendingMs = clock.monotonicMs()
      askedMs ??= pendingMs
      info = await runtime.info()
      askedMs = undefined
      answeredMs = clock.monotonicMs()
      const back = answering !== true
      answering = true
      if (back) log.info('Container engine answers', { version: info.version })
      const other = info.version !== before?.version || info.rootDirectory !== before.rootDirectory
      return (await lookAtImages(back)) || back || other
    } catch (error) {
      if (answering !== false) {
        log.warn('Container engine does not answer; is Docker running? Trying again until it does', { error })
      }
      answering = false
      refused = pendingMs !== undefined && clock.monotonicMs() - pendingMs < promptMs
      return false
    } finally {
      pendingMs = undefined
    }
  }

  /** True when there are others than before. They are only shown, so failing to list them is nobody's trouble. */
  const lookAtImages = async (now: boolean): Promise<boolean> => {
    const nowMs = clock.monotonicMs()
    if (!now && nowMs - imagesMs < imagesPeriodMs) return false
    imagesMs = nowMs
    const before = images
    images = await runtime.listImages().catch(() => before)
    return JSON.stringify(images) !== JSON.stringify(before)
  }

  const problems = () => problemsOf({ answeredMs, askedMs, startedMs }, clock.monotonicMs())

  return {
    looked: () => answering !== undefined || (startedMs !== undefined && clock.monotonicMs() - startedMs >= patienceMs),
    problems,
    info: () => info,
    images: () => images,
    silence() {
      const nowMs = clock.monotonicMs()
      const isPending = pendingMs !== undefined && nowMs - pendingMs >= promptMs
      if (askedMs === undefined || (answering !== false && !isPending)) return undefined
      return { sinceMs: nowMs - askedMs, kind: isPending || !refused ? 'hangs' : 'refuses' }
    },
    async run(signal) {
      startedMs ??= clock.monotonicMs()
      while (!signal.aborted) {
        const news = await look()
        const now = problems()
        if (news || now.join() !== told.join()) changed()
        told = now
        await clock.sleep(answering ? healthyPeriodMs : unhealthyPeriodMs, signal)
      }
    },
  }
}

type Heard = {
  readonly answeredMs: number | undefined
  readonly askedMs: number | undefined
  readonly startedMs: number | undefined
}

/**
 * The kubelet's sentences. An engine that never answered is given the same time before it is called down; one that was not
 * asked, for this machine was asleep, is not to blame.
 */
function problemsOf({ answeredMs, askedMs, startedMs }: Heard, nowMs: number): readonly string[] {
  const heardMs = answeredMs ?? startedMs
  const isAsked = askedMs !== undefined && nowMs - askedMs >= downAfterMs - healthyPeriodMs
  if (isAsked && heardMs !== undefined && nowMs - heardMs >= downAfterMs) return ['container runtime is down']
  if (answeredMs === undefined) return ['container runtime status check may not have completed yet']
  return []
}
