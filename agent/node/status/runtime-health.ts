/** Loop: polls the container engine for its version, its images, and whether it answers. */
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
  /** The engine answered or refused once, or did not answer within 2 s. */
  isChecked(): boolean
  /** Problems of the engine that keep the node from being Ready. */
  problems(): readonly string[]
  /** The engine's last answer, also while it does not answer. */
  info(): RuntimeInfo | undefined
  images(): readonly ImageReference[]
  /** For how long requests have failed or hung; undefined while the engine answers. */
  silence(): { readonly sinceMs: number; readonly kind: 'refuses' | 'hangs' } | undefined
  /** Calls `listener` after each change that is visible in the node's status. */
  onChange(listener: () => void): () => void
}

/** The first status waits this long for the engine: without its answer the node would be NotReady. */
const firstAnswerMs = 2_000
/** An engine that has not answered for this long is down, as in the kubelet (maxWaitForContainerRuntime, pkg/kubelet/kubelet.go). */
const downAfterMs = 30_000
/** A hung engine shows as a condition within 20 s: this period, the delay of `dockerHealth`, and the next health check. */
const healthyPeriodMs = 6_000
/** A missing listener refuses at once; an engine that takes longer hangs. */
const promptMs = 2_000
/** Detects a started daemon soon. A request to a socket without a listener costs nothing. */
const unhealthyPeriodMs = 1_000
const imagesPeriodMs = 5 * 60_000

export function runtimeHealth({ runtime, clock, log, writes }: RuntimeHealthNeeds): Loop {
  let reported: readonly string[] = []
  const state = writes.runtime.get
  const update = (change: Partial<RuntimeState>) => writes.runtime.set({ ...state(), ...change })

  /** True when something changed that is visible in the node's status. */
  const poll = async (): Promise<boolean> => {
    try {
      const { info: before, askedMs, answering } = state()
      const pendingMs = clock.monotonicMs()
      update({ pendingMs, askedMs: askedMs ?? pendingMs })
      const info = await runtime.info()
      const back = answering !== true
      update({ info, askedMs: undefined, answeredMs: clock.monotonicMs(), answering: true })
      if (back) log.info('Container engine answers', { version: info.version })
      const other = (['version', 'rootDirectory', 'firewallBackend'] as const).some(
        (one) => info[one] !== before?.[one],
      )
      return (await updateImages(back)) || back || other
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
  const updateImages = async (now: boolean): Promise<boolean> => {
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
        const isChanged = await poll()
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
    isChecked() {
      const { answering, startedMs } = runtime.get()
      return answering !== undefined || (startedMs !== undefined && clock.monotonicMs() - startedMs >= firstAnswerMs)
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
 * The kubelet's messages (pkg/kubelet/runtime.go). An engine that never answered has the same time before it counts as down.
 * Time without a request, as while the machine was suspended, does not count.
 */
function problemsOf({ answeredMs, askedMs, startedMs }: RuntimeState, nowMs: number): readonly string[] {
  const sinceMs = answeredMs ?? startedMs
  const isRequested = askedMs !== undefined && nowMs - askedMs >= downAfterMs - healthyPeriodMs
  if (isRequested && sinceMs !== undefined && nowMs - sinceMs >= downAfterMs) return ['container runtime is down']
  if (answeredMs === undefined) return ['container runtime status check may not have completed yet']
  return []
}
