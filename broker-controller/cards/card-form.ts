/** Which system an image has, by what is on its boot partition. Pure. The source of the names: RPi-Distro/pi-gen, branches arm64 and bookworm-arm64. */

import { growsByWord } from './kernel-command-line.ts'

/** Second line of issue.txt, as scripts/build-image.sh writes it. */
const ownImageMark = /^Made by build-image\.sh of Bramble\b/

export type BootFiles = {
  /** Names in the root of the boot partition. */
  readonly names: readonly string[]
  readonly commandLine: string | undefined
  readonly config: string | undefined
  readonly issue: string | undefined
}

/** How Raspberry Pi Imager customises the image: by firstrun.sh, by files of cloud-init (its documentation, os_customisation_formats.md), or not at all. */
export type InitFormat = 'systemd' | 'cloudinit-rpi' | 'none'

export type CardForm = {
  /** Raspberry Pi OS, or an image of scripts/build-image.sh, which has the packages inside. */
  readonly kind: 'raspios' | 'own'
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
  const [first = '', made = ''] = (issue ?? '').split('\n')
  const system = first.slice(0, 80).replace(/[^\x20-\x7e]/g, '?')
  const line = commandLine.trim()
  const isLine = !/[\r\n\0]/.test(line) && /(^| )root=\S/.test(line)
  const damaged = 'has a damaged cmdline.txt: it must be one line with root='
  if (ownImageMark.test(made)) return isLine ? { kind: 'own', initFormat: 'none', system, commandLine: line } : damaged
  if (!/\bpi-gen\b/.test(made)) return 'is not Raspberry Pi OS: its issue.txt does not name pi-gen'
  if (has('kernel.img') || has('kernel7.img') || has('kernel7l.img')) {
    return 'has the 32-bit system, for which there is no agent: use Raspberry Pi OS Lite (64-bit)'
  }
  if (!has('kernel8.img')) return 'has no kernel8.img: use Raspberry Pi OS Lite (64-bit)'
  // Since Debian 12, with which the boot partition moved to /boot/firmware.
  if (!/^auto_initramfs=1\s*$/m.test(config))
    return 'is older than Debian 12: use a newer Raspberry Pi OS Lite (64-bit)'
  if (!isLine) return damaged
  const initFormat = has('user-data') && has('meta-data') ? 'cloudinit-rpi' : 'systemd'
  return { kind: 'raspios', initFormat, system, commandLine: line }
}

export type CardWish = {
  readonly hasPackages: boolean
  readonly isReadOnly: boolean
  /** The image was made as that of a read-only card, or with a read-only root. */
  readonly wasReadOnly: boolean
}

/** Whether the card is read-only, or why the image cannot become what is wanted; continues "The image …". */
export function planCard(form: CardForm, { hasPackages, isReadOnly, wasReadOnly }: CardWish): boolean | string {
  if (form.kind === 'own') {
    return hasPackages ? 'has the packages of the agent already: leave out --packages' : isReadOnly || wasReadOnly
  }
  if (!hasPackages) return 'is Raspberry Pi OS: give the folder with the packages for the machine with --packages'
  if (isReadOnly && !wasReadOnly && !growsByWord(form.commandLine)) {
    return "has no word 'resize' in cmdline.txt: --read-only is for Raspberry Pi OS of Debian 13"
  }
  return isReadOnly
}
