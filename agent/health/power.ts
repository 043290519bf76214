/** Checks of the power supply and of processor throttling: now, and since the machine was started. */
import { type ConditionCheck, fine, type HealthFinding, minutes, seconds, wrong } from './condition-check.ts'

export type PowerReading = {
  /** Undefined: the machine does not monitor its supply. */
  readonly underVoltage: Seen | undefined
  /** Undefined: the machine does not report throttling. */
  readonly throttling: (Seen & { readonly by: readonly string[] }) | undefined
}

export type Seen = {
  readonly now: boolean
  /** Since the boot, as far as it is recorded. */
  readonly before: boolean
}

const supplyRemedy =
  'Use the supply made for this board, a short thick cable, and a powered hub for USB disks and modems'

/** Below 4.63 V the board reports under-voltage and throttles itself. */
export function underVoltage({ underVoltage: seen }: PowerReading): HealthFinding | undefined {
  if (seen === undefined) return undefined
  if (seen.now) {
    return wrong(
      'SupplyTooWeak',
      'The supply voltage is below what the board needs; it slows down and may lose data',
      supplyRemedy,
    )
  }
  if (seen.before) {
    return fine(
      'SupplyWasTooWeak',
      'The supply voltage is enough now, but was too low since the machine was started',
      supplyRemedy,
    )
  }
  return fine('SupplyIsEnough', 'The supply voltage is enough, and was since the machine was started')
}

const heatRemedy = 'Give it a heat sink, a fan or a cooler place, and check its supply'

export function thermalThrottling({ throttling: seen }: PowerReading): HealthFinding | undefined {
  if (seen === undefined) return undefined
  if (seen.now) {
    return wrong('ProcessorSlowedDown', `The processor is slowed down now (${seen.by.join(', ')})`, heatRemedy)
  }
  if (seen.before) {
    return fine(
      'ProcessorWasSlowedDown',
      'The processor runs at full speed now, but was slowed down since the machine was started',
      heatRemedy,
    )
  }
  return fine('ProcessorNotSlowedDown', 'The processor was not slowed down since the machine was started')
}

export type PowerSource = { power(): PowerReading }

export const underVoltageCheck: ConditionCheck<PowerSource> = {
  type: 'UnderVoltage',
  name: 'supply-voltage',
  unknown: 'Nothing on this machine monitors its supply',
  periodMs: 10 * seconds,
  holdMs: minutes,
  look: (source) => underVoltage(source.power()),
}

export const thermalThrottlingCheck: ConditionCheck<PowerSource> = {
  type: 'ThermalThrottling',
  name: 'throttling',
  unknown: 'Nothing on this machine shows whether it is slowed down',
  periodMs: 10 * seconds,
  holdMs: minutes,
  look: (source) => thermalThrottling(source.power()),
}

/**
 * The flags that the firmware of a Raspberry Pi reports in one number: bits 0 to 3 now, 16 to 19 since they were last cleared.
 */
export type FirmwareFlags = {
  readonly underVoltage: Seen
  readonly throttling: Seen & { readonly by: readonly string[] }
}

const slowing: readonly (readonly [bit: number, words: string])[] = [
  [1, 'frequency capped'],
  [2, 'throttled'],
  [3, 'soft temperature limit'],
]

export function firmwareFlags(value: number): FirmwareFlags {
  const has = (bit: number) => (value & (1 << bit)) !== 0
  return {
    underVoltage: { now: has(0), before: has(0) || has(16) },
    throttling: {
      now: slowing.some(([bit]) => has(bit)),
      before: slowing.some(([bit]) => has(bit) || has(bit + 16)),
      by: slowing.filter(([bit]) => has(bit)).map(([, words]) => words),
    },
  }
}

/** A line of the driver of a Raspberry Pi's supply (raspberrypi-hwmon). */
export function isUnderVoltageLine(kernelLine: string): boolean {
  return /^(?:hwmon hwmon\d+: |rpi_firmware.*: )?Under-?voltage detected!/i.test(kernelLine)
}
