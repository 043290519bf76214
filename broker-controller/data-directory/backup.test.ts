import { X509Certificate } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chown, cp, mkdir, mkdtemp, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { systemClock as clock } from '../../daemon/clock.ts'
import { removeUnfinished } from '../../daemon/durable-file.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { isRoot, skipWithout } from '../../test/support/missing-parts.ts'
import { backupCommand, restoreCommand } from '../commands/backup-command.ts'
import {
  adminSocket,
  adminSocketPath,
  requestBackup,
  requestSecretsKeyRotation,
} from '../commands/connection/admin-socket.ts'
import { frontProxy } from '../own-certificates/front-proxy.ts'
import { revocationsIn, revocationsKey, revoke } from '../store/revocations.ts'
import { readBackup, sealBackup } from '../store/sqlite/sqlite-backup.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { giveToOwner, keepBackup, makeBackup, restore, unfinishedRestore } from './backup.ts'

const now = '2026-03-01T12:00:00Z'
const authority = { 'ca.key': 'a key', 'ca.crt': 'a certificate' }

test('a backup of a running controller holds every answered write and its authority, and others go on writing', async (t) => {
  const { store, target, take, write } = await controller(t)
  await write('before')
  const [backup] = await Promise.all([take(), write('meanwhile')])
  t.same([...backup.authority].map(([name, body]) => [name, body.toString()]).sort(), Object.entries(authority).sort())
  t.ok((backup.counts.get('configmaps') ?? 0) >= 1)
  t.match(backup, { made: now, version: '1.2.3' })
  t.equal((await stat(target)).mode & 0o777, 0o600)
  t.equal((await store.list('configmaps')).items.length, 2)
})

test('a restored store is another one that learns, and gives no version twice', async (t) => {
  const { origin, target, take, write, folder } = await controller(t)
  await write('kept')
  await take()
  const lost = await write('lost')
  const fresh = join(folder, 'fresh')
  const { aside } = await restore(target, fresh, false, now)
  t.equal(aside, undefined)
  t.equal(await readFile(join(fresh, 'authority', 'ca.key'), 'utf8'), 'a key')
  t.equal((await stat(join(fresh, 'authority', 'ca.key'))).mode & 0o777, 0o600)
  t.equal((await stat(join(fresh, 'store.db'))).mode & 0o777, 0o600)
  const { store: restored, origin: restoredOrigin } = await openSqliteStore({
    path: join(fresh, 'store.db'),
    clock,
    log: quietLog(t),
  })
  t.teardown(() => restored.close())
  const { items } = await restored.list('configmaps')
  t.same(
    items.map(({ metadata }) => metadata.name),
    ['kept'],
  )
  t.not(restoredOrigin.id, origin.id)
  t.same([origin.acceptsCheckpoints, restoredOrigin.acceptsCheckpoints], [false, true])
  const { resourceVersion } = (await restored.create('configmaps', aMap('new'))).metadata
  t.ok(Number(resourceVersion) > Number(lost.metadata.resourceVersion))
})

test('a clock behind the backup sets no begin of the restored store', async (t) => {
  const { target, take, folder } = await controller(t)
  const sinceMs = async (made: string) => {
    await take(made)
    const dataDir = join(folder, made)
    await restore(target, dataDir, false, now)
    await rm(target)
    const restored = await openSqliteStore({ path: join(dataDir, 'store.db'), clock, log: quietLog(t) })
    await restored.store.close()
    return restored.origin.sinceMs
  }
  t.type(await sinceMs('2000-01-01T00:00:00Z'), 'number')
  t.equal(await sinceMs('2999-01-01T00:00:00Z'), undefined)
})

test('present state is moved aside only with --replace, and none of it is lost', async (t) => {
  const { target, take, folder } = await controller(t)
  await take()
  const other = join(folder, 'other')
  await mkdir(other)
  await writeFile(join(other, 'store.db'), 'precious')
  await t.rejects(restore(target, other, false, now), { message: /store\.db.*give --replace to move it aside/ })
  const { aside } = await restore(target, other, true, now)
  t.equal(await readFile(join(aside ?? '', 'store.db'), 'utf8'), 'precious')
  t.equal(await unfinishedRestore(other), undefined)
  await mkdir(join(other, 'restoring'))
  t.match(await unfinishedRestore(other), /interrupted: run it again/)
  await restore(target, other, true, '2026-03-01T12:00:01Z')
  t.equal(await unfinishedRestore(other), undefined)
})

test('a controller that never had a node is replaced without a warning, and without a promise about revocations', async (t) => {
  const { target, take, folder } = await controller(t)
  await take()
  const fresh = join(folder, 'fresh')
  const start = async () => {
    const { store } = await openSqliteStore({ path: join(fresh, 'store.db'), clock, log: quietLog(t) })
    await mkdir(join(fresh, 'authority'), { recursive: true })
    await writeFile(join(fresh, 'authority', 'ca.crt'), 'another')
    return store
  }
  await mkdir(fresh)
  await (await start()).close()
  t.match(await restore(target, fresh, true, now), { otherAuthority: false, revocations: undefined })
  await rm(fresh, { recursive: true })
  await mkdir(fresh)
  const used = await start()
  await used.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } })
  await used.close()
  t.match(await restore(target, fresh, true, now), { otherAuthority: true, revocations: 'kept' })
})

test('what was revoked since the backup stays revoked, also when the restore was broken off, and an unreadable list is reported', async (t) => {
  const { store, target, take, dataDir, folder } = await controller(t)
  await revoke({ store, clock }, 'system:node:before', 'Stolen')
  await take()
  await revoke({ store, clock }, 'system:node:since', 'NodeDeleted')
  await store.close()
  const revokedIn = async (dir: string) => {
    const { store: opened } = await openSqliteStore({ path: join(dir, 'store.db'), clock, log: quietLog(t) })
    const list = await opened.get('configmaps', revocationsKey)
    await opened.close()
    return [...revocationsIn(list).keys()].sort()
  }
  const both = ['system:node:before', 'system:node:since']
  const moved = join(folder, 'moved')
  await cp(dataDir, join(moved, 'replaced-before'), { recursive: true })
  await mkdir(join(moved, 'restoring'))
  t.equal((await restore(target, moved, true, now)).revocations, 'kept')
  t.same(await revokedIn(moved), both)
  t.equal((await restore(target, dataDir, true, now)).revocations, 'kept')
  t.same(await revokedIn(dataDir), both)
  const spoiled = join(folder, 'spoiled')
  await mkdir(spoiled)
  await writeFile(join(spoiled, 'store.db'), 'no database at all'.repeat(300))
  t.match((await restore(target, spoiled, true, now)).revocations, { unreadable: /store\.db: .*not a database/ })
  t.same(await revokedIn(spoiled), ['system:node:before'])
})

test('a backup whose authority has a file outside of its folder is refused', async (t) => {
  const folder = testFolder(t)
  for (const [index, name] of ['../../outside', '/etc/outside', '..', '', 'a\\b'].entries()) {
    const path = join(folder, `prepared-${index}`)
    const { store } = await openSqliteStore({ path, clock, log: quietLog(t) })
    await store.close()
    sealBackup(path, now, '0.1.0', new Map([[name, Buffer.from('x')]]))
    t.throws(() => readBackup(path), {
      cause: { message: `It has a file of the authority named ${JSON.stringify(name)}` },
    })
  }
})

test('a backup that was broken off leaves no key behind at the next start', async (t) => {
  const { dataDir, make } = await controller(t)
  const made = await make()
  await writeFile(`${made}-journal`, '')
  t.equal((await stat(made)).mode & 0o777, 0o600)
  await removeUnfinished(dataDir)
  t.same(
    (await readdir(dataDir)).filter((name) => !name.startsWith('store.db')),
    ['authority'],
  )
})

test('nothing of an unfinished write is in a backup, and nothing that may be a key is for others', async (t) => {
  const { dataDir, target, take, folder } = await controller(t)
  await writeFile(join(dataDir, 'authority', 'next.key.abcdef.new'), 'half a key')
  await writeFile(join(dataDir, 'authority', 'ca.key.before'), 'a key')
  await take()
  const fresh = join(folder, 'fresh')
  await restore(target, fresh, false, now)
  t.same((await readdir(join(fresh, 'authority'))).sort(), ['ca.crt', 'ca.key', 'ca.key.before'])
  t.equal((await stat(join(fresh, 'authority', 'ca.key.before'))).mode & 0o777, 0o600)
})

test('a restored controller is the front proxy that extension servers trust', async (t) => {
  const { dataDir, target, take, folder } = await controller(t)
  const { certificate } = await frontProxy({ dataDir, clock }).authority()
  await take()
  const fresh = join(folder, 'fresh')
  await restore(target, fresh, false, now)
  const restored = frontProxy({ dataDir: fresh, clock })
  t.equal((await restored.authority()).certificate, certificate)
  const client = new X509Certificate((await restored.client()).certificate)
  t.ok(client.verify(new X509Certificate(certificate).publicKey))
  t.equal((await stat(join(fresh, 'authority', 'front-proxy-ca.key'))).mode & 0o777, 0o600)
})

test('a backup is not written through a link that somebody put in its place', async (t) => {
  const { target, take, folder } = await controller(t)
  const other = join(folder, 'of another')
  await writeFile(other, 'precious')
  await symlink(other, `${target}.part`)
  await take()
  t.equal(await readFile(other, 'utf8'), 'precious')
})

test('a backup with one bit turned, or half of one, is refused with what is wrong', async (t) => {
  const { target, take, write, folder } = await controller(t)
  await write('some', 'x'.repeat(20_000))
  await take()
  const whole = await readFile(target)
  const at = whole.indexOf('x'.repeat(1000)) + 500
  const turned = Buffer.from(whole)
  turned[at] = (turned[at] ?? 0) ^ 1
  const damaged = join(folder, 'damaged')
  for (const [content, because] of [
    [turned, /The digest does not match the content/],
    [whole.subarray(0, whole.length / 2), /SQLite finds|malformed|disk image/],
    [Buffer.from('no database at all'.repeat(300)), /not a database/],
  ] as const) {
    await writeFile(damaged, content)
    const error = await Promise.resolve()
      .then(() => readBackup(damaged))
      .catch((caught: Error) => caught)
    t.match(error, { message: `${damaged} is not a complete backup of a controller` })
    t.match((error as Error).cause, { message: because })
  }
  t.same(
    (await readdir(folder)).filter((name) => name.endsWith('.part') || name.endsWith('.backup')),
    [],
  )
})

test('an authority other than that of the backup is reported, with what to do', async (t) => {
  const { target, take, folder } = await controller(t)
  await take()
  const [same, other] = [join(folder, 'same'), join(folder, 'other')]
  for (const [dir, text] of [
    [same, authority['ca.crt']],
    [other, 'of another'],
  ] as const) {
    await mkdir(join(dir, 'authority'), { recursive: true })
    await writeFile(join(dir, 'authority', 'ca.crt'), text)
  }
  t.notMatch((await restoring(target, '--data-dir', same, '--replace')).printed, /not that of the backup/)
  const { code, printed } = await restoring(target, '--data-dir', other, '--replace')
  t.equal(code, 0)
  t.match(printed, /not that of the backup.*\n.*replace .*other\/authority with .*replaced-.*authority/)
})

test('a backup that is not there is named', async (t) => {
  const { code, printed } = await restoring('/nowhere.backup', '--data-dir', join(await temporaryFolder(t), 'fresh'))
  t.equal(code, 1)
  t.match(printed, /no such file.*\/nowhere\.backup/)
})

test('a store in use is not restored over', async (t) => {
  const { target, take, folder } = await controller(t)
  await take()
  const { code, printed } = await restoring(target, '--data-dir', join(folder, 'data'), '--replace')
  t.equal(code, 1)
  t.match(printed, /A controller uses .*: stop it first/)
})

test('a backup that cannot be written where it shall be leaves nothing behind', async (t) => {
  const { target, take } = await controller(t)
  await writeFile(target, 'older')
  await t.rejects(take(), { message: `${target} exists: give another name, or remove it` })
  t.equal(await readFile(target, 'utf8'), 'older')
  await t.rejects(open(`${target}.part`), { code: 'ENOENT' })
})

test('what root makes becomes the owner’s, whatever leads to the directory or out of it', {
  skip: skipWithout('root', isRoot()),
}, async (t) => {
  const folder = await temporaryFolder(t)
  const [dataDir, link, outside] = ['data', 'link', 'outside'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  for (const path of [join(dataDir, 'authority'), outside]) await mkdir(path, { recursive: true })
  for (const path of [join(dataDir, 'authority', 'ca.key'), join(outside, 'file')]) await writeFile(path, '')
  await symlink(dataDir, link)
  await symlink(outside, join(dataDir, 'leads-out'))
  await chown(dataDir, 12_345, 12_345)
  await giveToOwner(link)
  t.equal((await stat(join(dataDir, 'authority', 'ca.key'))).uid, 12_345)
  t.equal((await stat(join(outside, 'file'))).uid, 0)
})

test('an admin socket that nothing serves is not an error; a failure of the controller is reported', async (t) => {
  const folder = await temporaryFolder(t)
  t.equal(await requestBackup(adminSocketPath(folder), new AbortController().signal), undefined)
  const stop = new AbortController()
  const log = quietLog(t)
  const refuse = () => Promise.reject(new Error('the disk is full'))
  const socket = adminSocket({
    path: adminSocketPath(folder),
    backup: refuse,
    reload: refuse,
    rotateSecretsKey: refuse,
    settings: () => '{}',
    leaderStatus: () => ({ leads: true }),
    log,
  })
  await socket.listen()
  const running = socket.run(stop.signal)
  t.equal((await stat(adminSocketPath(folder))).mode & 0o777, 0o600)
  await t.rejects(requestBackup(adminSocketPath(folder), stop.signal), { message: 'the disk is full' })
  t.same(log.messages('warn'), ['Backup failed'])
  await t.rejects(requestSecretsKeyRotation(adminSocketPath(folder), stop.signal), { message: 'the disk is full' })
  stop.abort()
  await running
})

test('with a passphrase a backup has its keys, none readable, and is restored with the passphrase only', async (t) => {
  const { store, dataDir, folder, target } = await controller(t, { secrets: true })
  const secret = await store.create('secrets', aSecret)
  const passphraseFile = join(folder, 'passphrase')
  await writeFile(passphraseFile, 'correct horse battery\n')
  const { certificate } = await frontProxy({ dataDir, clock }).authority()
  const proxyKey = await readFile(join(dataDir, 'authority', 'front-proxy-ca.key'), 'utf8')
  await store.close()
  const { code, printed } = await backingUp(target, '--data-dir', dataDir, '--passphrase-file', passphraseFile)
  t.equal(code, 0, printed)
  t.match(printed, /can be read with the passphrase only/)
  const content = await readFile(target)
  const [key = ''] = (await readFile(join(dataDir, 'secrets.key'), 'utf8')).split('\n')
  const secrets = ['aHVudGVyMg==', 'a key', key, Buffer.from(key, 'base64'), proxyKey]
  for (const hidden of secrets) t.notOk(content.includes(hidden))
  t.ok(content.includes('a certificate'))

  const fresh = join(folder, 'fresh')
  const without = await restoring(target, '--data-dir', fresh)
  t.equal(without.code, 1)
  t.match(without.printed, /The private keys in .*kept are encrypted: give --passphrase-file/)
  await writeFile(join(folder, 'wrong'), 'correct horse battery?\n')
  const wrong = await restoring(target, '--data-dir', fresh, '--passphrase-file', join(folder, 'wrong'))
  t.equal(wrong.code, 1)
  t.match(wrong.printed, /The passphrase is not that of the backup/)
  t.equal((await restoring(target, '--data-dir', fresh, '--passphrase-file', passphraseFile)).code, 0)
  t.equal(await readFile(join(fresh, 'authority', 'ca.key'), 'utf8'), 'a key')
  t.equal((await stat(join(fresh, 'secrets.key'))).mode & 0o777, 0o600)
  const files = ['ca.crt', 'ca.key', 'front-proxy-ca.crt', 'front-proxy-ca.key']
  t.same((await readdir(join(fresh, 'authority'))).sort(), files)
  t.equal((await frontProxy({ dataDir: fresh, clock }).authority()).certificate, certificate)
  t.same(await secretIn(t, fresh), secret)
})

test('without a passphrase the key of Secrets is not in a backup: it is taken from its place, a copy, or done without', async (t) => {
  const { store, dataDir, folder, target } = await controller(t, { secrets: true })
  const secret = await store.create('secrets', aSecret)
  await store.close()
  const { printed } = await backingUp(target, '--data-dir', dataDir)
  t.match(printed, /Its Secrets are encrypted with key [0-9a-f]{16}, which is not in it: keep a copy of .*secrets\.key/)
  const content = await readFile(target)
  const keyFile = join(dataDir, 'secrets.key')
  const [key = ''] = (await readFile(keyFile, 'utf8')).split('\n')
  for (const hidden of ['aHVudGVyMg==', key, Buffer.from(key, 'base64')]) t.notOk(content.includes(hidden))

  const [fresh, bare] = [join(folder, 'fresh'), join(folder, 'bare')]
  const refused = await restoring(target, '--data-dir', fresh)
  t.equal(refused.code, 1)
  t.match(refused.printed, /which is not in .*secrets\.key: give --secrets-key .* or --without-secrets/)
  await t.rejects(stat(fresh), { code: 'ENOENT' }, 'nothing was changed')
  t.equal((await restoring(target, '--data-dir', fresh, '--secrets-key', keyFile)).code, 0)
  t.same(await secretIn(t, fresh), secret)
  t.equal((await restoring(target, '--data-dir', dataDir, '--replace')).code, 0, 'the key in its place is used')
  t.same(await secretIn(t, dataDir), secret)
  t.equal((await restoring(target, '--data-dir', bare, '--without-secrets')).code, 0)
  t.equal(await secretIn(t, bare), undefined)
})

test('a restore without a passphrase that was broken off finds the key where it was moved to', async (t) => {
  const { store, dataDir, folder, target } = await controller(t, { secrets: true })
  const secret = await store.create('secrets', aSecret)
  await store.close()
  await backingUp(target, '--data-dir', dataDir)
  const broken = join(folder, 'broken')
  await cp(dataDir, join(broken, 'replaced-before'), { recursive: true })
  t.equal((await restoring(target, '--data-dir', broken, '--replace')).code, 1)
  await mkdir(join(broken, 'restoring'))
  t.equal((await restoring(target, '--data-dir', broken, '--replace')).code, 0)
  t.same(await secretIn(t, broken), secret)
})

test('a passphrase that is too short is refused, and one that cannot be read is named', async (t) => {
  const { dataDir, folder, target, store } = await controller(t)
  await store.close()
  const file = join(folder, 'passphrase')
  for (const [text, length] of [
    ['', 0],
    ['elevenchars\nmore text', 11],
  ] as const) {
    await writeFile(file, text)
    const { code, printed } = await backingUp(target, '--data-dir', dataDir, '--passphrase-file', file)
    t.equal(code, 1)
    t.match(printed, new RegExp(`has ${length} characters: its first line must have 12 or more`))
  }
  await writeFile(file, 'twelve chars')
  t.equal((await backingUp(target, '--data-dir', dataDir, '--passphrase-file', file)).code, 0)
  t.match(
    (await backingUp('x', '--passphrase-file', join(folder, 'none'))).printed,
    /Cannot read the passphrase in .*none/,
  )
})

test('a running controller is backed up with a passphrase, and nothing plain is left beside its store', async (t) => {
  const { store, dataDir, folder, target, make } = await controller(t, { secrets: true })
  await store.create('secrets', aSecret)
  const stop = new AbortController()
  const refuse = () => Promise.reject(new Error('not asked for'))
  const needs = {
    backup: make,
    reload: refuse,
    rotateSecretsKey: refuse,
    settings: () => '{}',
    leaderStatus: () => ({ leads: true }),
    log: quietLog(t),
  }
  const socket = adminSocket({ path: adminSocketPath(dataDir), ...needs })
  await socket.listen()
  const running = socket.run(stop.signal)
  await writeFile(join(folder, 'passphrase'), 'correct horse battery')
  const { code, printed } = await backingUp(
    target,
    '--data-dir',
    dataDir,
    '--passphrase-file',
    join(folder, 'passphrase'),
  )
  t.equal(code, 0, printed)
  t.same(
    (await readdir(dataDir)).filter((name) => name.startsWith('backup')),
    [],
  )
  t.notOk((await readFile(target)).includes('a key'))
  stop.abort()
  await running
})

test('a mistyped option is reported in a sentence', async (t) => {
  const { code, printed } = await restoring('file', '--replase')
  t.equal(code, 64)
  t.match(printed, /^Unknown option '--replase'\.\nTry 'bramble-controller restore --help'\.\n$/)
})

/** What the command printed to stdout and stderr. */
async function restoring(...argv: readonly string[]) {
  let printed = ''
  const print = (text: string) => {
    printed += text
  }
  const code = await restoreCommand(argv, {
    stdout: print,
    stderr: print,
    signal: new AbortController().signal,
    nowMs: Date.parse(now),
    version: '1.2.3',
  })
  return { code, printed }
}

/** The same for `backup`. */
async function backingUp(...argv: readonly string[]) {
  let printed = ''
  const print = (text: string) => {
    printed += text
  }
  const needs = { stdout: print, stderr: print, signal: new AbortController().signal, nowMs: Date.parse(now) }
  return { code: await backupCommand(argv, { ...needs, version: '1.2.3' }), printed }
}

const aSecret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'db', namespace: 'default' },
  data: { password: 'aHVudGVyMg==' },
} as const

async function secretIn(t: Test, dataDir: string) {
  const secretsKeyFile = join(dataDir, 'secrets.key')
  const { store } = await openSqliteStore({ path: join(dataDir, 'store.db'), secretsKeyFile, clock, log: quietLog(t) })
  const found = await store.get('secrets', aSecret.metadata)
  await store.close()
  return found
}

async function controller(t: Test, { secrets = false } = {}) {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'data')
  await mkdir(join(dataDir, 'authority'), { recursive: true })
  for (const [name, text] of Object.entries(authority)) await writeFile(join(dataDir, 'authority', name), text)
  const { store, origin, backUp } = await openSqliteStore({
    path: join(dataDir, 'store.db'),
    clock,
    log: quietLog(t),
    ...(secrets && { secretsKeyFile: join(dataDir, 'secrets.key') }),
  })
  t.teardown(() => store.close())
  const target = join(folder, 'kept')
  const make = (at = now) => makeBackup({ dataDir, backUp, now: at, version: '1.2.3' }, 'one')
  return {
    store,
    origin,
    folder,
    dataDir,
    target,
    make,
    write: (name: string, text = 'text') => store.create('configmaps', aMap(name, text)),
    async take(at?: string) {
      const made = await make(at)
      try {
        return await keepBackup(createReadStream(made), target)
      } finally {
        await rm(made)
      }
    },
  }
}

async function temporaryFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'backup-'))
  t.teardown(() => rm(folder, { recursive: true }))
  return folder
}

function aMap(name: string, text = 'text') {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { text } } as const
}
