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

/** `line` with these words at its end, each once. Words with the opposite effect are removed. */
export function cardCommandLine(line: string): string {
  const added: readonly string[] = [...memoryWords, ...firstBootWords]
  const kept = line
    .split(/\s+/)
    .filter(
      (word) => word !== '' && !added.includes(word) && word !== 'cgroup_disable=memory' && word !== 'cgroup_memory=0',
    )
  return [...kept, ...added].join(' ')
}
