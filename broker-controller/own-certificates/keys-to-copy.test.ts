import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { openBackupKeys } from './backup-keys.ts'
import { frontProxy } from './front-proxy.ts'
import { makeKeysToCopy } from './keys-to-copy.ts'

function controller(t: Test, dataDir: string, atMs: number) {
  const log = quietLog(t)
  const proxy = frontProxy({ dataDir, clock: fakeClock(atMs) })
  const backupKeys = () => openBackupKeys(dataDir, new Date(atMs).toISOString())
  return { log, proxyAuthority: proxy.authority, backupKeys }
}

test('all keys are there once it resolves, and a second time they stay as they are', async (t) => {
  const dataDir = testFolder(t)
  const needs = controller(t, dataDir, Date.UTC(2026, 5, 1))
  await makeKeysToCopy(needs)
  const { recipient } = await needs.backupKeys()
  const { certificate } = await needs.proxyAuthority()
  t.same(readdirSync(join(dataDir, 'authority')).sort(), ['backup.key', 'front-proxy-ca.crt', 'front-proxy-ca.key'])
  const again = controller(t, dataDir, Date.UTC(2026, 5, 2))
  await makeKeysToCopy(again)
  t.equal((await again.backupKeys()).recipient, recipient)
  t.equal((await again.proxyAuthority()).certificate, certificate)
  t.same(
    [needs, again].flatMap(({ log }) => log.messages('warn')),
    [],
  )
})

test('a clock that is wrong keeps one of them away, which is logged, and no other', async (t) => {
  const dataDir = testFolder(t)
  const needs = controller(t, dataDir, 0)
  await makeKeysToCopy(needs)
  t.same(readdirSync(join(dataDir, 'authority')), ['backup.key'])
  t.same(needs.log.messages('warn'), ['A key is not there: copies of the authority folder that are made now lack it'])
})
