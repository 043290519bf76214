/** Numbers of pods, or parts of them in percent: `3`, `25%` (pkg/apis/apps/validation/validation.go). */
import { invalid, type Problem } from '../problem.ts'

/** `most`: percent. */
export function shareProblems(field: string, share: number | string | undefined, most = 100): readonly Problem[] {
  if (typeof share === 'number') {
    return share < 0 ? [invalid(field, share, 'must be greater than or equal to 0')] : []
  }
  if (share === undefined) return []
  if (!/^\d{1,9}%$/.test(share)) {
    return [invalid(field, share, "a valid percent string must be a numeric string followed by an ending '%'")]
  }
  return Number.parseInt(share, 10) > most ? [invalid(field, share, `must not be greater than ${most}%`)] : []
}

/** The number, or the percentage; 0 for what is neither. */
export function shareValue(share: number | string): number {
  return typeof share === 'number' ? share : Number.parseInt(share, 10) || 0
}

/** The number, or the percentage of `all`, rounded to whole pods. */
export function scaledShare(share: number | string, all: number, round: 'up' | 'down'): number {
  if (typeof share === 'number') return share
  const exact = (shareValue(share) * all) / 100
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact)
}
