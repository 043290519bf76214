/** Checks temperatures against the limits of the hardware, or against the configured limit. */
import { type ConditionCheck, fine, type HealthFinding, minutes, seconds, wrong } from './condition-check.ts'

export type ThermalZone = {
  /** The kernel's name: `cpu-thermal`. */
  readonly name: string
  readonly celsius: number
  /** Limits of the hardware, each with its kind: `passive`, `hot`, `critical`. */
  readonly trips: readonly { readonly kind: string; readonly celsius: number }[]
}

export type TemperatureReading = {
  readonly zones: readonly ThermalZone[]
  /** `Raspberry Pi 4 Model B Rev 1.4`; undefined where the kernel has no name for the board. */
  readonly board: string | undefined
}

/** The firmware of every Raspberry Pi throttles the processor from this temperature on. */
const raspberryCelsius = 80
/** The kernel switches the machine off at `critical`: the condition is set this many degrees earlier. */
const beforeCritical = 10
/** The temperature must fall this far below the limit before it counts as normal again. */
const hysteresis = 5

/** `configured`: limit for every zone in degrees, instead of the hardware's own limits. */
export function highTemperature(
  { zones, board }: TemperatureReading,
  configured: number | undefined,
  wasHot: boolean,
): HealthFinding | undefined {
  const limited = zones.flatMap((zone) => {
    const limit = configured ?? limitOf(zone, board)
    return limit === undefined ? [] : [{ ...zone, limit }]
  })
  if (limited.length === 0) return undefined
  const hot = limited.filter(({ celsius, limit }) => celsius >= (wasHot ? limit - hysteresis : limit))
  if (hot.length > 0) {
    const where = hot.map(({ name, limit }) => `${name} (limit ${Math.round(limit)} °C)`).join(', ')
    return wrong('TooHot', `Too hot: ${where}`, 'Give the machine air, a heat sink or a fan, or less to do')
  }
  return fine('TemperatureFine', 'All temperatures are below their limits')
}

function limitOf({ trips }: ThermalZone, board: string | undefined): number | undefined {
  const lowest = (kind: string) => Math.min(...trips.filter((trip) => trip.kind === kind).map(({ celsius }) => celsius))
  const own = Math.min(lowest('hot'), lowest('critical') - beforeCritical)
  const limit = board?.startsWith('Raspberry Pi') ? Math.min(own, raspberryCelsius) : own
  return Number.isFinite(limit) ? limit : undefined
}

export const temperatureCheck: ConditionCheck<{ temperature(): TemperatureReading }> = {
  type: 'HighTemperature',
  name: 'temperature',
  unknown: 'No sensor with a limit',
  periodMs: 10 * seconds,
  riseMs: 20 * seconds,
  holdMs: minutes,
  look: (source, { settings, wasWrong }) =>
    highTemperature(source.temperature(), settings.highTemperatureCelsius, wasWrong),
}
