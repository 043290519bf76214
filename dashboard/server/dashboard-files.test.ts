import { rename } from 'node:fs/promises'
import { gunzipSync, gzipSync } from 'node:zlib'
import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { dashboardFiles } from './dashboard-files.ts'

const none = { acceptEncoding: undefined, ifNoneMatch: undefined }

test('the files of the page are served compressed, with a policy, and are kept by browsers', async (t) => {
  const script = 'console.log(1)'
  const folder = testFolder(t, {
    'index.html': '<!doctype html>',
    'main-ABC.js': script,
    'main-ABC.js.gz': gzipSync(script),
    'secret.key': 'x',
  })
  const files = dashboardFiles(folder, quietLog(t))
  const index = await files.answer('index.html', none)
  t.match(index, { code: 200, headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' } })
  const policy = index?.kind === 'plain' ? (index.headers['content-security-policy'] ?? '') : ''
  t.match(policy, "default-src 'none'")
  t.match(policy, "script-src 'self';")
  t.match(policy, "frame-ancestors 'none'")
  t.notMatch(policy, 'unsafe')
  const zipped = await files.answer('main-ABC.js', { ...none, acceptEncoding: 'gzip, br' })
  if (zipped?.kind !== 'plain') return t.fail('no answer with bytes')
  t.equal(gunzipSync(zipped.bytes).toString(), script)
  t.match(zipped.headers, { 'content-encoding': 'gzip', 'cache-control': /immutable/, vary: 'Accept-Encoding' })
  const plain = await files.answer('main-ABC.js', none)
  t.equal(plain?.kind === 'plain' && plain.bytes.toString(), script)
  const etag = zipped.headers['etag'] ?? ''
  t.match(await files.answer('main-ABC.js', { ...none, ifNoneMatch: etag }), { code: 304 })
})

test('nothing else of the disk is served', async (t) => {
  const folder = testFolder(t, { page: { 'index.html': 'x', 'a.js.gz': 'x', 'secret.key': 'x' }, 'other.js': 'x' })
  const files = dashboardFiles(`${folder}/page`, quietLog(t))
  for (const name of ['../other.js', '..%2fother.js', 'secret.key', 'a.js.gz', 'missing.js', '']) {
    t.equal(await files.answer(name, none), undefined, name)
  }
})

test('a file that is missing during an upgrade is served again when it is there', async (t) => {
  const folder = testFolder(t, { 'index.html': 'x', 'main-ABC.js': 'y' })
  const log = quietLog(t)
  const files = dashboardFiles(folder, log)
  t.match(await files.answer('index.html', none), { code: 200 })
  await rename(`${folder}/main-ABC.js`, `${folder}/main-ABC.js.new`)
  t.equal(await files.answer('main-ABC.js', none), undefined)
  t.same(log.messages('warn'), ['File of the dashboard not read'])
  await rename(`${folder}/main-ABC.js.new`, `${folder}/main-ABC.js`)
  t.match(await files.answer('main-ABC.js', none), { code: 200 })
})

test('a page that was not built is logged once, and not served', async (t) => {
  const log = quietLog(t)
  const files = dashboardFiles(`${testFolder(t)}/none`, log)
  for (let request = 0; request < 3; request++) t.equal(await files.answer('index.html', none), undefined)
  t.same(log.messages('warn'), ['Dashboard not served: its files are missing'])
})
