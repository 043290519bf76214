/** Checks the wear of the flash memory that this machine writes to, as reported by the device. SD cards do not report it. */
import { type ConditionCheck, fine, type HealthFinding, minutes, wrong } from './condition-check.ts'

export type FlashDevice = {
  /** `mmcblk0` */
  readonly name: string
  /** Steps of the standard (JEDEC JESD84-B50): 1 is up to 10 % of the lifetime used, 10 up to 100 %, 11 more. */
  readonly lifeTime: readonly number[]
  /** 1: normal; 2: 80 % of the spare blocks are used; 3: 90 %. Undefined where the device does not report it. */
  readonly preEndOfLife: number | undefined
}

const worn = 10

export function storageWear(devices: readonly FlashDevice[]): HealthFinding | undefined {
  const reporting = devices.filter(({ lifeTime, preEndOfLife }) => lifeTime.some(isStep) || isReported(preEndOfLife))
  if (reporting.length === 0) return undefined
  const bad = reporting.filter(({ lifeTime, preEndOfLife }) => (preEndOfLife ?? 0) > 1 || Math.max(...lifeTime) >= worn)
  const how = (bad.length > 0 ? bad : reporting).map(described).join('; ')
  if (bad.length === 0) return fine('StorageNotWorn', how)
  const isUrgent = bad.some(({ lifeTime, preEndOfLife }) => preEndOfLife === 3 || Math.max(...lifeTime) > worn)
  const when = isUrgent ? 'now, and save what is on it first' : 'soon'
  return wrong(isUrgent ? 'StorageAtEndOfLife' : 'StorageWorn', how, `Replace it ${when}`)
}

function described({ name, lifeTime, preEndOfLife }: FlashDevice): string {
  const step = Math.max(...lifeTime, 0)
  const life = step > worn ? 'more than the whole' : `up to ${step * 10} %`
  const spare =
    preEndOfLife === 3 ? ', 90 % of its spare blocks' : preEndOfLife === 2 ? ', 80 % of its spare blocks' : ''
  return `${name} has used ${isStep(step) ? `${life} of its life` : 'an unknown part of its life'}${spare}`
}

/** 0: the device does not report it. */
function isStep(step: number): boolean {
  return step > 0
}

function isReported(preEndOfLife: number | undefined): boolean {
  return preEndOfLife !== undefined && preEndOfLife > 0
}

export const storageWearCheck: ConditionCheck<{ flash(): readonly FlashDevice[] }> = {
  type: 'StorageWear',
  name: 'storage-wear',
  unknown: 'No disk of this machine reports its wear; memory cards never do',
  periodMs: 60 * minutes,
  holdMs: 0,
  look: (source) => storageWear(source.flash()),
}
