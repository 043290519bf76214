/** Loop: does the container engine answer, and what does it say of itself? */
import { alarm } from '../../daemon/alarm.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { ContainerRuntime, ImageReference, RuntimeInfo } from '../pods/runtime.ts'

export type RuntimeHealthNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'info' | 'listImages'>
  readonly clock: Clock
  readonly log: Log
  /** Something that is shown of the engine changed. */
  readonly changed: () => void
}

export interface RuntimeHealth {
  /** Why the node cannot be Ready for the engine's sake, now; none when it can. */
  problems(): readonly string[]
  /** What the engine last said, even when it is silent now. */
  info(): RuntimeInfo | undefined
  images(): readonly ImageReference[]
  /** Someone met an engine that does not answer: look now. */
  suspect(): void
  run(signal: AbortSignal): Promise<void>
}

/** As the kubelet: this long without an answer is an engine that is down. */
const downAfterMs = 30_000
const healthyPeriodMs = 10_000
/** A daemon that is starting, or back, should not be waited for. Asking a socket nobody listens on costs nothing. */
const unhealthyPeriodMs = 1_000
const imagesPeriodMs = 5 * 60_000

export function runtimeHealth({ runtime, clock, log, changed }: RuntimeHealthNeeds): RuntimeHealth {
  const wake = alarm(clock)
  let startedMs: number | undefined
  let answeredMs: number | undefined
  let answering: boolean | undefined
  let told: readonly string[] = []
  let info: RuntimeInfo | undefined
  let images: readonly ImageReference[] = []
  let imagesMs: number | undefined

  const look = async () => {
    try {
      const before = info
      info = await runtime.info()
      answeredMs = clock.monotonicMs()
      if (answering !== true) log.info('Container engine answers', { version: info.version })
      if (answering !== true || info.version !== before?.version || info.rootDirectory !== before.rootDirectory)
        changed()
      answering = true
      await lookAtImages()
    } catch (error) {
      if (answering !== false) {
        log.warn('Container engine does not answer; is Docker running? Trying again until it does', { error })
      }
      answering = false
      imagesMs = undefined
    }
  }

  const lookAtImages = async () => {
    const nowMs = clock.monotonicMs()
    if (imagesMs !== undefined && nowMs - imagesMs < imagesPeriodMs) return
    const before = images
    images = await runtime.listImages()
    imagesMs = nowMs
    if (images.length !== before.length) changed()
  }

  const problems = () => problemsOf(answeredMs, startedMs, clock.monotonicMs())

  return {
    problems,
    info: () => info,
    images: () => images,
    suspect: () => wake.ring(),
    async run(signal) {
      startedMs ??= clock.monotonicMs()
      while (!signal.aborted) {
        await look()
        const now = problems()
        if (now.join() !== told.join()) changed()
        told = now
        await wake.sleep(answering ? healthyPeriodMs : unhealthyPeriodMs, signal)
      }
    },
  }
}

/** The kubelet's sentences. An engine that never answered is given the same time before it is called down. */
function problemsOf(answeredMs: number | undefined, startedMs: number | undefined, nowMs: number): readonly string[] {
  const heardMs = answeredMs ?? startedMs
  if (heardMs !== undefined && nowMs - heardMs >= downAfterMs) return ['container runtime is down']
  if (answeredMs === undefined) return ['container runtime status check may not have completed yet']
  return []
}
