import { createPublicKey } from 'node:crypto'
import { once } from 'node:events'
import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { test } from 'tap'
import { startApi } from '../../broker-controller/testing/api-under-test.ts'
import { newKey, openAuthority, privateKeyPem } from '../../certs/authority.ts'
import { issueServer } from '../../certs/issue.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { eventually } from '../../test/support/wait.ts'
import { openDashboardCertificate } from './dashboard-certificate.ts'

async function issued(folder: string, name: string) {
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  return issueServer(authority, { names: [name], nowMs: Date.now() })
}

test('the files are read again when they change, and an unusable pair leaves the last one', async (t) => {
  const folder = testFolder(t)
  const files = { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  const write = (texts: { readonly certificate: string; readonly key: string }, at: number) => {
    writeFileSync(files.certificate, texts.certificate)
    writeFileSync(files.key, texts.key)
    for (const file of Object.values(files)) utimesSync(file, at, at)
  }
  const clock = fakeClock()
  const log = quietLog(t)
  let changes = 0
  const open = () => openDashboardCertificate({ files, clock, log, onChange: () => void changes++ })
  await t.rejects(open(), /ENOENT/)
  const [first, second] = [await issued(folder, 'page.example'), await issued(folder, 'page.example')]
  write({ certificate: first.certificate, key: privateKeyPem(newKey()) }, 1)
  await t.rejects(open(), /Cannot use the certificate/)
  write(first, 2)
  const certificate = await open()
  const stopping = new AbortController()
  const running = certificate.run(stopping.signal)
  write(second, 3)
  await clock.advance(30_000)
  await eventually('the files were read again', () => changes === 1, { everyMs: 5 })
  t.equal(certificate.current().certificate, second.certificate)
  write({ certificate: first.certificate, key: 'none' }, 4)
  await clock.advance(30_000)
  await eventually('they were read once more', () => log.messages('warn').length > 0, { everyMs: 5 })
  t.same(log.messages('warn'), ['Dashboard certificate not read'])
  t.equal(certificate.current().certificate, second.certificate)
  t.equal(changes, 1)
  stopping.abort()
  await running
})

test('a browser that asks for the name of the page gets its certificate, and nodes get that of the fleet', async (t) => {
  const folder = testFolder(t)
  const authority = await openAuthority(join(folder, 'fleet'), Date.now())
  const fleet = issueServer(authority, { names: ['localhost', 'fleet.example'], nowMs: Date.now() })
  const page = issueServer(authority, { names: ['page.example', 'fleet.example'], nowMs: Date.now() })
  const tls = { ...fleet, ca: authority.certificate, named: page }
  const api = await startApi({ log: quietLog(t), over: { tls } })
  t.teardown(() => api.stop())
  const keyFor = async (servername: string) => {
    const socket = connect({ port: api.port, host: '127.0.0.1', servername, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'pem' })
    socket.destroy()
    return key
  }
  const keyOf = (pem: string) => createPublicKey(pem).export({ type: 'spki', format: 'pem' })
  t.equal(await keyFor('page.example'), keyOf(page.certificate))
  t.equal(await keyFor('fleet.example'), keyOf(fleet.certificate), 'nodes use this name')
  t.equal(await keyFor('other.example'), keyOf(fleet.certificate))
})
