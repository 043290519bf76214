/**
 * The state of the present boot and of earlier ones, as pure steps. A step returns the same object when nothing has to be saved.
 * The record identifies boots by id and holds no dates, because the clock may have been wrong in any of them.
 */
import { type BootNote, type BootVerdict, bootLastsMs, harmMs, judgeBoots, ranMarks } from './boot-loop.ts'

/** `pod`: `namespace/name`; the UID where an earlier agent did not record the name. */
export type HeldPod = { readonly uid: string; readonly pod: string }

/** `boots`: the newest first. */
export type BootHistory = { readonly boots: readonly BootNote[]; readonly held: readonly HeldPod[] }

export type BootState = {
  readonly current: BootNote
  /** The newest boot first. */
  readonly earlier: readonly BootNote[]
  readonly held: readonly HeldPod[]
  readonly verdict: BootVerdict
}

export type OpenedBoot = {
  readonly state: BootState
  /** The record has another boot than this one. */
  readonly rebooted: boolean
  /** The state differs from the history that was read. */
  readonly isChanged: boolean
}

const keptBoots = 8
const keptHeld = 8
/** A held pod that ran for this long counts as harmless. */
const harmlessMs = 10 * 60_000

/** `bootID`: '' where the kernel has none; the newest recorded boot then counts as this one. */
export function openedBoot({ boots, held }: BootHistory, bootID: string): OpenedBoot {
  const isSameBoot = bootID === '' || boots[0]?.bootID === bootID
  const earlier = isSameBoot ? boots.slice(1) : boots
  const verdict = judgeBoots(earlier, new Set(held.map(({ uid }) => uid)))
  if (isSameBoot) {
    const { ended, ...current } = boots[0] ?? { bootID }
    return { state: { current, earlier, held, verdict }, rebooted: false, isChanged: ended === true }
  }
  const { guilty, trial } = verdict
  const state: BootState = {
    current: { bootID, ...(trial !== undefined && { trial: trial.uid }) },
    earlier,
    held: guilty === undefined ? held : [...held, { uid: guilty, pod: guilty }],
    verdict,
  }
  return { state, rebooted: boots.length > 0, isChanged: true }
}

/** The part of the state that is saved. */
export function historyOf({ current, earlier, held }: BootState): BootHistory {
  return { boots: [current, ...earlier].slice(0, keptBoots), held: held.slice(-keptHeld) }
}

/** How many boots before this one did not last, in a row. */
export function shortBoots({ earlier }: BootState): number {
  const firstLasting = earlier.findIndex(({ lasted }) => lasted)
  return firstLasting === -1 ? earlier.length : firstLasting
}

export function afterUptime(state: BootState, uptimeMs: number): BootState {
  const { bootID, lasted } = state.current
  return uptimeMs < bootLastsMs || lasted ? state : { ...state, current: { bootID, lasted: true } }
}

/** The agent is stopped in an orderly way. After a power cut this note is missing. */
export function afterStop(state: BootState): BootState {
  const { current } = state
  return current.lasted || current.ended ? state : { ...state, current: { ...current, ended: true } }
}

export type BootHold =
  /** The pod took the machine down before. */
  | { readonly kind: 'held'; readonly held: HeldPod }
  /** The pod is a suspect: the machine first runs without it. */
  | { readonly kind: 'trial'; readonly waitMs: number }

/** Why a pod is not started now. A pod with the annotation that exempts it is never on trial. */
export function bootHold({ current, held, verdict }: BootState, uid: string, isExempt: boolean): BootHold | undefined {
  const found = held.find((one) => one.uid === uid)
  if (found !== undefined) return { kind: 'held', held: found }
  const { trial, began, lasted } = current
  if (trial !== uid || began || lasted || verdict.trial === undefined || isExempt) return undefined
  return { kind: 'trial', waitMs: verdict.trial.waitMs }
}

/** The running time of this pod counts for later verdicts, or for its release. */
export function isWatched({ current, held, verdict }: BootState, uid: string, isExempt: boolean): boolean {
  if (held.some((one) => one.uid === uid)) return true
  return verdict.watch && !current.lasted && !verdict.acquitted.has(uid) && !isExempt
}

/** The state after a watched pod is about to be started. */
export function afterStart(state: BootState, uid: string): BootState {
  const { current, held, verdict } = state
  if (held.some((one) => one.uid === uid)) return state
  if (current.trial !== uid) return { ...state, current: { ...current, last: uid } }
  const controlled = verdict.trial?.controlled ? { controlled: true } : {}
  return { ...state, current: { ...current, began: true, ...controlled } }
}

/** `ranMs`: the time since this agent started a pod; negative infinity where it did not start it. */
export function afterRunning(state: BootState, ranMs: (uid: string) => number): BootState {
  const { trial, began, controlled: _, ran = 0, ...rest } = state.current
  if (trial === undefined || !began) return state
  if (ranMs(trial) >= harmMs) return { ...state, current: { ...rest, trial } }
  const mark = ranMarks.findLast((seconds) => ranMs(trial) >= seconds * 1000) ?? 0
  return mark <= ran ? state : { ...state, current: { ...state.current, ran: mark } }
}

/** Held pods that ran long enough to be released. */
export function harmlessPods({ held }: BootState, ranMs: (uid: string) => number): readonly HeldPod[] {
  return held.filter(({ uid }) => ranMs(uid) >= harmlessMs)
}

/** Held pods that are no longer desired. */
export function deletedPods({ held }: BootState, desiredUIDs: ReadonlySet<string>): readonly HeldPod[] {
  return held.filter(({ uid }) => !desiredUIDs.has(uid))
}

export function afterRelease(state: BootState, released: readonly HeldPod[]): BootState {
  return released.length === 0 ? state : { ...state, held: state.held.filter((one) => !released.includes(one)) }
}

/** Adds the name of a held pod of which only the UID was recorded. */
export function withName(state: BootState, held: HeldPod, pod: string): BootState {
  if (held.pod === pod) return state
  return { ...state, held: state.held.map((one) => (one === held ? { ...one, pod } : one)) }
}
