/** What is published of a device next: its announcement, its state, or its removal. */
import { createHash } from 'node:crypto'
import { leastChanges, readings } from './machine-entities.ts'
import type { DeviceState, EntityValue } from './machine-state.ts'

/** What a device should be on the broker. */
export type WantedDevice = { readonly discovery: string; readonly state: DeviceState }

/** What the broker was sent on this connection. */
export type SentDevice = {
  /** A hash: the text is 5 kB. */
  readonly discovery: string | undefined
  readonly state: DeviceState | undefined
  /** Monotonic: when the state was published last. */
  readonly stateMs: number
}

export const nothingSent: SentDevice = { discovery: undefined, state: undefined, stateMs: Number.NEGATIVE_INFINITY }

export type DevicePublication = { readonly what: 'discovery' | 'state'; readonly body: string }

/** `dueMs`: when there may be something to publish; undefined: after the next change. */
export type NextPublications = {
  readonly publications: readonly DevicePublication[]
  readonly sent: SentDevice
  readonly dueMs: number | undefined
}

/** Between two states of a device, however often it changes. */
const leastIntervalMs = 2_000

/** The announcement goes first: without it Home Assistant does not read the state. */
export function nextPublications(
  { discovery, state: reported }: WantedDevice,
  sent: SentDevice,
  nowMs: number,
  { publishIntervalMs }: { readonly publishIntervalMs: number },
): NextPublications {
  const hash = createHash('sha256').update(discovery).digest('base64')
  const isNew = hash !== sent.discovery
  const publications: DevicePublication[] = isNew ? [{ what: 'discovery', body: discovery }] : []
  const state = steadyState(sent.state, reported)
  const changed = changedKeys(sent.state, state)
  const after = { ...sent, discovery: hash }
  if (changed.length === 0) return { publications, sent: after, dueMs: undefined }
  const intervalMs = changed.every((key) => readings.has(key)) ? publishIntervalMs : leastIntervalMs
  const dueMs = sent.stateMs + Math.min(intervalMs, publishIntervalMs)
  if (nowMs < dueMs) return { publications, sent: after, dueMs }
  publications.push({ what: 'state', body: stateBody(state) })
  return { publications, sent: { ...after, state, stateMs: nowMs }, dueMs: undefined }
}

/** The state with the last values of readings that moved less than `leastChanges`. */
export function steadyState(last: DeviceState | undefined, next: DeviceState): DeviceState {
  if (last === undefined) return next
  const held = Object.entries(next).map(([key, value]): readonly [string, EntityValue] => {
    const [before, least] = [last[key], leastChanges[key]]
    const isNoise =
      least !== undefined && typeof before === 'number' && typeof value === 'number' && Math.abs(value - before) < least
    return [key, isNoise ? before : value]
  })
  return Object.fromEntries(held)
}

function changedKeys(last: DeviceState | undefined, next: DeviceState): readonly string[] {
  const keys = new Set([...Object.keys(last ?? {}), ...Object.keys(next)])
  return last === undefined ? ['all'] : [...keys].filter((key) => last[key] !== next[key])
}

/** As Home Assistant reads it: ON and OFF, times in ISO 8601. null shows as unknown. */
export function stateBody(state: DeviceState): string {
  const values = Object.entries(state).map(([key, value]) => [key, shown(key, value)])
  return JSON.stringify(Object.fromEntries(values))
}

function shown(key: string, value: EntityValue): string | number | null {
  if (typeof value === 'boolean') return value ? 'ON' : 'OFF'
  if (key !== 'last_boot' || typeof value !== 'number') return value
  const time = new Date(value * 1000)
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}
