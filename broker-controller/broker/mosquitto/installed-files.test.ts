import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { installServerFiles, sourceVersion } from './installed-files.ts'

const files = {
  'access-list': 'user a\n',
  'ca.crt': 'ca',
  'server.crt': 'crt',
  'server.key': 'key',
  'revoked.crl': 'crl',
}

test('what differs is copied, with the paths of the folder, and readable by its owner only', async (t) => {
  const folder = t.testdir({ source: files, target: {} })
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

test('errors name what is missing, and the remedy', async (t) => {
  const folder = t.testdir({ source: {}, target: {} })
  const [source, target] = [join(folder, 'source'), join(folder, 'target')]
  await t.rejects(installServerFiles(source, join(folder, 'none')), /There is no folder .*none: create it.*install -d/)
  await t.rejects(installServerFiles(source, target), /There is no .*source.*set mqttBroker in the configuration/)
  await chmod(target, 0o777)
  await t.rejects(installServerFiles(source, target), /Others can write into .*chmod go-w/)
})

/** Of their writing: what the access list names is there before it. */
function byOrder(a: string, b: string): number {
  const order = ['access-list', 'ca.crt', 'server.crt', 'server.key', 'revoked.crl']
  return order.indexOf(a) - order.indexOf(b)
}
