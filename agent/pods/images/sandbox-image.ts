/**
 * The image of a pod's sandbox: a program that sleeps forever and holds the pod's network namespace while its containers start
 * and end. The agent builds the image, including the machine code, so that no registry is needed.
 */
import { tarOf } from './tar.ts'

export const sandboxImage = 'bramble.dev/pause:1'

/** Docker's (Go's) names of architectures. */
export type SandboxArchitecture = 'amd64' | 'arm64' | 'arm'

/** The image's one layer as a tar archive, to be imported with the entrypoint `/pause`. */
export function sandboxLayer(architecture: SandboxArchitecture): Buffer {
  return tarOf([{ path: 'pause', content: pauseProgram(architecture), mode: 0o755 }])
}

export function isSandboxArchitecture(word: string): word is SandboxArchitecture {
  return word in programs
}

/**
 * A static ELF executable without sections: file header, one program header, code, data; at most 208 bytes. It does
 *
 *     rt_sigaction(SIGCHLD, { SIG_IGN }, NULL, 8)    as process 1 of a pod it then need not reap
 *     for (;;) pause()                               arm64 has no pause: ppoll(NULL, 0, NULL, NULL)
 *
 * Being process 1 without handlers it takes no notice of SIGTERM: it is ended by SIGKILL, at once.
 */
export function pauseProgram(architecture: SandboxArchitecture): Buffer {
  const { machine, flags, bits, code } = programs[architecture]
  const start = bits === 64 ? 64 + 56 : 52 + 32
  const data = align8(start + code.length)
  const file = Buffer.alloc(data + 4 * (bits / 8))
  const size = file.length
  file.set([0x7f, 0x45, 0x4c, 0x46]) // \x7fELF
  file.set([bits / 32, 1, 1], 4) // class, little endian, version; the ABI is 0: System V
  file.writeUInt16LE(2, 16) // type: executable
  file.writeUInt16LE(machine, 18)
  file.writeUInt32LE(1, 20) // version
  if (bits === 64) {
    words64(file, 24, [loadAddress + start, 64, 0]) // entry, program header, no section headers
    file.writeUInt32LE(flags, 48)
    words16(file, 52, [64, 56, 1, 64, 0, 0]) // sizes and counts of headers
    words32(file, 64, [1, 5]) // PT_LOAD, readable and executable
    words64(file, 72, [0, loadAddress, loadAddress, size, size, pageSize])
  } else {
    words32(file, 24, [loadAddress + start, 52, 0, flags])
    words16(file, 40, [52, 32, 1, 40, 0, 0])
    words32(file, 52, [1, 0, loadAddress, loadAddress, size, size, 5, pageSize])
  }
  file.set(code, start)
  file.writeUInt8(1, data) // struct sigaction { handler: SIG_IGN = 1, flags: 0, restorer: 0, mask: 0 }
  return file
}

const loadAddress = 0x400000
/** The largest page in use (arm64); right for smaller ones too. */
const pageSize = 0x10000

type Program = {
  readonly machine: number
  readonly flags: number
  readonly bits: 32 | 64
  readonly code: Uint8Array
}

const programs: { readonly [Name in SandboxArchitecture]: Program } = {
  amd64: {
    machine: 62,
    flags: 0,
    bits: 64,
    code: Uint8Array.of(
      ...[0xb8, 0x0d, 0x00, 0x00, 0x00], // mov eax, 13           rt_sigaction
      ...[0xbf, 0x11, 0x00, 0x00, 0x00], // mov edi, 17           SIGCHLD
      ...[0xbe, 0xa0, 0x00, 0x40, 0x00], // mov esi, 0x4000a0     the data below: 120 + 34, aligned
      ...[0x31, 0xd2], //                   xor edx, edx
      ...[0x41, 0xba, 0x08, 0x00, 0x00, 0x00], // mov r10d, 8     size of a signal set
      ...[0x0f, 0x05], //                   syscall
      ...[0xb8, 0x22, 0x00, 0x00, 0x00], // mov eax, 34           pause
      ...[0x0f, 0x05], //                   syscall
      ...[0xeb, 0xf7], //                   jmp -9
    ),
  },
  arm64: {
    machine: 183,
    flags: 0,
    bits: 64,
    code: instructions(
      0xd28010c8, // movz x8, #134        rt_sigaction
      0xd2800220, // movz x0, #17         SIGCHLD
      0x10000181, // adr x1, +48          the data: 120 + 52, aligned, is 176; this is at 128
      0xd2800002, // movz x2, #0
      0xd2800103, // movz x3, #8
      0xd4000001, // svc #0
      0xd2800928, // movz x8, #73         ppoll
      0xd2800000, // movz x0, #0
      0xd2800001, // movz x1, #0
      0xd2800002, // movz x2, #0
      0xd2800003, // movz x3, #0
      0xd4000001, // svc #0
      0x17fffffa, // b -6 instructions
    ),
  },
  /** EABI version 5; runs on every Pi from the first on. */
  arm: {
    machine: 40,
    flags: 0x05000000,
    bits: 32,
    code: instructions(
      0xe3a070ae, // mov r7, #174         rt_sigaction
      0xe3a00011, // mov r0, #17          SIGCHLD
      0xe28f1014, // add r1, pc, #20      the data: 84 + 36 is 120; pc is this instruction's 92 and 8 more
      0xe3a02000, // mov r2, #0
      0xe3a03008, // mov r3, #8
      0xef000000, // svc 0
      0xe3a0701d, // mov r7, #29          pause
      0xef000000, // svc 0
      0xeafffffc, // b -2 instructions
    ),
  },
}

function instructions(...words: readonly number[]): Uint8Array {
  const code = Buffer.alloc(4 * words.length)
  words32(code, 0, words)
  return code
}

function align8(offset: number): number {
  return Math.ceil(offset / 8) * 8
}

function words16(file: Buffer, at: number, words: readonly number[]): void {
  for (const [i, word] of words.entries()) file.writeUInt16LE(word, at + 2 * i)
}

function words32(file: Buffer, at: number, words: readonly number[]): void {
  for (const [i, word] of words.entries()) file.writeUInt32LE(word, at + 4 * i)
}

function words64(file: Buffer, at: number, words: readonly number[]): void {
  for (const [i, word] of words.entries()) file.writeBigUInt64LE(BigInt(word), at + 8 * i)
}
