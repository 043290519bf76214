import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { isRoot, skipWithout } from '../../../../test/support/missing-parts.ts'
import { testVolumes } from '../../../../test/support/volumes.ts'
import { mountMemory, unmount } from '../mounts.ts'
import { diskTrash, knownStores } from './disk-trash.ts'
import { type VolumePool, volumePool } from './pool.ts'
import { poolFilesOfMachine } from './pool-files.ts'
import { dataPool, type VolumePools } from './pools.ts'

const skip = skipWithout('root', isRoot())
const day = 24 * 3600_000
const signal = new AbortController().signal
const volume = { uid: 'uid-pv', path: '/made/for/default_data_pvc-1', claim: 'default/data', claimUID: 'uid-claim' }

async function aPool(t: Test) {
  const data = await mkdtemp(join(tmpdir(), 'bt-'))
  t.teardown(() => rm(data, { recursive: true, force: true }))
  const pool = volumePool(dataPool(data), poolFilesOfMachine())
  const { id, path } = await pool.open()
  const order: NodeVolumeOrder = {
    ...{ kind: 'trash', volume: 'pvc-1', uid: 'uid-pv', pool: id, folder: 'default_data_pvc-1' },
    ...{ claim: 'default/data', claimUID: 'uid-claim' },
  }
  const made = async () => {
    const folder = await pool.folder({ ...volume, pool: id, hasGroup: false })
    await writeFile(join(folder, 'file'), 'precious')
    return folder
  }
  const inTrash = join(path, '.bramble/trash/uid-pv')
  return { data, pool, id, path, order, made, inTrash, trash: pool.trash }
}

const onePool = (pool: VolumePool): Pick<VolumePools, 'open'> => ({
  open: async () => [{ pool, state: await pool.open() }],
})

test('a volume is moved to the trash with what it was, once', async (t) => {
  const { pool, path, order, made, inTrash, trash, id } = await aPool(t)
  const folder = await made()
  await pool.discard(order)
  await t.rejects(stat(folder), { code: 'ENOENT' })
  t.equal(await readFile(join(inTrash, 'data/file'), 'utf8'), 'precious')
  t.same(await trash.list(), [
    {
      ...{ uid: 'uid-pv', volume: 'pvc-1', folder: 'default_data_pvc-1', keptSeconds: 0 },
      ...{ claim: 'default/data', claimUID: 'uid-claim' },
    },
  ])
  t.equal((await stat(join(path, '.bramble/trash'))).mode & 0o777, 0o700)
  await pool.discard(order)
  t.equal(await readFile(join(inTrash, 'data/file'), 'utf8'), 'precious', 'the order came again')
  await t.rejects(pool.folder({ ...volume, pool: id, hasGroup: false }), {
    message: /^its data is in the trash of the pool/,
  })
})

test('an agent that ended between two steps goes on', async (t) => {
  const { pool, path, order, made, inTrash } = await aPool(t)
  const folder = await made()
  const record = join(path, '.bramble/volumes/uid-pv.json')
  const written = await readFile(record, 'utf8')
  await mkdir(inTrash, { recursive: true })
  await pool.discard(order)
  t.equal(await readFile(join(inTrash, 'data/file'), 'utf8'), 'precious', 'before the rename')
  await writeFile(record, written)
  await pool.discard(order)
  t.equal(await readFile(join(inTrash, 'data/file'), 'utf8'), 'precious', 'after the rename')
  await t.rejects(stat(record), { code: 'ENOENT' })
  await mkdir(folder)
  await pool.discard(order)
  await t.rejects(stat(folder), { code: 'ENOENT' }, 'an empty folder without a record was not used yet')
})

test('a volume whose PersistentVolume was created again is moved by its order, and not by that of the one before', async (t) => {
  const { pool, order, made, trash, id, path } = await aPool(t)
  const folder = await made()
  await t.rejects(pool.discard({ ...order, uid: 'uid-again', claimUID: 'uid-other' }), { message: /has used it since/ })
  await pool.folder({ ...volume, uid: 'uid-again', pool: id, hasGroup: false })
  const before = JSON.stringify({ ...volume, uid: 'uid-pv', folder: order.folder })
  await writeFile(join(path, '.bramble/volumes/uid-pv.json'), before)
  await t.rejects(pool.discard(order), {
    message: /the volume uid-again of the claim default\/data has the same folder/,
  })
  t.equal(await readFile(join(folder, 'file'), 'utf8'), 'precious')
  await rm(join(path, '.bramble/volumes/uid-again.json'))
  await pool.discard({ ...order, uid: 'uid-again' })
  t.match(await trash.list(), [{ uid: 'uid-again', folder: order.folder }], 'no pod had mounted it since')
  t.same(await readdir(join(path, '.bramble/volumes')), [])
})

test('what is not proven to be the volume of the order stays', async (t) => {
  const { pool, path, order, made, trash } = await aPool(t)
  const folder = await made()
  const stays = async (part: Partial<NodeVolumeOrder>, message: RegExp) => {
    await t.rejects(pool.discard({ ...order, ...part }), { name: 'VolumeError', message })
    t.equal(await readFile(join(folder, 'file'), 'utf8'), 'precious')
    t.same(await trash.list(), [])
  }
  await stays({ claimUID: 'uid-other' }, /a pod of the claim default\/data has used it since/)
  await stays({ pool: '22222222-2222-4222-8222-222222222222' }, /is not on this machine/)
  await stays({ uid: 'uid-2', claimUID: 'uid-claim-2' }, /a pod of the claim default\/data has used it since/)
  const { claimUID: _, ...unclaimed } = order
  await t.rejects(pool.discard({ ...unclaimed, uid: 'uid-2' }), { message: /its folder is that of the volume uid-pv/ })
  await rename(join(path, '.bramble/volumes/uid-pv.json'), join(path, 'record'))
  await stays({}, /no record of the pool names its volume/)
  await rename(join(path, 'record'), join(path, '.bramble/volumes/uid-pv.json'))
  await stays({ folder: 'other' }, /the folder of the volume is default_data_pvc-1$/)
  await rename(folder, `${folder}.kept`)
  await symlink('/', folder)
  await t.rejects(pool.discard(order), { message: /is not a folder$/ })
  await rm(folder)
  await rename(`${folder}.kept`, folder)
  await writeFile(join(path, '.bramble/volumes/uid-pv.json'), 'torn')
  await stays({}, /is not the record of a volume/)
})

test('nothing is moved or copied to another file system', { skip }, async (t) => {
  const { pool, order, made, trash } = await aPool(t)
  const folder = await made()
  await mountMemory(folder, [])
  t.teardown(() => unmount(folder))
  await writeFile(join(folder, 'file'), 'mounted')
  await t.rejects(pool.discard(order), { message: /cannot be moved to the trash of its pool: E(BUSY|XDEV)$/ })
  t.equal(await readFile(join(folder, 'file'), 'utf8'), 'mounted')
  t.same(await trash.list(), [])
})

test('the trash is emptied after seven days of the running agent, or when the pool is full', async (t) => {
  const { pool, order, made, inTrash, trash, id } = await aPool(t)
  const room = (availableBytes: number) => async () => ({ capacityBytes: 2 ** 40, availableBytes })
  await made()
  await pool.discard(order)
  await trash.age(7 * day - 1000, room(2 ** 39), signal)
  t.ok((await stat(join(inTrash, 'data'))).isDirectory())
  await trash.age(0, room(2 ** 39), signal)
  t.match(await trash.list(), [{ keptSeconds: 7 * 24 * 3600 - 1 }])
  await trash.age(1000, room(2 ** 39), signal)
  await t.rejects(stat(inTrash), { code: 'ENOENT' })
  await pool.folder({ ...volume, pool: id, hasGroup: false })
  await pool.discard(order)
  await trash.age(0, room(0), signal)
  t.same(await trash.list(), [])
})

test('a volume that a pod has stays, also where another volume has the folder', { skip }, async (t) => {
  const { store, dataDirectory } = await testVolumes(t)
  await mkdir(dataDirectory)
  const { id, path } = await volumePool(dataPool(dataDirectory), poolFilesOfMachine()).open()
  const wanted = {
    name: 'data',
    kind: 'claim',
    volume: 'pvc-1',
    source: 'local',
    type: '',
    isForOnePod: false,
  } as const
  const folder = await store.place('pod-1', { ...wanted, ...volume, pool: id })
  const order = { kind: 'trash', volume: 'pvc-1', uid: 'uid-pv', pool: id, folder: 'default_data_pvc-1' }
  await t.rejects(store.trash.discard(order), { message: 'the pod with the UID pod-1 has it mounted' })
  await store.remove('pod-1')
  await store.place('pod-2', { ...wanted, uid: 'static', claim: 'default/b', path: folder })
  await t.rejects(store.trash.discard(order), { message: 'the pod with the UID pod-2 has it mounted' })
  await store.remove('pod-2')
  await store.trash.discard(order)
  t.same(await readdir(path), ['.bramble'])
})

test('a volume that names a folder in the trash takes it back, with another uid only', async (t) => {
  const { pool, order, made, inTrash, trash, id } = await aPool(t)
  const folder = await made()
  await pool.discard(order)
  const again = { ...volume, uid: 'uid-2', claim: 'default/again', claimUID: 'uid-claim-2', pool: id, hasGroup: false }
  await t.rejects(pool.folder({ ...again, uid: 'uid-pv' }), { message: /^its data is in the trash/ })
  t.equal(await pool.folder(again), folder)
  t.equal(await readFile(join(folder, 'file'), 'utf8'), 'precious')
  t.same(await trash.list(), [])
  await t.rejects(stat(inTrash), { code: 'ENOENT' })
  await t.rejects(pool.discard(order), { message: /a pod of the claim default\/again has used it since/ })
  t.equal(await readFile(join(folder, 'file'), 'utf8'), 'precious', 'the order was for the volume before')
  await pool.discard({ ...order, uid: 'uid-2', claim: 'default/again', claimUID: 'uid-claim-2' })
  t.match(await trash.list(), [{ uid: 'uid-2', claim: 'default/again' }])
  await rename(join(folder, '../.bramble/trash/uid-2/data'), join(folder, '../.bramble/trash/uid-2/removing'))
  t.equal(await trash.restore('default_data_pvc-1'), false, 'a half of it is not restored')
  await trash.age(8 * day, async () => undefined, signal)
  t.same(await trash.list(), [])
})

test('what is in the trash is reported, the latest first, and measured', async (t) => {
  const { pool, made, order, path, id, trash } = await aPool(t)
  const contents = diskTrash({ pools: onePool(pool), discard: pool.discard })
  t.same(await contents.trashed(), [])
  await writeFile(join(await made(), 'large'), Buffer.alloc(100_000))
  await pool.discard({ ...order, capacity: '5Gi', storageClass: 'disks', keepSeconds: 3600 })
  await trash.age(1000_000, async () => undefined, signal)
  await mkdir(join(path, '.bramble/trash/uid-torn'))
  const [torn, known] = await contents.trashed()
  t.match(torn, { uid: 'uid-torn', folder: '', keptSeconds: 0, keepSeconds: 7 * 24 * 3600 })
  t.same(
    { ...known, usedBytes: 0 },
    {
      ...{ uid: 'uid-pv', pool: id, volume: 'pvc-1', folder: 'default_data_pvc-1', claim: 'default/data' },
      ...{ capacity: '5Gi', storageClass: 'disks', keptSeconds: 1000, keepSeconds: 3600, usedBytes: 0 },
    },
  )
  const [, measured] = await contents.trashed()
  t.ok((measured?.usedBytes ?? 0) >= 100_000)
  await trash.age(3600_000, async () => undefined, signal)
  t.same(
    (await contents.trashed()).map(({ uid }) => uid),
    ['uid-torn'],
  )
})

test('no folder is made in the place of data that is gone', async (t) => {
  const { pool, order, made, trash, id } = await aPool(t)
  await made()
  await pool.discard(order)
  const again = { ...volume, uid: 'uid-2', pool: id, hasData: true, hasGroup: false }
  const elsewhere = { ...again, path: '/made/for/default_data_pvc-2' }
  await t.rejects(pool.folder(elsewhere), { message: /pvc-2 is missing, and not in the trash of the pool/ })
  await trash.age(8 * day, async () => undefined, signal)
  await t.rejects(pool.folder(again), { message: /is missing, and not in the trash/ })
  await t.rejects(stat(join((await pool.open()).path, 'default_data_pvc-1')), { code: 'ENOENT' })
})

test('the sizes of the pool and of its volumes are measured', async (t) => {
  const { pool, made, order, id } = await aPool(t)
  const trash = diskTrash({ pools: onePool(pool), discard: pool.discard })
  t.equal(await trash.isEmpty(), true)
  await writeFile(join(await made(), 'large'), Buffer.alloc(100_000))
  t.equal(await trash.isEmpty(), false)
  const [found] = await trash.volumeUsage()
  t.match(found, { uid: 'uid-pv', claim: 'default/data', pool: id })
  t.ok((found?.usedBytes ?? 0) >= 100_000)
  const [usage] = await trash.poolUsage()
  t.equal(usage?.id, id)
  t.ok((usage?.capacityBytes ?? 0) > 0)
  await trash.discard(order)
  t.same(await trash.volumeUsage(), [])
  t.equal((await trash.poolUsage())[0]?.inTrash, 1)
  t.equal(await trash.isEmpty(), false)
})

test('the stores that were obeyed are kept; a damaged file has none', async (t) => {
  const { data } = await aPool(t)
  const stores = knownStores(data, poolFilesOfMachine())
  t.same(await stores.load(), [])
  await stores.save(['a', 'b'])
  t.same(await knownStores(data, poolFilesOfMachine()).load(), ['a', 'b'])
  await writeFile(join(data, 'stores.json'), '{')
  t.same(await stores.load(), [])
})
