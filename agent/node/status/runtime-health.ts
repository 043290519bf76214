/** Loop: polls the container engine: whether it answers the calls of pods, and apart from that for its version and its images. */
import type { Cell, Reader } from '../../../daemon/cell.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { withinOr } from '../../../daemon/deadline.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { ContainerRuntime, ImageReference, RuntimeInfo } from '../../runtime/runtime.ts'

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
  readonly runtime: Pick<ContainerRuntime, 'probe' | 'info' | 'listImages'>
  readonly clock: Clock
  readonly log: Log
  readonly writes: { readonly runtime: Cell<RuntimeState> }
}

/** The state of the container engine at the time of the call. */
export interface RuntimeHealth {
  /** The engine reported its properties or refused once, or did not within 2 s. */
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
/** An engine's properties change when it starts again, in a time that a probe may not notice. Docker counts all containers for an answer. */
const infoPeriodMs = 60_000

export function runtimeHealth({ runtime, clock, log, writes }: RuntimeHealthNeeds): Loop {
  let reported = ''
  const state = writes.runtime.get
  const update = (change: Partial<RuntimeState>) => writes.runtime.set({ ...state(), ...change })

  /** True when the engine answers, and did not before. */
  const poll = async (): Promise<boolean> => {
    try {
      const { askedMs, answering } = state()
      const pendingMs = clock.monotonicMs()
      update({ pendingMs, askedMs: askedMs ?? pendingMs })
      await runtime.probe()
      update({ askedMs: undefined, answeredMs: clock.monotonicMs(), answering: true })
      return answering !== true
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

  /** What changes meanwhile is reported at its end. */
  let isPolling = false
  let readingInfo: Promise<void> | undefined
  let infoFailed = false
  let infoMs = Number.NEGATIVE_INFINITY
  /** Never rejects. The engine is well also while it takes long for this. */
  const readInfo = async (): Promise<void> => {
    try {
      update({ info: await runtime.info() })
      infoMs = clock.monotonicMs()
      infoFailed = false
    } catch (error) {
      if (!infoFailed) log.warn('Container engine does not report its properties', { error })
      infoFailed = true
    }
  }
  /** One at a time. */
  const updateInfo = (): Promise<void> => {
    readingInfo ??= readInfo().finally(() => {
      readingInfo = undefined
      if (!isPolling) report(false)
    })
    return readingInfo
  }

  /** Listeners are notified of what is visible in the node's status. */
  const report = (isBack: boolean) => {
    const { info, images, revision } = state()
    const problems = problemsOf(state(), clock.monotonicMs())
    const shown = JSON.stringify([info?.version, info?.rootDirectory, info?.firewallBackend, images, problems])
    if (!isBack && shown === reported) return
    reported = shown
    update({ revision: revision + 1 })
  }

  let imagesMs = Number.NEGATIVE_INFINITY
  /** They are only displayed: a failed list changes nothing. */
  const updateImages = async (now: boolean): Promise<void> => {
    const nowMs = clock.monotonicMs()
    if (!now && nowMs - imagesMs < imagesPeriodMs) return
    imagesMs = nowMs
    const before = state().images
    update({ images: await runtime.listImages().catch(() => before) })
  }

  const updateAll = async (isBack: boolean): Promise<void> => {
    const isInfoDue = isBack || infoFailed || clock.monotonicMs() - infoMs >= infoPeriodMs
    const reading = isInfoDue ? updateInfo() : Promise.resolve()
    // One status shows all, unless the engine takes long.
    if (isBack) await withinOr(promptMs, undefined, reading, clock)
    if (isBack) log.info('Container engine answers', { version: state().info?.version })
    await updateImages(isBack)
  }

  return {
    name: 'runtime-health',
    async run(signal) {
      update({ startedMs: state().startedMs ?? clock.monotonicMs() })
      while (!signal.aborted) {
        isPolling = true
        const isBack = await poll()
        if (state().answering) await updateAll(isBack)
        isPolling = false
        report(isBack)
        await clock.sleep(state().answering ? healthyPeriodMs : unhealthyPeriodMs, signal)
      }
    },
  }
}

export function runtimeView(runtime: Reader<RuntimeState>, clock: Pick<Clock, 'monotonicMs'>): RuntimeHealth {
  return {
    isChecked() {
      const { answering, info, startedMs } = runtime.get()
      return (
        answering === false ||
        info !== undefined ||
        (startedMs !== undefined && clock.monotonicMs() - startedMs >= firstAnswerMs)
      )
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
