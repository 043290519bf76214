import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { isRoot, skipWithout } from '../../../../test/support/missing-parts.ts'
import { testVolumes } from '../../../../test/support/volumes.ts'
import { mountMemory, unmount } from '../mounts.ts'
import { volumePool } from './pool.ts'
import { poolFilesOfMachine } from './pool-files.ts'
import { dataPool } from './pools.ts'

const skip = skipWithout('root', isRoot())
const volume = {
  uid: 'uid-pv',
  path: '/old/place/default_data_pvc-1',
  claim: 'default/data',
  claimUID: 'uid-claim',
  hasGroup: false,
}

async function aPool(t: Parameters<typeof testVolumes>[0]) {
  const { folder } = await testVolumes(t)
  const pool = () => volumePool(dataPool(folder), poolFilesOfMachine())
  const { id } = await pool().open()
  return { folder, path: join(folder, 'volumes'), id, pool }
}

test('the pool of a machine', { skip }, async (t) => {
  t.test('has an identity, which stays', async (t) => {
    const { id, path, pool } = await aPool(t)
    t.same(await pool().open(), { id, path })
    t.match(id, /^[0-9a-f-]{36}$/)
  })

  t.test('makes the folder of a volume once, and writes down whose it is', async (t) => {
    const { id, path, pool } = await aPool(t)
    const made = await pool().folder({ ...volume, pool: id })
    t.equal(made, join(path, 'default_data_pvc-1'))
    t.equal((await stat(made)).mode & 0o7777, 0o777)
    const record = JSON.parse(await readFile(join(path, '.bramble/volumes/uid-pv.json'), 'utf8'))
    t.same(record, { uid: 'uid-pv', claim: 'default/data', claimUID: 'uid-claim', folder: 'default_data_pvc-1' })
    await writeFile(join(made, 'file'), '')
    t.equal(await pool().folder({ ...volume, pool: id }), made)
    t.same(await readdir(made), ['file'])
    const owned = await pool().folder({ ...volume, pool: id, uid: 'uid-2', path: '/x/b', hasGroup: true })
    t.equal((await stat(owned)).mode & 0o7777, 0o770)
  })

  t.test('does not make the folder again for data that is missing', async (t) => {
    const { id, pool } = await aPool(t)
    await rm(await pool().folder({ ...volume, pool: id }), { recursive: true })
    await t.rejects(pool().folder({ ...volume, pool: id }), {
      name: 'VolumeError',
      message: /was made before and is missing/,
    })
  })

  t.test('remembers a folder that an agent made before it ended', async (t) => {
    const { id, path, pool } = await aPool(t)
    const folder = await pool().folder({ ...volume, pool: id })
    await rm(join(path, '.bramble/volumes/uid-pv.json'))
    t.equal(await pool().folder({ ...volume, pool: id }), folder)
    await rm(folder, { recursive: true })
    await t.rejects(pool().folder({ ...volume, pool: id }), { message: /was made before and is missing/ })
  })

  t.test('has one record for a folder, also when its PersistentVolume was created again', async (t) => {
    const { id, path, pool } = await aPool(t)
    const folder = await pool().folder({ ...volume, pool: id })
    t.equal(await pool().folder({ ...volume, pool: id, uid: 'uid-again' }), folder)
    t.same(await readdir(join(path, '.bramble/volumes')), ['uid-again.json'])
    await rm(folder, { recursive: true })
    await t.rejects(pool().folder({ ...volume, pool: id, uid: 'uid-third' }), {
      message: /was made before and is missing/,
    })
    await writeFile(join(path, '.bramble/volumes/torn.json'), '{')
    const other = { ...volume, pool: id, uid: 'uid-other', path: '/x/default_other_pvc-2' }
    t.equal(await pool().folder(other), join(path, 'default_other_pvc-2'), 'a torn record stops its own volume only')
  })

  t.test('makes no folder where it cannot read whether it made one, or something else is there', async (t) => {
    const { id, path, pool } = await aPool(t)
    await mkdir(join(path, '.bramble/volumes/uid-pv.json'), { recursive: true })
    await t.rejects(pool().folder({ ...volume, pool: id }), { message: /uid-pv\.json cannot be read: EISDIR$/ })
    await symlink('/etc', join(path, 'link'))
    await t.rejects(pool().folder({ ...volume, pool: id, uid: 'uid-2', path: '/link' }), {
      message: /is not a folder$/,
    })
    t.same((await readdir(path)).sort(), ['.bramble', 'link'])
  })

  t.test('gives no pod its own folder, nor what is outside', async (t) => {
    const { id, pool } = await aPool(t)
    for (const wrong of ['/', '/pool/..', '/pool/.', '/pool/.bramble']) {
      await t.rejects(
        pool().folder({ ...volume, pool: id, path: wrong }),
        { message: /^Not a path of a volume/ },
        wrong,
      )
    }
  })

  t.test('is missing while its disk is not mounted, and no folder is made in its place', async (t) => {
    const { id, path, pool } = await aPool(t)
    await rename(path, `${path}.disk`)
    await t.rejects(pool().open(), {
      message: /^the pool .* is not at .*: its identity is missing\. Mount its disk there$/,
    })
    await mkdir(path)
    await t.rejects(pool().folder({ ...volume, pool: id }), { message: /its identity is missing/ })
    t.same(await readdir(path), [])
    await rm(path, { recursive: true })
    await rename(`${path}.disk`, path)
    t.same(await pool().open(), { id, path })
  })

  t.test('is not another disk at the same path', async (t) => {
    const { id, path, pool } = await aPool(t)
    await pool().folder({ ...volume, pool: id })
    const other = '00000000-0000-4000-8000-000000000000'
    await writeFile(join(path, '.bramble/pool.json'), JSON.stringify({ id: other }))
    await t.rejects(pool().folder({ ...volume, pool: id }), { message: new RegExp(`pool ${other} is there`) })
    await writeFile(join(path, '.bramble/pool.json'), 'torn')
    await t.rejects(pool().open(), { message: /is not the identity of a pool$/ })
  })

  t.test('is a disk from another machine, with its identity, where none was before', async (t) => {
    const { id, path } = await aPool(t)
    const { folder } = await testVolumes(t)
    await mkdir(folder, { recursive: true })
    await rename(path, join(folder, 'volumes'))
    t.equal((await volumePool(dataPool(folder), poolFilesOfMachine()).open()).id, id)
  })

  t.test('is a disk that is mounted later, if no volume was made before, and then no other one', async (t) => {
    const disk = await aPool(t)
    await writeFile(join(await disk.pool().folder({ ...volume, pool: disk.id }), 'file'), 'precious')
    const { folder, path, id, pool } = await aPool(t)
    t.not(id, disk.id)
    await rename(path, `${path}.own`)
    await rename(disk.path, path)
    t.same(await pool().open(), { id: disk.id, path })
    t.equal(await readFile(join(await pool().folder({ ...volume, pool: disk.id }), 'file'), 'utf8'), 'precious')
    await rename(path, `${path}.disk`)
    await rename(`${path}.own`, path)
    await t.rejects(volumePool(dataPool(folder), poolFilesOfMachine()).open(), {
      message: new RegExp(`the pool ${disk.id} is not at`),
    })
  })

  t.test('is an empty disk that is mounted later, if no volume was made before', async (t) => {
    const { path, pool, id } = await aPool(t)
    await mountMemory(path, ['size=1m'])
    t.teardown(() => unmount(path))
    const { id: onDisk } = await pool().open()
    t.not(onDisk, id)
    await pool().folder({ ...volume, pool: onDisk })
    await unmount(path)
    await t.rejects(pool().open(), { message: new RegExp(`pool ${onDisk} is not at .*: pool ${id} is there`) })
    await mountMemory(path, ['size=1m'])
    await t.rejects(pool().open(), { message: /its identity is missing/ }, 'another empty disk, and data is missing')
  })

  t.test('is missing, also if it has no volumes, while nothing is mounted', async (t) => {
    const { path, pool } = await aPool(t)
    await rename(path, `${path}.disk`)
    await t.rejects(pool().open(), { message: /its identity is missing/ })
  })

  t.test('is not a folder with other files', async (t) => {
    const { folder } = await testVolumes(t)
    await mkdir(join(folder, 'volumes'))
    await writeFile(join(folder, 'volumes/photo'), '')
    await t.rejects(volumePool(dataPool(folder), poolFilesOfMachine()).open(), {
      message: /has files and no identity of a pool$/,
    })
  })

  t.test('is not asked for a volume of another pool', async (t) => {
    const { pool } = await aPool(t)
    await t.rejects(pool().folder({ ...volume, pool: 'other' }), { message: /^the pool other is not on this machine/ })
  })
})
