import { test } from 'tap'
import type { Described } from '../../../api/schema.ts'
import { mostPools } from '../../../api/storage/pools.ts'
import { type ConfiguredPool, configuredPools, keptFreeBytes, type PoolSettingsSchema } from './pool-settings.ts'

type Written = Described<typeof PoolSettingsSchema>
const disk = '3F333DF9-90A4-4DDA-8DD3-9485D27CEE36'
const gibibyte = 2 ** 30

function configured(...written: readonly Written[]) {
  const problems: string[] = []
  return { pools: configuredPools(written, problems), problems }
}
const problemsOf = (...written: readonly Written[]) => configured(...written).problems
const atFolder = (over: Partial<Written>): Written => ({ name: 'a', path: '/a', ...over })

test('a pool is a folder, without a slash at its end, or a disk in lower case', async (t) => {
  t.same(configured({ name: 'ssd', disk, reserve: '10%' }, { name: 'card', path: '/srv/pool/' }), {
    pools: [
      { name: 'ssd', place: { disk: disk.toLowerCase() }, reserve: { percent: 10 }, isDefault: true },
      { name: 'card', place: { path: '/srv/pool' }, reserve: undefined, isDefault: false },
    ],
    problems: [],
  })
  t.same(configured(), { pools: [], problems: [] })
})

test('the first pool is the default one unless another is', async (t) => {
  const defaults = (...written: readonly Written[]) => configured(...written).pools.map(({ isDefault }) => isDefault)
  t.same(defaults(atFolder({}), atFolder({ name: 'b', path: '/b' })), [true, false])
  t.same(defaults(atFolder({}), atFolder({ name: 'b', path: '/b', default: true })), [false, true])
  t.same(defaults(atFolder({ default: false })), [true])
  t.same(problemsOf(atFolder({ default: true }), atFolder({ name: 'b', path: '/b', default: true })), [
    'pools: a, b are all the default; only one may be',
  ])
})

test('a place is one of both, and a valid one', async (t) => {
  const either = 'pools[0]: give either path, a folder, or disk, the UUID of a file system'
  t.same(problemsOf({ name: 'a' }), [either])
  t.same(problemsOf(atFolder({ disk })), [either])
  for (const path of ['b', '', '/', '//', '/a/../b', '/a//b', '/a/./b', '/..', '/a\0b', `/${'x'.repeat(512)}`])
    t.same(
      problemsOf(atFolder({ path })),
      [`pools[0].path: ${JSON.stringify(path)} must be an absolute path of a folder, without . and ..`],
      JSON.stringify(path.slice(0, 20)),
    )
  for (const path of ['/a', '/..a', '/a b/', `/${'x'.repeat(511)}`])
    t.same(problemsOf(atFolder({ path })), [], JSON.stringify(path.slice(0, 20)))
  for (const wrong of ['', 'sda1', '/dev/sda1', 'ABCD-1234', `${disk}/..`, ` ${disk}`])
    t.same(problemsOf({ name: 'a', disk: wrong }), [
      `pools[0].disk: ${JSON.stringify(wrong)} must be the UUID of a file system ('lsblk -f' prints it)`,
    ])
})

test('what must stay free is a percentage below 100% or a quantity', async (t) => {
  const reserve = (written: string | number) => configured(atFolder({ reserve: written }))
  const good: readonly (readonly [string | number, ConfiguredPool['reserve']])[] = [
    ['0%', { percent: 0 }],
    ['2.5%', { percent: 2.5 }],
    ['99.9%', { percent: 99.9 }],
    ['2Gi', { bytes: 2 * gibibyte }],
    ['1500m', { bytes: 2 }],
    [0, { bytes: 0 }],
    [1024, { bytes: 1024 }],
  ]
  for (const [written, wanted] of good) {
    const { pools, problems } = reserve(written)
    t.same([pools[0]?.reserve, problems], [wanted, []], String(written))
  }
  for (const written of ['100%', '-5%', '5 %', '.5%', '%', '-1Gi', 'much', '', '8Ei'])
    t.same(reserve(written).problems, [
      `pools[0].reserve: "${written}" must be a percentage below 100% or a quantity (like 5% or 10Gi)`,
    ])
  t.match(reserve(-1).problems, [/^pools\[0\].reserve: -1 must be/])
})

test('pools differ in their names and places, and none is in another', async (t) => {
  t.match(problemsOf(atFolder({ name: 'A b' })), [/^pools\[0\].name: "A b" must be lower case/])
  t.match(problemsOf(atFolder({ name: disk.toLowerCase() })), [/must not be the ID of a pool$/])
  const pair = (one: Partial<Written>, other: Partial<Written>) =>
    problemsOf(atFolder(one), atFolder({ name: 'b', path: '/b', ...other }))
  t.same(pair({}, { name: 'a' }), ['pools[1].name: a is set twice'])
  const inside = 'pools[1]: b is at the place of a, or one is in the other'
  t.same(pair({}, { path: '/a/' }), [inside])
  t.same(pair({}, { path: '/a/b' }), [inside])
  t.same(pair({ path: '/b/a' }, {}), [inside])
  t.same(pair({ path: '/b-2' }, {}), [], 'beside it')
  t.same(problemsOf({ name: 'a', disk }, { name: 'b', disk: disk.toLowerCase() }), [inside])
  t.same(problemsOf({ name: 'a', disk }, atFolder({ name: 'b' })), [])
  t.same(problemsOf(atFolder({ default: true }), atFolder({ path: '/a/b', default: true })), [
    'pools: a, a are all the default; only one may be',
    'pools[1].name: a is set twice',
    'pools[1]: a is at the place of a, or one is in the other',
  ])
})

test('one pool is left for the data directory', async (t) => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ name: `p${index}`, path: `/p${index}` }))
  t.same(problemsOf(...many(mostPools - 1)), [])
  t.same(problemsOf(...many(mostPools)), [`pools: at most ${mostPools - 1} are possible`])
})

test('5 % of a disk stay free, at least 1 GiB, and of a small one a fifth', async (t) => {
  const usual = [1, 5, 10, 20, 100].map((gibibytes) => keptFreeBytes(undefined, gibibytes * gibibyte) / gibibyte)
  t.same(usual, [0.2, 1, 1, 1, 5])
  t.equal(keptFreeBytes({ bytes: 7 }, 100), 7)
  t.equal(keptFreeBytes({ percent: 2.5 }, 1000), 25)
})
