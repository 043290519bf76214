/** Which system an image has, by what is on its boot partition. Pure. The source of the names: RPi-Distro/pi-gen, branches arm64 and bookworm-arm64. */

export type BootFiles = {
  /** Names in the root of the boot partition. */
  readonly names: readonly string[]
  readonly commandLine: string | undefined
  readonly config: string | undefined
  readonly issue: string | undefined
}

/** How Raspberry Pi Imager customises the image: by firstrun.sh, or by files of cloud-init (its documentation, os_customisation_formats.md). */
export type InitFormat = 'systemd' | 'cloudinit-rpi'

export type CardForm = {
  readonly initFormat: InitFormat
  /** First line of its issue.txt: `Raspberry Pi reference 2025-12-04`. */
  readonly system: string
  /** The kernel's, in one line without its end. */
  readonly commandLine: string
}

/** The form of the image, or why it is not one that can become a card; continues "The image …". */
export function recogniseCard({ names, commandLine, config, issue }: BootFiles): CardForm | string {
  const has = (name: string) => names.some((one) => one.toLowerCase() === name)
  if (commandLine === undefined || config === undefined)
    return 'has no cmdline.txt or config.txt: it is not for a Raspberry Pi'
  const [system = '', made = ''] = (issue ?? '').split('\n')
  if (!/\bpi-gen\b/.test(made)) return 'is not Raspberry Pi OS: its issue.txt does not name pi-gen'
  if (has('kernel.img') || has('kernel7.img') || has('kernel7l.img')) {
    return 'has the 32-bit system, for which there is no agent: use Raspberry Pi OS Lite (64-bit)'
  }
  if (!has('kernel8.img')) return 'has no kernel8.img: use Raspberry Pi OS Lite (64-bit)'
  // Since Debian 12, with which the boot partition moved to /boot/firmware.
  if (!/^auto_initramfs=1\s*$/m.test(config))
    return 'is older than Debian 12: use a newer Raspberry Pi OS Lite (64-bit)'
  const line = commandLine.trim()
  if (/[\r\n\0]/.test(line) || !/(^| )root=\S/.test(line))
    return 'has a damaged cmdline.txt: it must be one line with root='
  const initFormat = has('user-data') && has('meta-data') ? 'cloudinit-rpi' : 'systemd'
  return { initFormat, system: system.slice(0, 80).replace(/[^\x20-\x7e]/g, '?'), commandLine: line }
}
