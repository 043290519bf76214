/** Detects nodes that fail and recover so often that no new pods should be placed on them. */
import type { Node, NodeCondition, Taint } from '../../../api/node.ts'

export type FlappingSettings = {
  /** So many losses of Ready within the window make a node a flapping one; 0: nothing does. */
  readonly flappingLosses: number
  readonly flappingWindowMs: number
  /** How long it must then stay Ready to be trusted again. */
  readonly flappingSettleTimeMs: number
}

export type Flapping = {
  /** When Ready was lost lately. */
  readonly lossesMs: readonly number[]
  readonly isFlapping: boolean
}

export const flappingTaint = 'bramble.dev/flapping'
export const steady: Flapping = { lossesMs: [], isFlapping: false }

/** At first sight only the taint is available. */
export function flappingFrom(node: Node, { flappingLosses }: FlappingSettings): Flapping {
  return flappingLosses > 0 && hasTaint(node) ? { lossesMs: [], isFlapping: true } : steady
}

/** Ready was lost. An announced loss does not count. */
export function afterLoss(before: Flapping, nowMs: number, settings: FlappingSettings): Flapping {
  if (settings.flappingLosses <= 0) return steady
  const lossesMs = [...before.lossesMs.filter((ms) => nowMs - ms < settings.flappingWindowMs), nowMs]
  return { lossesMs, isFlapping: before.isFlapping || lossesMs.length >= settings.flappingLosses }
}

/** When a flapping node will be trusted again, if its Ready stays; undefined: not before it changes, or it never was one. */
export function settledAtMs(
  { isFlapping }: Flapping,
  ready: NodeCondition | undefined,
  readyChangedMs: number,
  { flappingSettleTimeMs }: FlappingSettings,
): number | undefined {
  return isFlapping && ready?.status === 'True' ? readyChangedMs + flappingSettleTimeMs : undefined
}

/** The node with our taint, or without. Undefined: it is so. */
export function withFlappingTaint<N extends Node>(node: N, isFlapping: boolean, now: string): N | undefined {
  if (hasTaint(node) === isFlapping) return undefined
  const { taints = [], ...spec } = node.spec ?? {}
  if (isFlapping) {
    const taint: Taint = { key: flappingTaint, effect: 'NoSchedule', timeAdded: now }
    return { ...node, spec: { ...spec, taints: [...taints, taint] } }
  }
  const kept = taints.filter((taint) => !isOurs(taint))
  return { ...node, spec: kept.length === 0 ? spec : { ...spec, taints: kept } }
}

function hasTaint(node: Node): boolean {
  return (node.spec?.taints ?? []).some(isOurs)
}

function isOurs({ key, effect }: Taint): boolean {
  return key === flappingTaint && effect === 'NoSchedule'
}
