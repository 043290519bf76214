import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { ConfiguredPool } from '../../../pods/volumes/pool-settings.ts'
import { diskTrash } from './disk-trash.ts'
import { poolFilesOfMachine } from './pool-files.ts'
import { volumePools } from './pools.ts'

const volume = { uid: 'uid-pv', path: '/made/for/default_data_pvc-1', claim: 'default/data', hasGroup: false }
const at = (name: string, path: string, more: Partial<ConfiguredPool> = {}): ConfiguredPool => ({
  ...{ name, place: { path }, reserve: undefined, isDefault: name === 'card' },
  ...more,
})

/** A machine with the folders `card` and `ssd`. */
async function aMachine(t: Test) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'vp-')))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [dataDirectory, memoryDirectory] = [join(folder, 'data'), join(folder, 'memory')]
  const [card, ssd] = [join(folder, 'card'), join(folder, 'ssd')]
  for (const path of [dataDirectory, card, ssd]) await mkdir(path)
  const pools = (...configured: readonly ConfiguredPool[]) =>
    volumePools(configured, { dataDirectory, memoryDirectory }, poolFilesOfMachine())
  const states = async (all: ReturnType<typeof pools>) => (await all.open()).map(({ state }) => state)
  const idsOf = async (all: ReturnType<typeof pools>) =>
    (await states(all)).map((state) => ('id' in state ? state.id : state.missing))
  return { folder, dataDirectory, card, ssd, pools, states, idsOf }
}

test('each configured pool has its identity and its name, and one is the default one', async (t) => {
  const { pools, states, card, ssd } = await aMachine(t)
  const both = pools(at('card', card), at('ssd', ssd))
  const [first, second] = await states(both)
  t.match(first, { name: 'card', path: card, default: true })
  t.match(second, { name: 'ssd', path: ssd })
  t.notOk(second !== undefined && 'default' in second)
  t.same(await states(pools(at('card', card), at('ssd', ssd))), [first, second], 'also after a restart')
})

test('a volume is made in its pool, and goes to the trash of that one', async (t) => {
  const { pools, idsOf, card, ssd } = await aMachine(t)
  const both = pools(at('card', card), at('ssd', ssd))
  const [inCard = '', inSSD = ''] = await idsOf(both)
  const folder = await both.folder({ ...volume, pool: inSSD })
  t.equal(folder, join(ssd, 'default_data_pvc-1'))
  const order = { kind: 'trash', volume: 'pvc-1', uid: 'uid-pv', pool: inSSD, folder: 'default_data_pvc-1' }
  await both.discard({ ...order, pool: inCard })
  t.ok((await stat(folder)).isDirectory(), 'an order for another pool')
  await both.discard(order)
  t.same(await readdir(join(ssd, '.bramble/trash')), ['uid-pv'])
  await t.rejects(both.folder({ ...volume, pool: 'elsewhere' }), {
    message: `the pool elsewhere is not on this machine, which has the pools ${inCard}, ${inSSD}`,
  })
})

test('a configured folder that is missing is not made, and the other pools are there', async (t) => {
  const { pools, states, card, folder } = await aMachine(t)
  const missing = join(folder, 'not-mounted')
  t.match(await states(pools(at('card', card), at('ssd', missing))), [
    { path: card },
    { name: 'ssd', missing: `the folder ${missing} does not exist` },
  ])
  await t.rejects(stat(missing), { code: 'ENOENT' })
})

test('a disk that is removed stops its own volumes only, with its reason', async (t) => {
  const { pools, idsOf, card, ssd } = await aMachine(t)
  const both = pools(at('card', card), at('ssd', ssd))
  const [inCard = '', inSSD = ''] = await idsOf(both)
  await both.folder({ ...volume, pool: inSSD })
  await rename(ssd, `${ssd}.removed`)
  await mkdir(ssd)
  await t.rejects(both.folder({ ...volume, pool: inSSD }), { message: /^the pool .* is not at .*ssd: its identity is/ })
  t.same(await readdir(ssd), [])
  t.equal(await both.folder({ ...volume, uid: 'uid-2', pool: inCard }), join(card, 'default_data_pvc-1'))
  await rm(ssd, { recursive: true })
  await rename(`${ssd}.removed`, ssd)
  t.same(await idsOf(both), [inCard, inSSD])
})

test('a copy of a pool on the same machine is not used, also while the pool itself is missing', async (t) => {
  const { pools, states, card, ssd } = await aMachine(t)
  await states(pools(at('card', card)))
  await cp(card, ssd, { recursive: true })
  const both = pools(at('card', card), at('ssd', ssd))
  const copy = { name: 'ssd', missing: `${ssd} has the identity of the pool at ${card}: one is a copy of the other` }
  t.match(await states(both), [{ path: card }, copy])
  await rename(card, `${card}.removed`)
  t.match(await states(both), [{ missing: /is not at/ }, copy])
})

test('volumes that were made before pools were configured stay, and none are made beside them', async (t) => {
  const { pools, states, idsOf, card, dataDirectory } = await aMachine(t)
  const [before = ''] = await idsOf(pools())
  t.match(await states(pools(at('card', card))), [{ name: 'card' }], 'no volume was made')
  await writeFile(join(await pools().folder({ ...volume, pool: before }), 'file'), 'precious')
  const [, earlier, ...none] = await states(pools(at('card', card)))
  t.same([earlier, none], [{ id: before, path: join(dataDirectory, 'volumes'), default: false }, []])
  const folder = await pools(at('card', card)).folder({ ...volume, pool: before })
  t.equal(await readFile(join(folder, 'file'), 'utf8'), 'precious')
  const named = await states(pools(at('card', card), at('data', join(dataDirectory, 'volumes'))))
  t.match(named, [{ name: 'card' }, { id: before, name: 'data' }])
  await rm(card, { recursive: true })
  await rename(join(dataDirectory, 'volumes'), card)
  t.match(await states(pools(at('ssd', card))), [{ id: before, name: 'ssd' }], 'its disk is configured now')
})

test('the pools are measured and emptied each for itself, by the reserve of each', async (t) => {
  const { pools, idsOf, card, ssd } = await aMachine(t)
  const both = pools(at('card', card), at('ssd', ssd, { reserve: { percent: 60 } }))
  const [inCard = '', inSSD = ''] = await idsOf(both)
  let availableBytes = 50
  const usage = async () => ({ capacityBytes: 100, availableBytes, usedBytes: 0, inodes: 0, inodesFree: 0 })
  const trash = diskTrash({ pools: both, discard: both.discard, usage })
  t.equal(await trash.isEmpty(), true)
  for (const [index, pool] of [inCard, inSSD].entries()) {
    const made = { ...volume, uid: `uid-${index}`, path: `/p/v-${index}`, pool }
    await both.folder(made)
    await both.discard({ kind: 'trash', volume: 'v', uid: `uid-${index}`, pool, folder: `v-${index}` })
  }
  t.same(
    (await trash.poolUsage()).map(({ id, inTrash }) => [id, inTrash]),
    [
      [inCard, 1],
      [inSSD, 1],
    ],
  )
  t.match(trash.poolStates(), [
    { id: inCard, full: undefined },
    { id: inSSD, full: true },
  ])
  t.same(
    (await trash.trashed()).map(({ pool }) => pool),
    [inCard, inSSD],
  )
  await trash.age(0, new AbortController().signal)
  t.same(
    (await trash.trashed()).map(({ pool }) => pool),
    [inCard],
    'the other one has less free than its reserve',
  )
  availableBytes = 63
  await trash.poolUsage()
  t.match(trash.poolStates()[1], { full: true }, 'it does not alternate')
  availableBytes = 67
  await trash.poolUsage()
  t.notOk('full' in (trash.poolStates()[1] ?? {}))
})
