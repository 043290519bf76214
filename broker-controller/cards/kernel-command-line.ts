/** The words that a card adds to the kernel's command line. Pure. */

/** Path of the script on the machine, with the boot partition mounted. */
export const firstBootPath = '/boot/firmware/bramble/first-boot.sh'

/**
 * systemd-run-generator(8): this boot runs the script and nothing else, then the machine restarts; Raspberry Pi Imager's firstrun.sh has the
 * same words, and both scripts run if both are there. The script removes the words.
 */
export const firstBootWords = [
  `systemd.run=${firstBootPath}`,
  'systemd.run_success_action=reboot',
  'systemd.run_failure_action=none',
  'systemd.unit=kernel-command-line.target',
] as const

/** Without them the kernel of Raspberry Pi OS has no memory limits for containers. */
const memoryWords = ['cgroup_enable=memory', 'cgroup_memory=1'] as const

/** With it the initramfs of Raspberry Pi OS (Debian 13, raspberrypi-sys-mods) gives the root partition the whole card. */
const growWord = 'resize'

export type CardWords = {
  /** The card's own script makes the partitions. */
  readonly isReadOnly?: boolean
  /** The line is that of a read-only card. */
  readonly wasReadOnly?: boolean
}

/** `line` with these words at its end, each once. Words with the opposite effect are removed. */
export function cardCommandLine(line: string, { isReadOnly = false, wasReadOnly = false }: CardWords = {}): string {
  const added: readonly string[] = [...memoryWords, ...firstBootWords]
  const removed = ['', 'cgroup_disable=memory', 'cgroup_memory=0', ...(isReadOnly ? [growWord] : []), ...added]
  const kept = line.split(/\s+/).filter((word) => !removed.includes(word))
  const grows = wasReadOnly && !isReadOnly && !kept.includes(growWord)
  return [...kept, ...(grows ? [growWord] : []), ...added].join(' ')
}

/** Does the system of this line grow its root partition in the way that `cardCommandLine` can prevent? */
export function growsByWord(line: string): boolean {
  return line.split(/\s+/).includes(growWord)
}
