/** Which volumes the agent still has to have expanded, and what an attempt changes. Pure. */
import type { CsiGrowth } from './csi-mount.ts'

/** A value that each step replaces. It begins empty with each start of the agent. */
export type ExpansionState = {
  /** By volume of a driver: the size to which it is not expanded once more. */
  readonly sizes: ReadonlyMap<string, string>
  /** By volume of a driver: when an expansion in use failed last, in ms of the monotonic clock. */
  readonly failedMs: ReadonlyMap<string, number>
  /** Volumes of pods that are mounted and wait for the expansion. */
  readonly unfinished: ReadonlySet<string>
}

export const noExpansions: ExpansionState = { sizes: new Map(), failedMs: new Map(), unfinished: new Set() }

/** A volume that is mounted for a pod and may have to grow. */
export type GrowingPlace = {
  /** Its driver and handle: one for all pods. */
  readonly key: string
  /** Its pod and name. */
  readonly place: string
  readonly growth: Pick<CsiGrowth, 'size' | 'isAwaited'>
  /** It has just been mounted. */
  readonly isNew: boolean
}

/** `mount`: its pod waits for the expansion. `online`: it stays in use whatever comes of it. */
export type ExpansionStep = 'none' | 'mount' | 'online'

/** What an attempt ended with. `later`: the driver is to be asked again. `late`: it takes longer than the agent waits for it. */
export type ExpansionEnd = 'expanded' | 'later' | 'late' | 'failed'

/** The kubelet has a back-off of up to two minutes. */
export const expansionRetryMs = 50_000

/** What to do now that the volume is mounted, and the state from here on. */
export function nextVolumeExpansion(
  state: ExpansionState,
  volume: GrowingPlace,
  nowMs: number,
): { readonly step: ExpansionStep; readonly state: ExpansionState } {
  const { key, place, growth, isNew } = volume
  const known = state.sizes.get(key)
  if (known === undefined && !growth.isAwaited) {
    // This agent has not seen it with a smaller size.
    return { step: 'none', state: { ...state, sizes: new Map(state.sizes).set(key, growth.size) } }
  }
  if (known === growth.size) return { step: 'none', state }
  if (isNew || state.unfinished.has(place)) return { step: 'mount', state }
  const isBackingOff = nowMs - (state.failedMs.get(key) ?? Number.NEGATIVE_INFINITY) < expansionRetryMs
  return { step: isBackingOff ? 'none' : 'online', state }
}

/** The state after the attempt of a step. */
export function afterExpansion(
  state: ExpansionState,
  volume: Pick<GrowingPlace, 'key' | 'place' | 'growth'>,
  step: Exclude<ExpansionStep, 'none'>,
  end: ExpansionEnd,
  nowMs: number,
): ExpansionState {
  const { key, place, growth } = volume
  switch (end) {
    case 'expanded':
      return { ...finished(state, place), sizes: new Map(state.sizes).set(key, growth.size) }
    case 'later':
      return finished(state, place)
    case 'late':
    case 'failed':
      if (step === 'mount') return { ...state, unfinished: new Set(state.unfinished).add(place) }
      return end === 'late' ? state : { ...state, failedMs: new Map(state.failedMs).set(key, nowMs) }
  }
}

/** The state after the volume is no longer mounted for its pod. */
export function withoutExpansion(
  state: ExpansionState,
  { key, place }: Pick<GrowingPlace, 'key' | 'place'>,
): ExpansionState {
  return {
    ...finished(state, place),
    sizes: withoutKey(state.sizes, key),
    failedMs: withoutKey(state.failedMs, key),
  }
}

function finished(state: ExpansionState, place: string): ExpansionState {
  return { ...state, unfinished: new Set([...state.unfinished].filter((one) => one !== place)) }
}

function withoutKey<T>(map: ReadonlyMap<string, T>, key: string): ReadonlyMap<string, T> {
  return new Map([...map].filter(([one]) => one !== key))
}
