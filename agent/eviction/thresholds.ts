/** `"memory.available": "100Mi"` → which thresholds are met. */
import type { PressureType } from '../../api/node.ts'
import { formatQuantity, type Quantity, quantityOf, quantityToNumber, tryParseQuantity } from '../../api/quantity.ts'
import { type Observation, type Signal, signals } from './observations.ts'

/** `quantity` in bytes, inodes or processes, with the way it was written; `percentage` of the signal's capacity. */
export type Amount =
  | { readonly quantity: number; readonly family: Quantity['family'] }
  | { readonly percentage: number }

export type Threshold = {
  readonly signal: Signal
  readonly value: Amount
  /** Soft threshold: it must be met this long without interruption before a pod is evicted. undefined: hard. */
  readonly graceMs?: number
  /** A threshold in force stays in force until this much more than its value is available. */
  readonly minimumReclaim?: Amount
}

/** The kubelet's defaults for Linux (pkg/kubelet/eviction/defaults_linux.go). Any configured value replaces them all. */
export const defaultEvictionHard: Written = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
}

export type ThresholdProblem = { readonly signal: string; readonly value: string; readonly because: string }

type Written = { readonly [signal: string]: string }
type Parsed<T> = { readonly value?: T; readonly because?: string }

/** `0%` and `100%` disable a threshold. */
export function parseThresholds(evictionHard: Written): {
  readonly thresholds: readonly Threshold[]
  readonly problems: readonly ThresholdProblem[]
} {
  const { values, problems } = parseEach(evictionHard, parseValue)
  return { thresholds: values.map(([signal, value]) => ({ signal, value })), problems }
}

/** The amount that must be available beyond a threshold before it is no longer in force. 0 is valid. */
export function parseReclaims(evictionMinimumReclaim: Written): {
  readonly reclaims: ReadonlyMap<Signal, Amount>
  readonly problems: readonly ThresholdProblem[]
} {
  const { values, problems } = parseEach(evictionMinimumReclaim, parseAmount)
  return { reclaims: new Map(values), problems }
}

function parseEach(written: Written, parse: (text: string) => Parsed<Amount>) {
  const values: (readonly [Signal, Amount])[] = []
  const problems: ThresholdProblem[] = []
  for (const [signal, text] of Object.entries(written)) {
    if (!isSignal(signal)) {
      problems.push({ signal, value: text, because: unknownSignal })
      continue
    }
    const { value, because } = parse(text)
    if (because !== undefined) problems.push({ signal, value: text, because })
    if (value !== undefined) values.push([signal, value])
  }
  return { values, problems }
}

function parseValue(text: string): Parsed<Amount> {
  const { value, because } = parseAmount(text)
  if (value === undefined) return { because }
  if ('quantity' in value) return value.quantity > 0 ? { value } : { because: 'must be more than zero' }
  return value.percentage === 0 || value.percentage === 100 ? {} : { value }
}

function parseAmount(text: string): Parsed<Amount> {
  if (!text.endsWith('%')) {
    const quantity = tryParseQuantity(text)
    if (quantity === undefined) return { because: 'must be a quantity (like 100Mi) or a percentage (like 10%)' }
    if (quantity.nano < 0n) return { because: 'must not be negative' }
    return { value: { quantity: quantityToNumber(quantity), family: quantity.family } }
  }
  const percentage = /^\d+(\.\d+)?%$/.test(text) ? Number.parseFloat(text) : Number.NaN
  if (!(percentage <= 100)) return { because: 'must be a percentage from 0% to 100%' }
  return { value: { percentage } }
}

const unknownSignal = `is not a signal; known are ${signals.join(', ')}`

export function isSignal(name: string): name is Signal {
  return signals.some((signal) => signal === name)
}

/**
 * True when strictly less than the value is available (with `reclaiming`: than the value plus the minimum reclaim). A signal that
 * was not observed meets no threshold.
 */
export function thresholdsMet(
  thresholds: readonly Threshold[],
  observed: readonly Observation[],
  reclaiming = false,
): readonly Threshold[] {
  return thresholds.filter((threshold) => {
    const observation = observed.find(({ signal }) => signal === threshold.signal)
    if (observation === undefined) return false
    const { capacity, available } = observation
    const { value, minimumReclaim } = threshold
    const more = reclaiming && minimumReclaim !== undefined ? amountOf(minimumReclaim, capacity) : 0
    return amountOf(value, capacity) + more > available
  })
}

/** The amount in the unit of its signal. */
export function amountOf(amount: Amount, capacity: number): number {
  return 'quantity' in amount ? amount.quantity : (capacity * amount.percentage) / 100
}

/** The amount as Kubernetes formats it; a percentage is converted to the amount. */
export function writtenAmount(amount: Amount, capacity: number): string {
  if ('quantity' in amount) return formatQuantity(quantityOf(amount.quantity, amount.family))
  return formatQuantity(quantityOf(Math.floor(amountOf(amount, capacity)), 'binary'))
}

/**
 * The resources that are not allocatable because of the hard thresholds of memory and of nodefs. Other thresholds reserve
 * nothing.
 */
export function reservedBelow(
  thresholds: readonly Threshold[],
  capacity: { readonly memoryBytes: number; readonly ephemeralStorageBytes: number },
): { readonly memory: number; readonly 'ephemeral-storage': number } {
  const below = (signal: Signal, whole: number) =>
    Math.ceil(
      Math.max(0, ...thresholds.filter((one) => one.signal === signal).map((one) => amountOf(one.value, whole))),
    )
  return {
    memory: below('memory.available', capacity.memoryBytes),
    'ephemeral-storage': below('nodefs.available', capacity.ephemeralStorageBytes),
  }
}

/** The pressure condition of a signal. */
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

/** The resource of a signal, as Kubernetes' messages name it. */
export function resourceOf(signal: Signal): 'memory' | 'ephemeral-storage' | 'inodes' | 'pids' {
  switch (signal) {
    case 'memory.available':
      return 'memory'
    case 'pid.available':
      return 'pids'
    case 'nodefs.available':
    case 'imagefs.available':
      return 'ephemeral-storage'
    case 'nodefs.inodesFree':
    case 'imagefs.inodesFree':
      return 'inodes'
  }
}
