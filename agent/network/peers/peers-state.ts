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
  /** When Docker's rules are looked at again, which takes a process. */
  readonly firewallAtMs: number
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
  firewallAtMs: 0,
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
  return { ...state, verifyAtMs: 0, firewallAtMs: 0, isBridgeDue: true }
}

/** The controller has no network, and not only the checkpoint. */
export function onGivenUp(state: PeersState): PeersState {
  return { ...state, mayMove: true, isLeavingDue: true }
}

/** What failed is tried again, and files of the kernel are read. */
export const verifyMs = 30_000
/**
 * Docker's rules are looked at by a process. Docker keeps ours while it starts again; a program that removes all rules removes the table,
 * too, which is found sooner.
 */
const firewallMs = 120_000

/** The pass begins that looks at what is due. */
export function onVerify(state: PeersState, { isFirewallDue }: PassOnNetwork, nowMs: number): PeersState {
  const firewallAtMs = isFirewallDue ? nowMs + firewallMs : state.firewallAtMs
  return { ...state, verifyAtMs: nowMs + verifyMs, firewallAtMs }
}

export type PeersPass =
  /** There is no network, and nothing of one is left here but pods, perhaps. */
  { readonly pass: 'idle'; readonly adjustsBridge: boolean } | PassOnNetwork

type PassOnNetwork = {
  readonly pass: 'network'
  readonly movesNow: boolean
  /** What failed, and what other programs may have changed. */
  readonly isDue: boolean
  /** Docker's rules, too. */
  readonly isFirewallDue: boolean
  readonly adjustsBridge: boolean
}

export type PassFacts = {
  readonly nowMs: number
  /** No route of the network is left. */
  readonly isIdle: boolean
  readonly hasBridgeFailed: boolean
  readonly hasFirewallFailed: boolean
}

export function nextPass(
  state: PeersState,
  { nowMs, isIdle, hasBridgeFailed, hasFirewallFailed }: PassFacts,
): PeersPass {
  const { isOn, mayMove, moveAtMs, verifyAtMs, firewallAtMs, isBridgeDue, isLeavingDue } = state
  if (!isOn && isIdle) return { pass: 'idle', adjustsBridge: isLeavingDue }
  const movesNow = isOn && !mayMove && nowMs >= moveAtMs
  const isDue = movesNow || nowMs >= verifyAtMs
  return {
    pass: 'network',
    movesNow,
    isDue,
    isFirewallDue: isDue && (hasFirewallFailed || nowMs >= firewallAtMs),
    adjustsBridge: isBridgeDue || movesNow || (isDue && hasBridgeFailed),
  }
}
