/** `"memory.available": "100Mi"` → which thresholds are met. */
import type { PressureType } from '../../api/node.ts'
import { quantityToNumber, tryParseQuantity } from '../../api/quantity.ts'
import { type Observation, type Signal, signals } from './observations.ts'

/** `quantity` in bytes, inodes or processes; `percentage` of the signal's capacity. */
export type Threshold = {
  readonly signal: Signal
  readonly value: { readonly quantity: number } | { readonly percentage: number }
}

/** Kubernetes' own for Linux. Giving any replaces them all. */
export const defaultEvictionHard: { readonly [signal: string]: string } = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
}

export type ThresholdProblem = { readonly signal: string; readonly value: string; readonly because: string }

/** `0%` and `100%` switch a threshold off. */
export function parseThresholds(evictionHard: { readonly [signal: string]: string }): {
  readonly thresholds: readonly Threshold[]
  readonly problems: readonly ThresholdProblem[]
} {
  const parsed = Object.entries(evictionHard).map(([signal, value]) => ({ signal, value, ...parse(signal, value) }))
  return {
    thresholds: parsed.flatMap(({ threshold }) => threshold ?? []),
    problems: parsed.flatMap(({ signal, value, because }) =>
      because === undefined ? [] : [{ signal, value, because }],
    ),
  }
}

function parse(signal: string, text: string): { readonly threshold?: Threshold; readonly because?: string } {
  if (!isSignal(signal)) return { because: `is not a signal; known are ${signals.join(', ')}` }
  if (!text.endsWith('%')) {
    const quantity = tryParseQuantity(text)
    if (quantity === undefined) return { because: 'must be a quantity (like 100Mi) or a percentage (like 10%)' }
    if (quantity.nano <= 0n) return { because: 'must be more than zero' }
    return { threshold: { signal, value: { quantity: quantityToNumber(quantity) } } }
  }
  const percentage = /^\d+(\.\d+)?%$/.test(text) ? Number.parseFloat(text) : Number.NaN
  if (!(percentage >= 0 && percentage <= 100)) return { because: 'must be a percentage from 0% to 100%' }
  if (percentage === 0 || percentage === 100) return {}
  return { threshold: { signal, value: { percentage } } }
}

function isSignal(name: string): name is Signal {
  return signals.some((signal) => signal === name)
}

/** The value is strictly more than what is available. A signal that was not observed meets nothing. */
export function thresholdsMet(
  thresholds: readonly Threshold[],
  observed: readonly Observation[],
): readonly Threshold[] {
  return thresholds.filter((threshold) => {
    const observation = observed.find(({ signal }) => signal === threshold.signal)
    return observation !== undefined && amountOf(threshold, observation.capacity) > observation.available
  })
}

/** A threshold in the unit of its signal. */
export function amountOf({ value }: Threshold, capacity: number): number {
  return 'quantity' in value ? value.quantity : (capacity * value.percentage) / 100
}

/** What no pod may use, so that the thresholds of memory and of our own disk are not reached. The others reserve nothing. */
export function reservedBelow(
  thresholds: readonly Threshold[],
  capacity: { readonly memoryBytes: number; readonly ephemeralStorageBytes: number },
): { readonly memory: number; readonly 'ephemeral-storage': number } {
  const below = (signal: Signal, whole: number) =>
    Math.ceil(Math.max(0, ...thresholds.filter((one) => one.signal === signal).map((one) => amountOf(one, whole))))
  return {
    memory: below('memory.available', capacity.memoryBytes),
    'ephemeral-storage': below('nodefs.available', capacity.ephemeralStorageBytes),
  }
}

/** What a met threshold means for the node. */
export function pressureOf(signal: Signal): PressureType {
  switch (signal) {
    case 'memory.available':
      return 'MemoryPressure'
    case 'pid.available':
      return 'PIDPressure'
    case 'nodefs.available':
    case 'nodefs.inodesFree':
    case 'imagefs.available':
    case 'imagefs.inodesFree':
      return 'DiskPressure'
  }
}
