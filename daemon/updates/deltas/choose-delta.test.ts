import { test } from 'tap'
import type { ReleaseArchive } from '../release-manifest.ts'
import { deltaFileName, usableDeltas } from './choose-delta.ts'

const [one, two, three, nothing, own] = ['1', '2', '3', 'e', 'a'].map((digit) => digit.repeat(64))
if (!one || !two || !three || !nothing || !own) throw new Error('No digests')
const delta = (base: string, size: number) => ({ base, size, sha256: own })
const archive: ReleaseArchive = {
  size: 1000,
  sha256: own,
  deltas: [delta(nothing, 400), delta(one, 50), delta(two, 20), delta(three, 10)],
}

const cases: readonly (readonly [name: string, bases: readonly string[], have: number, sizes: readonly number[]])[] = [
  ['the smallest first, of the bases that are here', [nothing, one, two], 0, [20, 50, 400]],
  ['none without a base', [], 0, []],
  ['none that is larger than what is left of the archive', [nothing, one], 700, [50]],
  ['none for an archive that is nearly whole', [nothing, one, two, three], 990, []],
]
for (const [name, bases, have, sizes] of cases) {
  test(`deltas are tried: ${name}`, async (t) => {
    t.same(
      usableDeltas(archive, new Set(bases), have).map(({ size }) => size),
      sizes,
    )
  })
}

test('what is signed and cannot be a delta is left out', async (t) => {
  const bases = new Set([one, '../x'])
  for (const wrong of [
    delta('../x', 10),
    delta(one, 0),
    delta(one, -1),
    delta(one, 1000),
    { ...delta(one, 10), sha256: 'x' },
  ])
    t.same(usableDeltas({ ...archive, deltas: [wrong] }, bases, 0), [])
  t.same(usableDeltas({ size: 1000, sha256: own }, bases, 0), [], 'an earlier release.json has none')
})

test('the file of a delta is named after its release and its base', async (t) => {
  const release = { program: 'bramble-agent', version: '1.5.0' }
  t.equal(deltaFileName(release, 'arm64', { base: one }), 'bramble-agent_1.5.0_arm64.from-1111111111111111.delta')
})
