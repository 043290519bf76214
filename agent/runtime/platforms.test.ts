import { test } from 'tap'
import { type Platform, platformOf, platformProblem, platformText, readEmulator } from './platforms.ts'

function platform(text: string): Platform {
  const [os = '', architecture = '', variant = ''] = text.split('/')
  return { os, architecture, variant }
}

/** As the package qemu-user-static registers it, read back from the kernel. */
const qemuArm64 = `enabled
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: POF
offset 0
magic 7f454c460201010000000000000000000200b700
mask ffffffffffffff00fffffffffffffffffeffffff
`

test('a machine is named as images name it', async (t) => {
  for (const [machine, text] of [
    ['x86_64', 'linux/amd64'],
    ['aarch64', 'linux/arm64'],
    ['armv7l', 'linux/arm/v7'],
    ['armv6l', 'linux/arm/v6'],
    ['riscv64', 'linux/riscv64'],
    ['i386', 'linux/386'],
    ['i686', 'linux/386'],
    ['armv8l', 'linux/arm/v8'],
  ] as const) {
    t.equal(platformText(platformOf(machine)), text)
  }
})

test('an image runs on its own kind of machine, and on the wider one', async (t) => {
  const runs = (image: string, machine: string) =>
    platformProblem('x', platform(image), platformOf(machine), []) === undefined
  for (const [image, machine] of [
    ['linux/amd64', 'x86_64'],
    ['linux/amd64/v2', 'x86_64'],
    ['linux/386', 'x86_64'],
    ['linux/arm64/v8', 'aarch64'],
    ['linux/arm/v7', 'aarch64'],
    ['linux/arm', 'armv6l'],
    ['linux/arm/v6', 'armv7l'],
    ['linux/arm/v7', 'armv7l'],
    ['linux/arm/v8', 'armv8l'],
    ['linux/arm/x9', 'armv6l'],
    ['linux', 'aarch64'],
    ['', 'aarch64'],
  ] as const) {
    t.ok(runs(image, machine), `${image} on ${machine}`)
  }
  for (const [image, machine] of [
    ['linux/amd64', 'aarch64'],
    ['linux/arm64', 'x86_64'],
    ['linux/arm64', 'armv7l'],
    ['linux/arm/v7', 'armv6l'],
    ['linux/arm/v10', 'armv8l'],
    ['linux/386', 'aarch64'],
    ['linux/arm/v7', 'x86_64'],
    ['windows/amd64', 'x86_64'],
    ['linux/unknown', 'x86_64'],
  ] as const) {
    t.notOk(runs(image, machine), `${image} not on ${machine}`)
  }
})

test('a platform problem names its remedy', async (t) => {
  t.equal(
    platformProblem('app:1', platform('linux/arm64/v8'), platformOf('x86_64'), []),
    'image "app:1" is for linux/arm64/v8, this machine is linux/amd64: use an image built for linux/amd64, or register an emulator in the kernel (binfmt_misc; on Debian the package qemu-user-static)',
  )
})

test('an emulator registered in the kernel runs its platform, and nothing else', async (t) => {
  const emulator = readEmulator(qemuArm64)
  const emulators = emulator === undefined ? [] : [emulator]
  const problem = (image: string) => platformProblem('x', platform(image), platformOf('x86_64'), emulators)
  t.equal(problem('linux/arm64'), undefined)
  t.match(problem('linux/arm/v7'), /linux\/arm\/v7/)
  t.match(problem('linux/s390x'), /linux\/s390x/)
  t.match(problem('windows/arm64'), /windows/)
  t.equal(readEmulator(qemuArm64.replace('enabled', 'disabled')), undefined)
  t.equal(readEmulator('enabled\ninterpreter /usr/bin/jar\nflags: \nextension .jar\n'), undefined)
})

/** What the kernel lists for the emulators of Debian's qemu-user-static. Some masks leave out bits that are set in the magic. */
const registered: { readonly [architecture: string]: readonly [magic: string, mask: string] } = {
  amd64: ['7f454c4602010100000000000000000002003e00', 'fffffffffffefe00fffffffffffffffffeffffff'],
  386: ['7f454c4601010100000000000000000002000300', 'fffffffffffefe00fffffffffffffffffeffffff'],
  arm64: ['7f454c460201010000000000000000000200b700', 'ffffffffffffff00fffffffffffffffffeffffff'],
  arm: ['7f454c4601010100000000000000000002002800', 'ffffffffffffff00fffffffffffffffffeffffff'],
  riscv64: ['7f454c460201010000000000000000000200f300', 'ffffffffffffff00fffffffffffffffffeffffff'],
  ppc64le: ['7f454c4602010100000000000000000002001500', 'ffffffffffffff00fffffffffffffffffeffff00'],
  s390x: ['7f454c4602020100000000000000000000020016', 'ffffffffffffff00fffffffffffffffffffeffff'],
  loong64: ['7f454c4602010100000000000000000002000201', 'fffffffffffffffc00fffffffffffffffeffffff'],
  mips64le: ['7f454c4602010100000000000000000002000800', 'ffffffffffffff00fffffffffffffffffeffffff'],
}

test('the emulator of each architecture runs its images, and no others', async (t) => {
  const machine = { os: 'linux', architecture: 'sparc64', variant: '' }
  for (const [own, [magic, mask]] of Object.entries(registered)) {
    const emulator = readEmulator(
      `enabled\ninterpreter /usr/bin/qemu\nflags: OC\noffset 0\nmagic ${magic}\nmask ${mask}\n`,
    )
    const runs = [...Object.keys(registered), 'unknown'].filter(
      (architecture) =>
        platformProblem('x', platform(`linux/${architecture}`), machine, emulator === undefined ? [] : [emulator]) ===
        undefined,
    )
    t.same(runs, [own])
  }
})

test('an emulator without a mask or an offset compares whole bytes from the first one', async (t) => {
  t.same(readEmulator('enabled\nmagic 7f45\n'), { offset: 0, magic: Buffer.from([0x7f, 0x45]), mask: undefined })
  t.same(readEmulator('enabled\noffset 18\nmagic b700\nmask ff00\n'), {
    offset: 18,
    magic: Buffer.from([0xb7, 0]),
    mask: Buffer.from([0xff, 0]),
  })
  for (const text of ['not enabled\nmagic 7f45\n', 'enabled not\nmagic 7f45\n', 'magic 7f45\n']) {
    t.equal(readEmulator(text), undefined, text)
  }
  const runs = (text: string) => {
    const emulator = readEmulator(text)
    return (
      platformProblem('x', platform('linux/arm64'), platformOf('x86_64'), emulator === undefined ? [] : [emulator]) ===
      undefined
    )
  }
  t.ok(runs('enabled\noffset 18\nmagic b7\n'))
  t.notOk(runs('enabled\noffset 18\nmagic b6\n'))
  t.notOk(runs('enabled\noffset 17\nmagic b7\n'))
  t.ok(runs('enabled\noffset 40\nmagic 00\n'), 'past the head the program is not known, and taken as zero')
})
