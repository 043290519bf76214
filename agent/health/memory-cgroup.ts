/** Can this machine limit and count memory? Raspberry Pi OS switches that off. */
import { type Finding, fine, wrong } from './finding.ts'

export type MemoryCgroupReading = {
  readonly isEnabled: boolean
  /** As the kernel was started. */
  readonly commandLine: string
  /** Where its command line is written: `/boot/firmware/cmdline.txt`; undefined where nobody knows. */
  readonly file: string | undefined
}

const words = 'cgroup_enable=memory cgroup_memory=1'

export function memoryCgroup(reading: MemoryCgroupReading | undefined): Finding | undefined {
  if (reading === undefined) return undefined
  if (reading.isEnabled) return fine('MemoryCgroupEnabled', 'Memory of pods is limited and counted')
  return wrong(
    'MemoryCgroupOff',
    `Memory limits of pods have no effect, and what they use cannot be told: ${remedy(reading)}, then restart the machine`,
  )
}

function remedy({ commandLine, file }: MemoryCgroupReading): string {
  if (file?.endsWith('cmdline.txt')) return `add "${words}" to the one line of ${file}`
  const off = commandLine.split(/\s+/).find((word) => /^cgroup_disable=(.*,)?memory(,|$)/.test(word))
  if (off !== undefined) return `take "${off}" off the kernel's command line${file === undefined ? '' : ` in ${file}`}`
  return `add "${words}" to the kernel's command line${file === undefined ? '' : ` in ${file}`}`
}
