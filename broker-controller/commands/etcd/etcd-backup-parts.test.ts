import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { ensureClusterInfo } from '../../assembly/bootstrap-objects.ts'
import { openEtcdStore } from '../../store/etcd/etcd-store.ts'
import { etcdUnderTest } from '../../testing/etcd-under-test.ts'
import { backupCommand, restoreCommand } from '../backup-command.ts'
import { adminSocket, adminSocketPath } from '../connection/admin-socket.ts'
import { entriesWith } from './etcd-backup-parts.ts'

const { url, place } = await etcdUnderTest()
const now = '2026-03-01T12:00:00Z'

/** The data directory of a controller whose store is in etcd and has a Secret. */
async function aController(t: Test) {
  // A short path: it has a socket in it.
  const folder = await mkdtemp(join(tmpdir(), 'etcd-backup-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const at = (name: string) => join(folder, name)
  const dataDir = at('data')
  const authority = await openAuthority(join(dataDir, 'authority'), clock.wallMs())
  const needs = { ...place(), secretsKeyFile: join(dataDir, 'secrets.key') }
  const { store } = await openEtcdStore(needs)
  t.teardown(() => store.close())
  const info = { server: 'https://a:6443', mqttPort: 8883, caHash: authority.hash, trusted: authority.trusted }
  await ensureClusterInfo({ store, clock }, info)
  const secret = await store.create('secrets', aSecret)
  const etcd = ['--etcd-servers', url, '--etcd-prefix', needs.prefix]
  return { at, dataDir, store, secret, needs, etcd, target: at('kept'), here: ['--data-dir', dataDir] }
}

test('a store in etcd is backed up with its authority, and restored below another prefix', {
  skip,
  timeout: 60_000,
}, async (t) => {
  const { at, dataDir, store, secret, needs, etcd, target, here } = await aController(t)
  const { code, printed } = await backingUp(target, ...here, ...etcd)
  t.equal(code, 0, printed)
  t.match(printed, /1 configmaps, 1 secrets, \d+ files of the authority/)
  t.match(printed, /keep a copy of .*secrets\.key elsewhere/)
  t.match(printed, /It has the objects below \/bramble\/test-\d+ in etcd as they were at revision \d+\.\n$/)
  t.equal((await stat(target)).mode & 0o777, 0o600)
  t.same((await readdir(dataDir)).sort(), ['authority', 'secrets.key'], 'nothing is left beside the keys')
  await store.close()

  const config = at('controller.yaml')
  const prefix = `${needs.prefix}-again`
  const fields = { apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration', etcdServers: [url] }
  await writeFile(config, JSON.stringify({ ...fields, etcdPrefix: prefix }))
  const used = await restoring(target, ...here, ...etcd, '--replace')
  t.match(used, { code: 1, printed: /in etcd is in use, by .*: choose another --etcd-prefix, or delete what is there/ })
  t.same((await readdir(dataDir)).sort(), ['authority', 'secrets.key'], 'it is as it was')
  t.match(await restoring(target, ...here, '--config', config), { code: 1, printed: /give --replace to move it aside/ })
  const restored = await restoring(target, ...here, '--config', config, '--replace')
  t.equal(restored.code, 0, restored.printed)
  t.match(restored.printed, /The objects are below \/bramble\/test-\d+-again in etcd at http.*, and verified/)
  t.match(restored.printed, /each other controller .* needs a copy of authority\/ and secrets\.key/)
  const [aside = ''] = (await readdir(dataDir)).filter((name) => name.startsWith('replaced-'))
  t.same((await readdir(dataDir)).sort(), ['authority', aside, 'secrets.key'])
  t.same((await readdir(join(dataDir, aside))).sort(), ['authority', 'secrets.key'])
  t.equal((await stat(join(dataDir, 'authority', 'ca.key'))).mode & 0o777, 0o600)
  const again = await openEtcdStore({ ...needs, prefix })
  t.equal(again.origin.acceptsCheckpoints, true)
  const { resourceVersion: _, ...metadata } = secret.metadata
  t.match(await again.store.get('secrets', aSecret.metadata), { data: aSecret.data, metadata })
  await again.store.close()
})

test('with a passphrase a backup of etcd needs no other file to be restored', {
  skip,
  timeout: 60_000,
}, async (t) => {
  const { at, dataDir, store, needs, etcd, target } = await aController(t)
  await writeFile(at('passphrase'), 'correct horse battery\n')
  const locked = ['--passphrase-file', at('passphrase')]
  const made = await backingUp(target, '--data-dir', dataDir, ...etcd, ...locked)
  t.equal(made.code, 0, made.printed)
  await store.close()
  const fresh = at('fresh')
  const elsewhere = ['--etcd-servers', url, '--etcd-prefix', `${needs.prefix}-fresh`]
  const restored = await restoring(target, '--data-dir', fresh, ...elsewhere, ...locked)
  t.equal(restored.code, 0, restored.printed)
  t.equal(await readFile(join(fresh, 'secrets.key'), 'utf8'), await readFile(needs.secretsKeyFile, 'utf8'))
})

test('a restore leaves files in the data directory that the settings of etcd name, but not those that it writes', async (t) => {
  const files = { caFile: '/data/etcd/ca.crt', certFile: '/data/authority/client.crt', keyFile: '/etc/client.key' }
  t.same(entriesWith({ servers: [], prefix: '/a', ...files }, '/data'), ['etcd'])
  const none = { caFile: undefined, certFile: undefined, keyFile: undefined }
  t.same(entriesWith({ servers: [], prefix: '/a', ...none }, '/data'), [])
})

test('the settings of etcd are those of the controller that runs on the data directory', { skip }, async (t) => {
  const { dataDir, needs, target, here } = await aController(t)
  const refuse = () => Promise.reject(new Error('not asked for'))
  const fields = { apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration' }
  const settings = () => JSON.stringify({ ...fields, etcdServers: [url], etcdPrefix: needs.prefix })
  const leaderStatus = () => ({ leads: true })
  const asked = { backup: refuse, reload: refuse, rotateSecretsKey: refuse, settings, leaderStatus, log: quietLog(t) }
  const socket = adminSocket({ path: adminSocketPath(dataDir), ...asked })
  await socket.listen()
  const stop = new AbortController()
  const running = socket.run(stop.signal)
  const { code, printed } = await backingUp(target, ...here)
  t.equal(code, 0, printed)
  t.match(printed, /1 secrets/)
  stop.abort()
  await running
})

test('a backup of etcd from a directory that is not that of a controller of the fleet is refused with the reason', {
  skip,
}, async (t) => {
  const { at, dataDir, etcd, target, here } = await aController(t)
  const refused = async (dir: string, ...more: readonly string[]) => {
    const { code, printed } = await backingUp(target, '--data-dir', dir, ...more)
    t.equal(code, 1)
    return printed
  }
  t.match(await refused(at('none'), ...etcd), /There is no authority in .*none.authority.*--data-dir/)
  t.match(await refused(at('none')), /There is no store\.db in .*none, .*For a store in etcd give --config/)
  t.match(await refused(dataDir, '--etcd-prefix', '/a'), /--etcd-prefix: \/a has no effect without servers of etcd/)
  t.match(await restoring(target, ...here, '--etcd-prefix', '/a'), {
    code: 1,
    printed: /\/a has no effect without servers/,
  })
  await cp(dataDir, at('other'), { recursive: true })
  await rm(join(at('other'), 'authority'), { recursive: true })
  await openAuthority(join(at('other'), 'authority'), clock.wallMs())
  t.match(await refused(at('other'), ...etcd), /The authority in .*other.authority is another one/)
  await writeFile(join(dataDir, 'store.db'), '')
  t.match(await refused(dataDir, ...etcd), /store\.db has the objects of this controller, and not etcd/)
  await rm(join(dataDir, 'store.db'))
  await mkdir(join(dataDir, 'restoring'))
  t.match(await refused(dataDir, ...etcd), /A restore into .* was interrupted/)
  await t.rejects(stat(target), { code: 'ENOENT' })
})

/** What the command printed to stdout and stderr. */
function backingUp(...argv: readonly string[]) {
  return printedBy(backupCommand, argv)
}

/** The same for `restore`. */
function restoring(...argv: readonly string[]) {
  return printedBy(restoreCommand, argv)
}

async function printedBy(command: typeof backupCommand, argv: readonly string[]) {
  let printed = ''
  const print = (text: string) => {
    printed += text
  }
  const needs = { stdout: print, stderr: print, signal: new AbortController().signal, nowMs: Date.parse(now) }
  return { code: await command(argv, { ...needs, version: '1.2.3' }), printed }
}

const aSecret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'db', namespace: 'default' },
  data: { password: 'aHVudGVyMg==' },
} as const
