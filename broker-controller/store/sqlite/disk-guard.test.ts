import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { t, test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { removeUnfinished } from '../../../daemon/durable-file.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { diskGuard } from './disk-guard.ts'
import { type DiskReserve, diskReserve, reserveBytes } from './disk-reserve.ts'
import { openSqliteFile } from './sqlite-file.ts'
import { openSqliteStore } from './sqlite-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'disk-guard-'))
t.teardown(() => rmSync(folder, { recursive: true }))

const mebibyte = 2 ** 20

/** A disk with this much space, on which a reserve is or is not. */
function aDisk(freeMebibytes: number, isHeld = true) {
  const disk = { free: freeMebibytes * mebibyte, isHeld }
  const reserve: DiskReserve = {
    folder: '/data',
    freeBytes: () => disk.free,
    isHeld: () => disk.isHeld,
    release() {
      if (!disk.isHeld) return false
      disk.isHeld = false
      disk.free += reserveBytes
      return true
    },
    take: async () => undefined,
  }
  return { disk, reserve }
}

const noPages = () => 0

test('a write that finds the disk full is repeated once without the reserve', (t) => {
  const { disk, reserve } = aDisk(0)
  const guard = diskGuard({ reserve, clock, log: quietLog(t) })
  const full = new Database.SqliteError('database or disk is full', 'SQLITE_FULL')
  const write = () => {
    if (disk.isHeld) throw full
    return 'written'
  }
  t.equal(guard.write(write), 'written')
  t.equal(disk.isHeld, false)
  let calls = 0
  const fails = () => {
    calls += 1
    throw full
  }
  t.throws(() => guard.write(fails), full)
  t.equal(calls, 1, 'there is no second reserve')
  t.end()
})

test('another failure costs no reserve', (t) => {
  const { disk, reserve } = aDisk(0)
  const guard = diskGuard({ reserve, clock, log: quietLog(t) })
  const fails = () => {
    throw new Database.SqliteError('constraint failed', 'SQLITE_CONSTRAINT')
  }
  t.throws(() => guard.write(fails), { message: 'constraint failed' })
  t.equal(disk.isHeld, true)
  t.end()
})

test('a start on a full disk gives up the reserve, one with space does not', (t) => {
  for (const [free, isHeld] of [
    [3, false],
    [4, true],
  ] as const) {
    const { disk, reserve } = aDisk(free)
    diskGuard({ reserve, clock, log: quietLog(t) }).prepareStart()
    t.equal(disk.isHeld, isHeld)
  }
  t.end()
})

test('growth is refused by a reading of the disk, which is repeated before a refusal', (t) => {
  const { disk, reserve } = aDisk(1000)
  const guard = diskGuard({ reserve, clock, log: quietLog(t) })
  const admit = (mebibytes: number) => guard.admit(() => 'large', mebibytes * mebibyte, noPages)
  admit(1)
  disk.free = 8 * mebibyte
  t.throws(() => admit(500), { reason: 'InsufficientStorage', message: /^The disk of \/data has 8.0 MiB free/ })
  disk.free = 2000 * mebibyte
  admit(500)
  t.end()
})

test('the reserve is a file with blocks, is there again for the next process, and is given up as a whole', async (t) => {
  const path = join(folder, 'store.reserve')
  const reserve = diskReserve(path)
  t.equal(reserve.isHeld(), false)
  t.equal(reserve.release(), false)
  await reserve.take()
  const { size, blocks, mode } = statSync(path)
  t.equal(size, reserveBytes)
  t.ok(blocks * 512 >= reserveBytes)
  t.equal(mode & 0o777, 0o600)
  t.equal(diskReserve(path).isHeld(), true)
  t.equal(reserve.release(), true)
  t.notOk(existsSync(path) || reserve.isHeld())
})

test('a store whose disk is full refuses creations with 507, and accepts deletions and statuses', async (t) => {
  const path = join(folder, 'small.db')
  const reserveFile = join(folder, 'small.reserve')
  await diskReserve(reserveFile).take()
  const { store } = await openSqliteStore({ path, reserveFile, clock, log: quietLog(t), freeBytes: () => 6 * mebibyte })
  t.teardown(() => store.close())
  const large: ConfigMap = {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'a', name: 'large' } },
    data: { text: 'x'.repeat(mebibyte) },
  }
  await t.rejects(store.create('configmaps', large), { code: 507, message: /free: objects cannot be created or grow/ })
  const small = await store.create('configmaps', { ...large, data: { text: 'x'.repeat(1000) } })
  await t.rejects(store.update('configmaps', { ...small, data: large.data ?? {} }), { code: 507 })
  await store.delete('configmaps', { namespace: 'a', name: 'large' })
})

test('pages that deletions left free in the file are counted', (t) => {
  const file = openSqliteFile(join(folder, 'pages.db'))
  t.teardown(() => file.close())
  const row = { resource: 'configmaps', namespace: 'a', name: 'b', version: 1 }
  file.write([{ ...row, body: 'x'.repeat(mebibyte) }])
  const before = file.freePages()
  file.write([{ ...row, body: null }])
  t.ok(file.freePages() - before > 0.9 * mebibyte)
  t.end()
})

test('what a power cut leaves of a reserve that is being written is removed at the next start', async (t) => {
  const own = mkdtempSync(join(folder, 'cut-'))
  const taken = diskReserve(join(own, 'store.reserve')).take()
  let unfinished: readonly string[] = []
  while (unfinished.length === 0) {
    await new Promise((resolve) => setImmediate(resolve))
    unfinished = readdirSync(own)
  }
  await taken
  for (const name of unfinished) writeFileSync(join(own, name), '')
  await removeUnfinished(own)
  t.same(readdirSync(own), ['store.reserve'])
})
