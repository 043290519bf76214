/** Loop: does the container engine answer, and what does it say of itself? */
import type { Cell, Reader } from '../../../daemon/cell.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { ContainerRuntime, ImageReference, RuntimeInfo } from '../../pods/runtime/runtime.ts'

/** Times are monotonic, in milliseconds. */
export type RuntimeState = {
  readonly startedMs?: number | undefined
  readonly answeredMs?: number | undefined
  /** Start of the requests that have failed since the last answer, or of the one that waits for its answer. */
  readonly askedMs?: number | undefined
  /** Start of the request that waits for its answer. */
  readonly pendingMs?: number | undefined
  /** The last failed request failed at once. */
  readonly refused: boolean
  /** Whether the last request was answered; undefined before the first one ended. */
  readonly answering?: boolean | undefined
  readonly info?: RuntimeInfo | undefined
  readonly images: readonly ImageReference[]
  /** Counts the changes that are visible in the node's status. */
  readonly revision: number
}

export const unknownRuntime: RuntimeState = { refused: false, images: [], revision: 0 }

/** Listeners of the cell are called for changes that are visible in the node's status only. */
export const isSameRuntime = (before: RuntimeState, after: RuntimeState) => before.revision === after.revision

export type RuntimeHealthNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'info' | 'listImages'>
  readonly clock: Clock
  readonly log: Log
  readonly writes: { readonly runtime: Cell<RuntimeState> }
}

/** The state of the container engine at the time of the call. */
export interface RuntimeHealth {
  /** The engine was asked once, or is so slow that there is nothing to wait for. */
  looked(): boolean
  /** Why the node cannot be Ready because of the engine; empty when it can. */
  problems(): readonly string[]
  /** The engine's last answer, also while it does not answer. */
  info(): RuntimeInfo | undefined
  images(): readonly ImageReference[]
  /** For how long requests have failed or hung; undefined while the engine answers. */
  silence(): { readonly sinceMs: number; readonly kind: 'refuses' | 'hangs' } | undefined
  /** Calls `listener` after each change that is visible in the node's status. */
  onChange(listener: () => void): () => void
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

export function runtimeHealth({ runtime, clock, log, writes }: RuntimeHealthNeeds): Loop {
  let reported: readonly string[] = []
  const state = writes.runtime.get
  const update = (change: Partial<RuntimeState>) => writes.runtime.set({ ...state(), ...change })

  /** True when something changed that is visible in the node's status. */
  const look = async (): Promise<boolean> => {
    try {
      const { info: before, askedMs, answering } = state()
      const pendingMs = clock.monotonicMs()
      update({ pendingMs, askedMs: askedMs ?? pendingMs })
      const info = await runtime.info()
      const back = answering !== true
      update({ info, askedMs: undefined, answeredMs: clock.monotonicMs(), answering: true })
      if (back) log.info('Container engine answers', { version: info.version })
      const other = info.version !== before?.version || info.rootDirectory !== before.rootDirectory
      return (await lookAtImages(back)) || back || other
    } catch (error) {
      const { answering, pendingMs } = state()
      if (answering !== false) {
        log.warn('Container engine does not answer; is Docker running? Trying again until it does', { error })
      }
      update({ answering: false, refused: pendingMs !== undefined && clock.monotonicMs() - pendingMs < promptMs })
      return false
    } finally {
      update({ pendingMs: undefined })
    }
  }

  let imagesMs = Number.NEGATIVE_INFINITY
  /** True when the images changed. They are only displayed: a failed list changes nothing. */
  const lookAtImages = async (now: boolean): Promise<boolean> => {
    const nowMs = clock.monotonicMs()
    if (!now && nowMs - imagesMs < imagesPeriodMs) return false
    imagesMs = nowMs
    const before = state().images
    const images = await runtime.listImages().catch(() => before)
    update({ images })
    return JSON.stringify(images) !== JSON.stringify(before)
  }

  return {
    name: 'runtime-health',
    async run(signal) {
      update({ startedMs: state().startedMs ?? clock.monotonicMs() })
      while (!signal.aborted) {
        const isChanged = await look()
        const problems = problemsOf(state(), clock.monotonicMs())
        const isVisible = isChanged || problems.join() !== reported.join()
        reported = problems
        if (isVisible) update({ revision: state().revision + 1 })
        await clock.sleep(state().answering ? healthyPeriodMs : unhealthyPeriodMs, signal)
      }
    },
  }
}

export function runtimeView(runtime: Reader<RuntimeState>, clock: Pick<Clock, 'monotonicMs'>): RuntimeHealth {
  return {
    looked() {
      const { answering, startedMs } = runtime.get()
      return answering !== undefined || (startedMs !== undefined && clock.monotonicMs() - startedMs >= patienceMs)
    },
    problems: () => problemsOf(runtime.get(), clock.monotonicMs()),
    info: () => runtime.get().info,
    images: () => runtime.get().images,
    silence() {
      const { askedMs, pendingMs, answering, refused } = runtime.get()
      const nowMs = clock.monotonicMs()
      const isPending = pendingMs !== undefined && nowMs - pendingMs >= promptMs
      if (askedMs === undefined || (answering !== false && !isPending)) return undefined
      return { sinceMs: nowMs - askedMs, kind: isPending || !refused ? 'hangs' : 'refuses' }
    },
    onChange: (listener) => runtime.onChange(listener),
  }
}

/**
 * The kubelet's sentences. An engine that never answered is given the same time before it is called down; one that was not
 * asked, for this machine was asleep, is not to blame.
 */
function problemsOf({ answeredMs, askedMs, startedMs }: RuntimeState, nowMs: number): readonly string[] {
  const heardMs = answeredMs ?? startedMs
  const isAsked = askedMs !== undefined && nowMs - askedMs >= downAfterMs - healthyPeriodMs
  if (isAsked && heardMs !== undefined && nowMs - heardMs >= downAfterMs) return ['container runtime is down']
  if (answeredMs === undefined) return ['container runtime status check may not have completed yet']
  return []
}
