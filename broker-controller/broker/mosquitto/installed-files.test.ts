import { chmod, chown, lstat, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { installServerFiles, sourceVersion } from './installed-files.ts'

const isRoot = process.getuid?.() === 0

const files = {
  'access-list': 'user a\n',
  'ca.crt': 'ca',
  'server.crt': 'crt',
  'server.key': 'key',
  'revoked.crl': 'crl',
  'openssl.cnf': 'cnf',
}

test('what differs is copied, with the paths of the folder, and readable by its owner only', async (t) => {
  const folder = testFolder(t, { source: files, target: {} })
  const [source, target] = [join(folder, 'source'), join(folder, 'target')]
  await writeFile(join(source, 'bramble.conf'), `acl_file ${source}/access-list\n`)
  const before = await sourceVersion(source)
  t.same(await installServerFiles(source, target), [...Object.keys(files).sort(byOrder), 'bramble.conf'])
  t.equal(await readFile(join(target, 'bramble.conf'), 'utf8'), `acl_file ${target}/access-list\n`)
  t.equal((await stat(join(target, 'server.key'))).mode & 0o777, 0o600)
  t.same(await installServerFiles(source, target), [], 'nothing changed')
  t.equal(await sourceVersion(source), before)
  await writeFile(join(source, 'access-list'), 'user a\nuser b\n')
  t.not(await sourceVersion(source), before)
  t.same(await installServerFiles(source, target), ['access-list'])
})

test('a server that puts a link into its folder gets no file of another owner', { skip: !isRoot }, async (t) => {
  const folder = testFolder(t, { source: { ...files, 'bramble.conf': '' }, target: {}, victim: 'secret' })
  const [target, victim] = [join(folder, 'target'), join(folder, 'victim')]
  await chown(target, 65_534, 65_534)
  for (const name of ['access-list', `access-list.${process.pid}.new`]) await symlink(victim, join(target, name))
  await installServerFiles(join(folder, 'source'), target)
  t.equal(await readFile(victim, 'utf8'), 'secret')
  t.equal((await stat(victim)).uid, 0)
  t.equal((await lstat(join(target, 'access-list'))).uid, 65_534)
})

test('errors name what is missing, and the remedy', async (t) => {
  const folder = testFolder(t, { source: {}, target: {} })
  const [source, target] = [join(folder, 'source'), join(folder, 'target')]
  await t.rejects(installServerFiles(source, join(folder, 'none')), /There is no folder .*none: create it.*install -d/)
  await t.rejects(installServerFiles(source, target), /There is no .*source.*set mqttBroker in the configuration/)
  await chmod(target, 0o777)
  await t.rejects(installServerFiles(source, target), /Others can write into .*chmod go-w/)
})

/** The order in which files are written: what the access list names comes before it. */
function byOrder(a: string, b: string): number {
  const order = ['access-list', 'ca.crt', 'server.crt', 'server.key', 'revoked.crl', 'openssl.cnf']
  return order.indexOf(a) - order.indexOf(b)
}
