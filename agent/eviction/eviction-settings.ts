/** The kubelet's eviction fields → hard and soft thresholds, and all problems with the fields. */
import { parseDuration } from '../../daemon/duration.ts'
import { type StallSignal, stallSignals } from './observations.ts'
import {
  defaultEvictionHard,
  isSignal,
  parseReclaims,
  parseThresholds,
  type Threshold,
  type ThresholdProblem,
} from './thresholds.ts'

type Written = { readonly [signal: string]: string }

export type EvictionFields = {
  readonly evictionHard?: Written
  readonly evictionSoft?: Written
  readonly evictionSoftGracePeriod?: Written
  readonly evictionMinimumReclaim?: Written
  readonly pressureStallWarning?: Written
}

export type EvictionThresholds = {
  readonly evictionHard: readonly Threshold[]
  readonly evictionSoft: readonly Threshold[]
  readonly pressureStallWarning: readonly (readonly [StallSignal, number])[]
}

/** Pushes a sentence to `problems` for each value that is not valid. */
export function evictionThresholds(file: EvictionFields, problems: string[]): EvictionThresholds {
  const addProblem = (field: string) => (problem: ThresholdProblem) =>
    void problems.push(`${field}[${problem.signal}]: ${JSON.stringify(problem.value)} ${problem.because}`)
  const hard = parseThresholds(file.evictionHard ?? defaultEvictionHard)
  hard.problems.forEach(addProblem('evictionHard'))
  const soft = parseThresholds(file.evictionSoft ?? {})
  soft.problems.forEach(addProblem('evictionSoft'))
  const graces = parseGraces(file.evictionSoftGracePeriod ?? {})
  graces.problems.forEach(addProblem('evictionSoftGracePeriod'))
  const { reclaims, problems: unclaimed } = parseReclaims(file.evictionMinimumReclaim ?? {})
  unclaimed.forEach(addProblem('evictionMinimumReclaim'))
  const stalls = parseStalls(file.pressureStallWarning ?? {})
  stalls.problems.forEach(addProblem('pressureStallWarning'))

  const reclaiming = (threshold: Threshold): Threshold => {
    const minimumReclaim = reclaims.get(threshold.signal)
    return minimumReclaim === undefined ? threshold : { ...threshold, minimumReclaim }
  }
  const evictionSoft = soft.thresholds.map((threshold) => {
    const graceMs = graces.spans.get(threshold.signal)
    if (graceMs === undefined && !graces.problems.some(({ signal }) => signal === threshold.signal)) {
      problems.push(`evictionSoft[${threshold.signal}]: needs its grace period in evictionSoftGracePeriod`)
    }
    return reclaiming({ ...threshold, graceMs: graceMs ?? 0 })
  })
  return { evictionHard: hard.thresholds.map(reclaiming), evictionSoft, pressureStallWarning: stalls.limits }
}

function parseGraces(written: Written) {
  const spans = new Map<string, number>()
  const problems: ThresholdProblem[] = []
  for (const [signal, value] of Object.entries(written)) {
    const ms = parseDuration(value)
    if (!isSignal(signal)) problems.push({ signal, value, because: 'is not for a known signal' })
    else if (ms === undefined || ms < 0)
      problems.push({ signal, value, because: 'must be a duration (like 90s or 5m)' })
    else spans.set(signal, ms)
  }
  return { spans, problems }
}

/** CPU has no pressure condition in Kubernetes. */
const warnable = stallSignals.filter((signal) => signal !== 'cpu.some')

function parseStalls(written: Written) {
  const limits: (readonly [StallSignal, number])[] = []
  const problems: ThresholdProblem[] = []
  for (const [name, value] of Object.entries(written)) {
    const signal = warnable.find((one) => one === name)
    const percent = /^\d+(\.\d+)?%$/.test(value) ? Number.parseFloat(value) : Number.NaN
    if (signal === undefined) {
      problems.push({ signal: name, value, because: `is not for a known stall; known are ${warnable.join(', ')}` })
    } else if (!(percent > 0 && percent <= 100)) {
      problems.push({ signal: name, value, because: 'must be a percentage above 0% and up to 100%' })
    } else limits.push([signal, percent])
  }
  return { limits, problems }
}
