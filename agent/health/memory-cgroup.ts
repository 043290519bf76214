/** Checks that the memory control group is enabled. Raspberry Pi OS disables it by default. */
import { type ConditionCheck, fine, type HealthFinding, minutes, wrong } from './condition-check.ts'

export type MemoryCgroupReading = {
  readonly isEnabled: boolean
  /** The command line with which the kernel was started. */
  readonly commandLine: string
  /** The file of the kernel's command line, such as `/boot/firmware/cmdline.txt`; undefined where unknown. */
  readonly file: string | undefined
}

const words = 'cgroup_enable=memory cgroup_memory=1'

export function memoryCgroup(reading: MemoryCgroupReading | undefined): HealthFinding | undefined {
  if (reading === undefined) return undefined
  if (reading.isEnabled) return fine('MemoryCgroupEnabled', 'Memory of pods is limited and counted')
  return wrong(
    'MemoryCgroupOff',
    'Memory limits of pods have no effect, and their memory usage is not known',
    `${remedy(reading)}, then restart the machine`,
  )
}

function remedy({ commandLine, file }: MemoryCgroupReading): string {
  if (file?.endsWith('cmdline.txt')) return `Add "${words}" to the one line of ${file}`
  const off = commandLine.split(/\s+/).find((word) => /^cgroup_disable=(.*,)?memory(,|$)/.test(word))
  if (off !== undefined)
    return `Remove "${off}" from the kernel's command line${file === undefined ? '' : ` in ${file}`}`
  return `Add "${words}" to the kernel's command line${file === undefined ? '' : ` in ${file}`}`
}

export const memoryCgroupCheck: ConditionCheck<{ memoryCgroup(): MemoryCgroupReading | undefined }> = {
  type: 'MemoryCgroupDisabled',
  name: 'memory-cgroup',
  unknown: 'No control groups found on this machine',
  periodMs: 10 * minutes,
  holdMs: 0,
  look: (source) => memoryCgroup(source.memoryCgroup()),
}
