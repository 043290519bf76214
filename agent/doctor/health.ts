/** What the agent itself watches, as findings: the same decisions, on one look instead of many. */
import { dockerHealth } from '../health/docker.ts'
import { type FilesystemState, readOnlyFilesystem } from '../health/filesystem.ts'
import type { Finding as Condition } from '../health/finding.ts'
import { type PowerReading, thermalThrottling, underVoltage } from '../health/power.ts'
import { type FlashDevice, storageWear } from '../health/storage.ts'
import { highTemperature, type TemperatureReading } from '../health/temperature.ts'
import { type RadioLink, weakWifi } from '../health/wifi.ts'
import { type Finding, ok, problem, unknown, warning } from './finding.ts'

export type SensorReadings = {
  readonly power: PowerReading
  readonly temperature: TemperatureReading
  readonly flash: readonly FlashDevice[]
  readonly radio: readonly RadioLink[]
}

export function sensorFindings({ power, temperature, flash, radio }: SensorReadings): readonly Finding[] {
  return [
    findingOf('supply-voltage', underVoltage(power), 'Nothing on this machine watches its supply'),
    findingOf('throttling', thermalThrottling(power), 'Nothing on this machine tells when it is slowed down'),
    findingOf('temperature', highTemperature(temperature, undefined, false), 'No sensor with a limit'),
    findingOf('storage-wear', storageWear(flash), 'No disk here tells how worn it is; memory cards never do'),
    findingOf('wifi', weakWifi(radio, false), 'No Wi-Fi link'),
  ]
}

export function filesystemFinding(readings: readonly FilesystemState[]): Finding {
  const meant = readings.find(({ role, isReadOnly, isMeantSo }) => role === 'root' && isReadOnly && isMeantSo)
  const found = findingOf('filesystems', readOnlyFilesystem(readings), 'The mounts of this machine are not shown')
  if (found.verdict !== 'ok' || meant === undefined) return found
  return ok(
    'filesystems',
    'The root filesystem is read-only, and is configured so; the data directory can be written to',
  )
}

/** `silence`: it does not answer now. */
export function dockerFinding(version: string | undefined, silence: 'refuses' | 'hangs' | undefined): Finding {
  const condition = dockerHealth({
    version,
    silence: silence && { kind: silence, sinceMs: Number.POSITIVE_INFINITY },
  })
  const found = findingOf('docker', condition, 'Docker does not tell its version')
  return found.verdict === 'ok' ? ok('docker', `Docker ${version} answers`) : found
}

/** A condition that is not True, but has something to say of the past, is a warning. */
export function findingOf(check: string, condition: Condition | undefined, nothingTells: string): Finding {
  if (condition === undefined) return unknown(check, nothingTells)
  const { found, remedy } = halves(condition.message)
  if (condition.status === 'True') return problem(check, found, remedy ?? 'See above')
  return remedy === undefined ? ok(check, found) : warning(check, found, remedy)
}

/** `What is wrong: what to do`, or `What is wrong. What to do`. */
export function halves(message: string): { readonly found: string; readonly remedy: string | undefined } {
  const sentence = message.search(/\. (?=[A-Z])/)
  const at = sentence >= 0 ? sentence : message.lastIndexOf(': ')
  const found = at < 0 ? message : message.slice(0, at)
  return { found: capital(found), remedy: at < 0 ? undefined : capital(message.slice(at + 2)) }
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
