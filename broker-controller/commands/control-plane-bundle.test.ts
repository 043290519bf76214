import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { emptyControllerConfiguration } from '../configuration/configuration.ts'
import { settingsOfOthers } from '../replicas/settings-of-others.ts'
import { type ControlPlaneBundle, openBundle, readBundle, sealBundle } from './control-plane-bundle.ts'

const token = { id: 'abcdef', secret: '0123456789abcdef' }
const bundle: ControlPlaneBundle = {
  settings: { ...emptyControllerConfiguration, etcdServers: ['https://10.0.0.1:2379'], etcdCAFile: 'etcd/ca.crt' },
  files: new Map([
    ['authority/ca.key', Buffer.from('key')],
    ['secrets.key', Buffer.from('more')],
    ['etcd/ca.crt', Buffer.from([0, 255])],
  ]),
}

test('a bundle is opened with its key and its token only', async (t) => {
  const { key, sealed } = sealBundle(bundle, token)
  t.match(key, /^[0-9a-f]{64}$/)
  t.notOk(sealed.includes('secrets.key'), 'nothing of it can be read')
  const opened = openBundle(sealed, key, token)
  t.same(opened.settings, bundle.settings)
  t.same([...opened.files], [...bundle.files])
  const wrong = /The certificate key is not the one that was printed with this token/
  t.throws(() => openBundle(sealed, '0'.repeat(64), token), wrong)
  t.throws(() => openBundle(sealed, key, { ...token, id: 'fedcba' }), wrong)
  const damaged = Buffer.from(sealed)
  damaged[40] = (damaged[40] ?? 0) ^ 1
  t.throws(() => openBundle(damaged, key, token), wrong)
  t.throws(() => openBundle(Buffer.alloc(0), key, token), wrong)
})

test('a bundle writes nothing outside of the data directory', async (t) => {
  for (const path of ['../x', '/etc/passwd', 'authority/../../x', 'other/x', 'authority/.x', '', 'a/b/c']) {
    const { key, sealed } = sealBundle({ ...bundle, files: new Map([[path, Buffer.from('x')]]) }, token)
    t.throws(() => openBundle(sealed, key, token), /has a file/, path)
  }
})

test('files for etcd that have one name in different folders stay apart', async (t) => {
  const folder = testFolder(t, {
    data: { authority: { 'ca.key': 'authority' }, 'secrets.key': 'secrets' },
    ...Object.fromEntries(['ca', 'crt', 'key'].map((kind) => [kind, { 'tls (1).pem': kind }])),
  })
  const path = (kind: string) => join(folder, kind, 'tls (1).pem')
  const files = { etcdCAFile: path('ca'), etcdCertFile: path('crt'), etcdKeyFile: path('key') }
  const settings = { ...emptyControllerConfiguration, etcdServers: ['https://10.0.0.1:2379'], ...files }
  const read = await readBundle(join(folder, 'data'), JSON.stringify(settings))
  const { key, sealed } = sealBundle(read, token)
  const opened = openBundle(sealed, key, token)
  const { etcdCAFile = '', etcdCertFile = '', etcdKeyFile = '' } = opened.settings
  t.same(
    [etcdCAFile, etcdCertFile, etcdKeyFile].map((name) => Buffer.from(opened.files.get(name) ?? []).toString()),
    ['ca', 'crt', 'key'],
  )
})

test('another controller gets the settings of the fleet, and not those of one machine', async (t) => {
  const etcd = { servers: ['https://e:2379'], prefix: '/p', caFile: '/ca', certFile: undefined, keyFile: undefined }
  const listen = { apiPort: 7443, mqttPort: 0, bindAddress: '10.0.0.1' }
  const file = {
    ...emptyControllerConfiguration,
    bindAddress: '10.0.0.1',
    advertiseAddress: '10.0.0.1',
    hosts: ['a'],
    auditLogPath: '/x',
    dashboardCertFile: '/y.crt',
    dashboardKeyFile: '/y.key',
    eventTTL: '2h',
  }
  t.same(settingsOfOthers({ etcd, listen }, file), {
    ...emptyControllerConfiguration,
    eventTTL: '2h',
    apiPort: 7443,
    etcdServers: ['https://e:2379'],
    etcdPrefix: '/p',
    etcdCAFile: '/ca',
  })
})
