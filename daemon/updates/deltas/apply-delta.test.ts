import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib'
import { test } from 'tap'
import { powerCutDisk } from '../../testing/power-cut-disk.ts'
import { seededRandom } from '../../testing/seeded-random.ts'
import { releaseArchive } from '../release-archive.ts'
import { applyDelta } from './apply-delta.ts'
import { type DeltaPart, deltaBytes } from './delta-steps.ts'
import type { InstalledArchive } from './installed-archive.ts'
import { makeDelta } from './make-delta.ts'

const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
const archiveIn = (bytes: Buffer): InstalledArchive => ({
  size: bytes.length,
  read: async (from, most) => bytes.subarray(from, from + most),
})

type Given = { readonly base: Buffer; readonly delta: Buffer; readonly size?: number; readonly digest?: string }

/** The archive, and what is left on the disk. */
async function applied({ base, delta, size = 0, digest = '' }: Given) {
  const disk = powerCutDisk()
  await disk.makeFolder('/')
  await disk.makeFolder('/d')
  await disk.write('/d/delta', delta, 0o600)
  const failure = await applyDelta({
    ...{ disk, base: archiveIn(base), delta: '/d/delta', to: '/d/archive', size, digest },
  }).catch((error: unknown) => error)
  return { failure, archive: await disk.read('/d/archive'), names: await disk.list('/d') }
}

/** The compiled sources of this part of the repository in one file, as bundles are, and two small changes in it. */
function packages(): readonly [base: Buffer, target: Buffer] {
  const folder = fileURLToPath(new URL('../..', import.meta.url))
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js'))
    .sort()
  const sources = names.map((name) => readFileSync(join(folder, name), 'utf8'))
  const native = Buffer.from(Uint8Array.from({ length: 60_000 }, (_, at) => (at * at * 7 + (at >> 5)) % 256))
  const archiveOf = (bundle: string, version: string) =>
    releaseArchive([
      { path: 'bramble-agent', content: Buffer.from(`#!/bin/sh\n# ${version}\n`), isProgram: true },
      { path: 'bramble-agent.mjs', content: Buffer.from(bundle), isProgram: false },
      { path: 'node_modules/unix-dgram/build/Release/unix_dgram.node', content: native, isProgram: false },
      { path: 'runtime', content: Buffer.from('22\n'), isProgram: false },
    ])
  const middle = Math.floor(sources.length / 2)
  const changed = sources.map((source, at) => (at === middle ? source.replaceAll('const', 'let') : source))
  const [moved = '', ...others] = changed
  return [
    archiveOf(sources.join('\n'), '1.4.0'),
    archiveOf([...others, moved, 'export const one = 1'].join('\n'), '1.5.0'),
  ]
}

test('a delta between two packages is a small part of the archive, and gives it byte for byte', async (t) => {
  const [base, target] = packages()
  const delta = makeDelta(base, target)
  const whole = makeDelta(Buffer.alloc(0), target)
  t.comment(`archive ${target.length}, compressed ${whole.length}, delta ${delta.length} bytes`)
  t.ok(base.length > 300_000, `${base.length}`)
  t.ok(delta.length * 100 < target.length, `delta of ${delta.length} bytes for an archive of ${target.length}`)
  t.ok(whole.length * 3 < target.length, `compressed archive of ${whole.length} bytes`)
  for (const [from, by] of [
    [base, delta],
    [Buffer.alloc(0), whole],
  ] as const) {
    const made = await applied({ base: from, delta: by, size: target.length, digest: sha256(target) })
    t.equal(made.failure, undefined)
    t.ok(Buffer.from(made.archive ?? []).equals(target))
    t.same(made.names.toSorted(), ['archive', 'delta'])
  }
})

test('every pair of texts has a delta: changed, moved, doubled, shortened, empty', async (t) => {
  const random = seededRandom(3)
  const below = (most: number) => Math.floor(random() * most)
  const text = (length: number) => Buffer.from(Uint8Array.from({ length }, () => below(4) + 97))
  for (let round = 0; round < 200; round++) {
    const base = text(below(3000))
    const pieces = Array.from({ length: below(8) }, () => {
      const from = below(base.length)
      return random() < 0.7 ? base.subarray(from, from + below(1000)) : text(below(50))
    })
    const target = Buffer.concat(pieces)
    const delta = makeDelta(base, target)
    const { failure, archive } = await applied({ base, delta, size: target.length, digest: sha256(target) })
    if (failure !== undefined || !Buffer.from(archive ?? []).equals(target)) t.fail(`round ${round}: ${failure}`)
  }
})

const base = Buffer.from('0123456789'.repeat(100))
const target = Buffer.concat([base.subarray(500), Buffer.from('something'), base.subarray(0, 300)])
const right = { base, delta: makeDelta(base, target), size: target.length, digest: sha256(target) }
const packed = (parts: readonly DeltaPart[]) => brotliCompressSync(deltaBytes(parts))
const none = new Uint8Array()
const refusals: { readonly [name: string]: readonly [Given, RegExp] } = {
  'another base': [{ ...right, base: Buffer.from('9876543210'.repeat(100)) }, /another archive than the one/],
  'a shorter base': [{ ...right, base: base.subarray(0, 200) }, /behind the end of its base/],
  'another archive': [{ ...right, digest: sha256(base) }, /another archive than the one/],
  'an archive that is longer': [{ ...right, size: target.length - 1 }, /more than the 808 bytes/],
  'an archive that is shorter': [
    { ...right, delta: packed([{ bytes: none, from: 0, length: 5 }]) },
    /another archive than the one/,
  ],
  'a damaged byte': [
    { ...right, delta: Buffer.from(right.delta.map((byte, at) => (at === 9 ? byte ^ 64 : byte))) },
    /./,
  ],
  'its end cut off': [{ ...right, delta: right.delta.subarray(0, -3) }, /./],
  'steps cut short': [{ ...right, delta: brotliCompressSync(brotliDecompressSync(right.delta).subarray(0, -1)) }, /./],
  'no compression': [{ ...right, delta: brotliDecompressSync(right.delta) }, /./],
  'no bytes': [{ ...right, delta: Buffer.alloc(0) }, /./],
  'a terabyte of copies': [{ ...right, delta: packed([{ bytes: none, from: 0, length: 2 ** 40 }]) }, /behind the end/],
  'a bomb of zeros': [
    { ...right, delta: packed([{ bytes: Buffer.alloc(30_000_000), from: 0, length: 0 }]) },
    /more than the 809 bytes/,
  ],
  'a bomb of copies': [
    { ...right, delta: packed(Array.from({ length: 10_000 }, () => ({ bytes: none, from: 0, length: 1000 }))) },
    /more than the 809 bytes/,
  ],
  'a window that a Pi has no memory for': [
    {
      ...right,
      delta: brotliCompressSync(Buffer.alloc(1000), {
        params: { [constants.BROTLI_PARAM_LARGE_WINDOW]: 1, [constants.BROTLI_PARAM_LGWIN]: 30 },
      }),
    },
    /./,
  ],
}
for (const [name, [given, why]] of Object.entries(refusals)) {
  test(`a delta with ${name} makes no archive, and leaves nothing`, async (t) => {
    const { failure, archive, names } = await applied(given)
    t.match((failure as Error | undefined)?.message, why)
    t.equal(archive, undefined)
    t.same(names, ['delta'])
  })
}

test('an archive of 68 MiB is written in pieces while its delta of 4 MiB is read', async (t) => {
  const random = seededRandom(5)
  const noise = (length: number) => Buffer.from(Uint8Array.from({ length }, () => Math.floor(random() * 256)))
  const block = noise(2 ** 20)
  const parts = Array.from({ length: 64 }, (_, at) => ({ bytes: noise(2 ** 16), from: at, length: 2 ** 20 - 100 }))
  const whole = createHash('sha256')
  let size = 0
  for (const { bytes, from, length } of parts) {
    whole.update(bytes).update(block.subarray(from, from + length))
    size += bytes.length + length
  }
  const disk = powerCutDisk()
  for (const path of ['/', '/d']) await disk.makeFolder(path)
  const delta = packed(parts)
  await disk.write('/d/delta', delta, 0o600)
  let read = 0
  let written = 0
  let largest = 0
  let readAtFirst = 0
  let mostAhead = 0
  const counting = {
    ...disk,
    readPart: async (...part: Parameters<typeof disk.readPart>) => {
      const bytes = await disk.readPart(...part)
      read += bytes.length
      return bytes
    },
    append: async (_: string, content: Uint8Array) => {
      if (written === 0) readAtFirst = read
      mostAhead = Math.max(mostAhead, read / delta.length - written / size)
      written += content.length
      largest = Math.max(largest, content.length)
    },
  }
  await applyDelta({
    ...{
      disk: counting,
      base: archiveIn(block),
      delta: '/d/delta',
      to: '/d/archive',
      size,
      digest: whole.digest('hex'),
    },
  })
  t.equal(written, size)
  t.equal(read, delta.length)
  t.ok(largest <= 65_536, `pieces of at most ${largest} bytes`)
  t.ok(readAtFirst * 8 < delta.length, `${readAtFirst} of ${delta.length} bytes are read before the first is written`)
  t.ok(mostAhead < 1 / 8, `at most ${Math.round(mostAhead * 100)} % of the delta are read ahead`)
})
