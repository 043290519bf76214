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
