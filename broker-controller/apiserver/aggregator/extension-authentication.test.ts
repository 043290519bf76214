import { join } from 'node:path'
import { test } from 'tap'
import { certificatesIn } from '../../../api/text/pem.ts'
import { dayMs } from '../../../certs/authority.ts'
import { openFrontProxyAuthority } from '../../../certs/front-proxy.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { authenticationData, extensionAuthentication } from './extension-authentication.ts'

const nowMs = Date.UTC(2026, 5, 1)
const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' }

test('the ConfigMap has the fields that extension servers read, as JSON texts', async (t) => {
  const { certificate } = await openFrontProxyAuthority(testFolder(t), nowMs)
  t.same(authenticationData({ mine: 'x' }, { clientAuthorities: 'CA', proxyAuthority: certificate }, nowMs), {
    mine: 'x',
    'client-ca-file': 'CA',
    'requestheader-client-ca-file': certificate,
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
  })
})

test('authorities of other controllers stay while they are valid, behind the own one and not without end', async (t) => {
  const folder = testFolder(t)
  const pems = await Promise.all(
    Array.from(
      { length: 10 },
      async (_, i) => (await openFrontProxyAuthority(join(folder, `${i}`), nowMs)).certificate,
    ),
  )
  const data = (present: string, own: string, atMs = nowMs) =>
    authenticationData(
      { 'requestheader-client-ca-file': present },
      { clientAuthorities: 'CA', proxyAuthority: own },
      atMs,
    )['requestheader-client-ca-file'] ?? ''
  const [first = '', second = ''] = pems
  t.equal(data(first, first), first)
  t.equal(data(first, second), `${second}${first}`)
  t.equal(data(`${first}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`, second), `${second}${first}`)
  t.equal(data(first, second, nowMs + 11 * 365 * dayMs), second)
  t.equal(certificatesIn(data(pems.slice(1).join(''), first)).length, 8)
})

test('it is written at the start, again where it was deleted, and with each change of authorities', async (t) => {
  const clock = fakeClock(nowMs)
  const store = memoryStore({ clock })
  const folder = testFolder(t)
  let clientAuthorities = 'CA'
  const loop = extensionAuthentication({
    store,
    clientAuthorities: () => clientAuthorities,
    proxyAuthority: async () => (await openFrontProxyAuthority(folder, nowMs)).certificate,
    clock,
    log: quietLog(t),
  })
  await loop.refresh()
  const first = await store.get('configmaps', key)
  t.match(first?.data, { 'client-ca-file': 'CA' })
  await loop.refresh()
  t.equal((await store.get('configmaps', key))?.metadata.resourceVersion, first?.metadata.resourceVersion)
  clientAuthorities = 'CA2'
  await loop.refresh()
  t.match((await store.get('configmaps', key))?.data, { 'client-ca-file': 'CA2' })
  await store.delete('configmaps', key)
  await loop.refresh()
  t.match((await store.get('configmaps', key))?.data, { 'client-ca-file': 'CA2' })
})
