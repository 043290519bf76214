import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { nodeClientSigner, nodeClientUsages } from '../../api/certificate-signing-request.ts'
import { administrator } from '../../api/identity.ts'
import { newKey } from '../../certs/authority.ts'
import { createCSR } from '../../certs/csr.ts'
import { checkNodeCSR } from '../../certs/csr-check.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { readKubeconfig } from '../commands/connection/kubeconfig.ts'
import { isOlderThanStore } from '../store/store-mark.ts'
import { openOwnCertificates } from './own-certificates.ts'

const dayMs = 24 * 3600_000

test('certificates are renewed in time, and listeners are notified', async (t) => {
  const { clock, open } = aController(t)
  const own = await open()
  const first = sinceMs(own.tls().certificate)
  await clock.advance(7 * dayMs)
  t.equal(own.changes(), 0)
  await clock.advance(2 * dayMs)
  await own.changed()
  t.ok(sinceMs(own.tls().certificate) > first + 7 * dayMs)
  t.ok((await own.administratorSinceMs()) > first + 7 * dayMs)
})

test('a controller that starts in 1970 keeps its certificates, and issues new ones when its clock is set', async (t) => {
  const { clock, open, log } = aController(
    t,
    'Clock is wrong: the server uses its last certificate until the clock is set',
  )
  const rightMs = clock.wallMs()
  const before = (await open()).tls()
  clock.setWall(1_000)
  const own = await open()
  t.same(own.tls(), before)
  await clock.advance(3600_000)
  t.equal(own.changes(), 0)
  clock.setWall(rightMs + dayMs)
  await clock.advance(60_000)
  await own.changed()
  t.ok(sinceMs(own.tls().certificate) > sinceMs(before.certificate))
  t.ok((await own.administratorSinceMs()) > rightMs)
  t.equal(log.messages('warn').length, 1)
})

test('a certificate of a clock that was ahead is replaced a minute after the clock is set back', async (t) => {
  const { clock, open } = aController(t)
  const rightMs = clock.wallMs()
  await open()
  clock.setWall(rightMs + 1000 * dayMs)
  const own = await open()
  clock.setWall(rightMs)
  await clock.advance(60_000)
  await own.changed()
  t.ok(sinceMs(own.tls().certificate) <= clock.wallMs())
})

test('what comes at one moment is done one after the other, and leaves files that belong together', async (t) => {
  const { dataDir, clock, open, revoke } = aController(t)
  const own = await open()
  revoke(clock.wallMs())
  await Promise.all([own.reload(), own.revoked(), own.reload(), own.revoked(), own.reload()])
  const [key, certificate] = await Promise.all(['key', 'crt'].map((kind) => readFile(join(dataDir, `server.${kind}`))))
  t.ok(new X509Certificate(certificate ?? '').checkPrivateKey(createPrivateKey(key ?? '')))
  t.equal(await own.administratorSinceMs(), clock.wallMs())
})

test('listeners are notified even if no kubeconfig can be written, and it is written later', async (t) => {
  const { dataDir, clock, open } = aController(t)
  const own = await open()
  const kubeconfig = join(dataDir, 'kubeconfig')
  await rm(kubeconfig)
  await mkdir(join(kubeconfig, 'in the way'), { recursive: true })
  await t.rejects(own.reload(), { message: /Cannot write .*kubeconfig/ })
  t.equal(own.changes(), 1)
  await rm(kubeconfig, { recursive: true })
  await clock.advance(60_000)
  await own.revoked() // Waits for its turn, behind what is written.
  await t.resolves(own.administratorSinceMs())
})

test('a key and a certificate that do not belong together after a power cut are not used', async (t) => {
  const { dataDir, clock, open } = aController(t)
  const own = await open()
  const first = own.tls().key
  await own.reload()
  await writeFile(join(dataDir, 'server.key'), first)
  clock.setWall(1_000)
  await t.rejects(open(), { message: /No certificate is made while .*: set it, or wait until it is set/ })
})

test('an administrator whose certificate was revoked finds another one', async (t) => {
  const { clock, open, revoke } = aController(t, 'Administrator certificate was revoked; the kubeconfig has a new one')
  const own = await open()
  await own.revoked()
  t.ok((await own.administratorSinceMs()) < clock.wallMs())
  revoke(clock.wallMs())
  await own.revoked()
  t.equal(await own.administratorSinceMs(), clock.wallMs())
})

test('the serial number of a node certificate shows whether it is older than the store', async (t) => {
  const { open } = aController(t)
  const own = await open()
  const pem = createCSR({ commonName: 'system:node:pi-1', organization: 'system:nodes', key: newKey() })
  const serial = (more: object) => new X509Certificate(own.signer(checkedRequest(pem), more)).serialNumber
  t.equal(isOlderThanStore(serial({}), 'store-1'), false)
  t.equal(isOlderThanStore(serial({}), 'store-2'), true)
  t.equal(isOlderThanStore(serial({ isOlder: true }), 'store-1'), true, 'the renewal of one that is older')
  t.not(serial({}), serial({}))
})

function sinceMs(pem: string): number {
  return Date.parse(new X509Certificate(pem).validFrom)
}

function aController(t: Test, ...expected: readonly string[]) {
  const dataDir = testFolder(t)
  const clock = fakeClock()
  clock.setWall(Date.UTC(2026, 5, 1))
  const log = quietLog(t, ...expected)
  let revokedMs: number | undefined
  const open = async () => {
    const own = await openOwnCertificates({
      storeID: 'store-1',
      dataDir,
      names: ['localhost'],
      kubeconfig: undefined,
      servingMs: 10 * dayMs,
      signingMs: 365 * dayMs,
      revokedBefore: (user) => (user === administrator.user ? revokedMs : undefined),
      clock,
      random: () => 0.5,
      log,
    })
    let changes = 0
    let notify = () => {}
    const changed = new Promise<void>((resolve) => {
      notify = resolve
    })
    own.onChange(() => {
      changes++
      notify()
    })
    await own.writeKubeconfig({ server: 'https://localhost:6443' })
    const stop = new AbortController()
    const running = own.run(stop.signal)
    t.teardown(async () => {
      stop.abort()
      await running
    })
    return {
      ...own,
      changes: () => changes,
      /** Once, with its files. */
      changed: () => changed.then(own.revoked),
      administratorSinceMs: async () => sinceMs((await readKubeconfig(join(dataDir, 'kubeconfig'))).certificate ?? ''),
    }
  }
  return {
    dataDir,
    clock,
    log,
    open,
    revoke: (beforeMs: number) => {
      revokedMs = beforeMs
    },
  }
}

function checkedRequest(pem: string) {
  const checked = checkNodeCSR(pem, { signerName: nodeClientSigner, usages: nodeClientUsages })
  if (!checked.ok) throw new Error(checked.reason)
  return checked
}
