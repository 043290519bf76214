/** The hottest sensor and the load, for the dashboard of the controller. Read only while it asks. */
import { join } from 'node:path'
import type { MachineStats } from '../../../api/topics.ts'
import type { TemperatureReading } from '../../health/temperature.ts'
import { textOf } from './kernel-files.ts'

export type MachineStatsNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  readonly temperature: () => TemperatureReading
}

/** Values that the machine does not have are left out. */
export function machineStats({ root, temperature }: MachineStatsNeeds): Pick<MachineStats, 'celsius' | 'load'> {
  const celsius = Math.max(...temperature().zones.map((zone) => zone.celsius))
  const load = Number.parseFloat(textOf(join(root, 'proc/loadavg')) ?? '')
  return { ...(Number.isFinite(celsius) && { celsius }), ...(Number.isFinite(load) && { load }) }
}
