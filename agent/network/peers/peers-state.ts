/** What the network of pods on this node is at, and what its next pass does. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { PodNetworkForm } from './peer-ipv6.ts'

/** Times are monotonic milliseconds. */
export type PeersState = {
  /** The fleet has a network. */
  readonly isOn: boolean
  /** Pods on a network of another form are started again. */
  readonly form: PodNetworkForm
  /** No message, nor its absence, was received yet. */
  readonly isStarting: boolean
  /** When pods may move that are on the network of before. */
  readonly moveAtMs: number
  readonly mayMove: boolean
  readonly verifyAtMs: number
  /** After a start of the engine or a change of the network; each new pod sets its own port up. */
  readonly isBridgeDue: boolean
  /** An earlier agent may have ended before all pods had left the network that the fleet gave up. */
  readonly isLeavingDue: boolean
}

export const newPeersState: PeersState = {
  isOn: false,
  form: { mode: 'node' },
  isStarting: true,
  moveAtMs: 0,
  mayMove: false,
  verifyAtMs: 0,
  isBridgeDue: false,
  isLeavingDue: false,
}

export type ReceivedNetwork = {
  readonly isOn: boolean
  readonly form: PodNetworkForm
  /** How long the pods of this node wait: those of a fleet do not all move at once. */
  readonly delayMs: number
  readonly nowMs: number
}

export function onNetwork(state: PeersState, { isOn, form, delayMs, nowMs }: ReceivedNetwork): PeersState {
  const moves = isOn && !isDeepStrictEqual(state.form, form)
  const moveAtMs = moves ? nowMs + (state.isStarting ? 0 : delayMs) : state.moveAtMs
  // Before the first message an agent without a checkpoint leaves pods where they are.
  const mayMove = isOn ? nowMs >= moveAtMs : !state.isStarting
  return onDoubt({ ...state, isOn, form, isStarting: false, moveAtMs, mayMove })
}

/** Something may have changed what is in place. */
export function onDoubt(state: PeersState): PeersState {
  return { ...state, verifyAtMs: 0, isBridgeDue: true }
}

/** The controller has no network, and not only the checkpoint. */
export function onGivenUp(state: PeersState): PeersState {
  return { ...state, mayMove: true, isLeavingDue: true }
}

export type PeersPass =
  /** There is no network, and nothing of one is left here but pods, perhaps. */
  | { readonly pass: 'idle'; readonly adjustsBridge: boolean }
  /** `isDue`: what is looked at by a process. */
  | {
      readonly pass: 'network'
      readonly movesNow: boolean
      readonly isDue: boolean
      readonly adjustsBridge: boolean
    }

export type PassFacts = {
  readonly nowMs: number
  /** No route of the network is left. */
  readonly isIdle: boolean
  readonly hasBridgeFailed: boolean
}

export function nextPass(state: PeersState, { nowMs, isIdle, hasBridgeFailed }: PassFacts): PeersPass {
  const { isOn, mayMove, moveAtMs, verifyAtMs, isBridgeDue, isLeavingDue } = state
  if (!isOn && isIdle) return { pass: 'idle', adjustsBridge: isLeavingDue }
  const movesNow = isOn && !mayMove && nowMs >= moveAtMs
  const isDue = movesNow || nowMs >= verifyAtMs
  return { pass: 'network', movesNow, isDue, adjustsBridge: isBridgeDue || movesNow || (isDue && hasBridgeFailed) }
}
