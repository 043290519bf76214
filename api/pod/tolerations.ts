/** Decides whether a pod tolerates a taint, and for how long. */
import type { Taint } from '../node.ts'
import type { Toleration } from '../pod.ts'

export type TaintEffect = Taint['effect']

/** The effects that keep a pod from being placed. */
export const schedulingEffects: readonly TaintEffect[] = ['NoSchedule', 'NoExecute']

export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false
  if (toleration.key && toleration.key !== taint.key) return false
  if (toleration.operator === 'Exists') return true
  if (toleration.operator && toleration.operator !== 'Equal') return false
  return (toleration.value ?? '') === (taint.value ?? '')
}

/** The first toleration that matches: it alone counts, also when a later one is more generous. */
function firstToleration(tolerations: readonly Toleration[], taint: Taint): Toleration | undefined {
  return tolerations.find((toleration) => tolerates(toleration, taint))
}

/** The taints of these effects that nothing tolerates. */
export function untolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  effects: readonly TaintEffect[],
): readonly Taint[] {
  return taints.filter((taint) => effects.includes(taint.effect) && firstToleration(tolerations, taint) === undefined)
}

/**
 * How long a pod may stay beside these taints, all of which it tolerates: the least `tolerationSeconds` of the first
 * matches, at least 0; undefined when none sets one: for ever.
 */
export function minimumTolerationSeconds(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
): number | undefined {
  const limits = taints
    .map((taint) => firstToleration(tolerations, taint)?.tolerationSeconds)
    .filter((seconds) => seconds !== undefined)
  return limits.length === 0 ? undefined : Math.max(0, Math.min(...limits))
}
