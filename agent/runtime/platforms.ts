/** Decides whether programs of a platform run on this machine, by its processor or by an emulator registered in the kernel. */

/** Docker's names. */
export type Platform = {
  readonly os: string
  readonly architecture: string
  /** ARM version: `v6`, `v7`, `v8`; '' when unspecified. */
  readonly variant: string
}

/** The pattern by which the kernel recognises programs for an emulator. */
export type Emulator = { readonly offset: number; readonly magic: Uint8Array; readonly mask: Uint8Array | undefined }

/** `machine`: the output of `uname -m`. */
export function platformOf(machine: string): Platform {
  const [architecture, variant] = kernelWords[machine] ?? [machine, '']
  return { os: 'linux', architecture, variant }
}

const kernelWords: { readonly [machine: string]: readonly [string, string] } = {
  x86_64: ['amd64', ''],
  i386: ['386', ''],
  i686: ['386', ''],
  aarch64: ['arm64', ''],
  armv8l: ['arm', 'v8'],
  armv7l: ['arm', 'v7'],
  armv6l: ['arm', 'v6'],
}

/** Why the image does not run, and what to do; undefined when it runs. An image without a platform is assumed to run. */
export function platformProblem(
  image: string,
  of: Platform,
  machine: Platform,
  emulators: readonly Emulator[],
): string | undefined {
  if (runsNatively(of, machine)) return undefined
  if (isLinux(of) && emulators.some((emulator) => emulates(emulator, of.architecture))) return undefined
  const remedy = `use an image built for ${platformText(machine)}, or register an emulator in the kernel (binfmt_misc; on Debian the package qemu-user-static)`
  return `image "${image}" is for ${platformText(of)}, this machine is ${platformText(machine)}: ${remedy}`
}

/**
 * 32-bit programs run on the 64-bit processors of a Pi and of a PC; an older ARM processor lacks newer instructions.
 */
export function runsNatively(of: Platform, machine: Platform): boolean {
  if (!isLinux(of)) return false
  const { architecture } = of
  if (architecture === '') return true
  if (architecture === 'arm' && machine.architecture === 'arm') return armVersion(of, 5) <= armVersion(machine, 8)
  if (architecture === machine.architecture) return true
  return (
    (architecture === 'arm' && machine.architecture === 'arm64') ||
    (architecture === '386' && machine.architecture === 'amd64')
  )
}

export function platformText({ os, architecture, variant }: Platform): string {
  return [os || 'linux', architecture, variant].filter((part) => part !== '').join('/')
}

/** A file of the kernel's binfmt_misc; undefined when it is disabled or matches file names. */
export function readEmulator(text: string): Emulator | undefined {
  const value = (name: string) => new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
  const magic = value('magic')
  if (!/^enabled$/m.test(text) || magic === undefined) return undefined
  const mask = value('mask')
  return {
    offset: Number(value('offset') ?? 0),
    magic: Buffer.from(magic, 'hex'),
    mask: mask === undefined ? undefined : Buffer.from(mask, 'hex'),
  }
}

/** Bits outside the mask do not count on either side (fs/binfmt_misc.c, search_binfmt_handler). */
function emulates({ offset, magic, mask }: Emulator, architecture: string): boolean {
  const head = programHead(architecture)
  if (head === undefined) return false
  return magic.every((byte, at) => (((head[offset + at] ?? 0) ^ byte) & (mask?.[at] ?? 0xff)) === 0)
}

/** The first bytes of its executables: ELF's magic, class, byte order and version; type and machine. */
function programHead(architecture: string): Uint8Array | undefined {
  const known = elf[architecture]
  if (known === undefined) return undefined
  const [bits, order, machine] = known
  const head = Buffer.alloc(32)
  head.set([0x7f, 0x45, 0x4c, 0x46, bits / 32, order === 'little' ? 1 : 2, 1])
  if (order === 'little') head.set([2, 0, machine & 0xff, machine >> 8], 16)
  else head.set([0, 2, machine >> 8, machine & 0xff], 16)
  return head
}

const elf: { readonly [architecture: string]: readonly [32 | 64, 'little' | 'big', number] } = {
  amd64: [64, 'little', 62],
  386: [32, 'little', 3],
  arm64: [64, 'little', 183],
  arm: [32, 'little', 40],
  riscv64: [64, 'little', 243],
  ppc64le: [64, 'little', 21],
  s390x: [64, 'big', 22],
  loong64: [64, 'little', 258],
  mips64le: [64, 'little', 8],
}

function isLinux({ os }: Platform): boolean {
  return os === '' || os === 'linux'
}

function armVersion({ variant }: Platform, otherwise: number): number {
  return Number(/^v(\d+)/.exec(variant)?.[1] ?? otherwise)
}
