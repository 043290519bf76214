import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { archivesOfRelease, type PackedProgram, writeDeltas } from './release-deltas.ts'

const text = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => `function f${from + at}(){return ${(from + at) * 7919}}\n`).join('')
const packed = (version: string, content: string | Uint8Array, arch = 'arm64'): PackedProgram => ({
  ...{ program: 'bramble-agent', version, arch, archive: Buffer.from(content) },
})
const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
const one = packed('1.4.0', text(0, 2000))
const two = packed('1.5.0', text(0, 900) + text(5000, 5010) + text(910, 2000))

test('a release has a delta from each earlier one of its architecture, and the compressed archive', async (t) => {
  const out = t.testdir()
  const others = [packed('1.4.0', text(3, 1999), 'amd64'), { ...one, program: 'bramble-controller' }, two]
  const deltas = await writeDeltas(two, [one, one, ...others], out)
  t.same(
    deltas.map(({ base, baseVersion }) => [base, baseVersion]),
    [
      [sha256(Buffer.alloc(0)), undefined],
      [sha256(one.archive), '1.4.0'],
    ],
  )
  t.equal(readdirSync(out).length, 2)
  for (const { base, size, sha256: digest } of deltas) {
    const file = readFileSync(join(out, `bramble-agent_1.5.0_arm64.from-${base.slice(0, 16)}.delta`))
    t.same([file.length, sha256(file)], [size, digest])
    t.ok(size < two.archive.length)
  }
})

test('what is not smaller than the archive is left out', async (t) => {
  const random = packed('1.6.0', createHash('sha512').update('x').digest())
  t.same(await writeDeltas(random, [one], t.testdir()), [])
})

test('the archives of an earlier release are read from its folder, and must be those of its release.json', async (t) => {
  const folder = join(t.testdir(), 'release')
  mkdirSync(folder)
  const archives = { arm64: { size: one.archive.length, sha256: sha256(one.archive) } }
  writeFileSync(join(folder, 'release.json'), JSON.stringify({ program: one.program, version: one.version, archives }))
  const path = join(folder, 'bramble-agent_1.4.0_arm64.tar')
  writeFileSync(path, one.archive)
  t.same(archivesOfRelease(folder), [one])
  writeFileSync(path, 'x')
  t.throws(() => archivesOfRelease(folder), { message: /is not the archive that its release\.json names/ })
})
