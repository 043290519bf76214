import { test } from 'tap'
import { infoOf } from './answers.ts'

test('the runtimes of the engine are handlers, with what the engine reports of each', async (t) => {
  const features = (...mountOptions: string[]) => ({
    status: { 'org.opencontainers.runtime-spec.features': JSON.stringify({ mountOptions }) },
  })
  const handlers = (KernelVersion: string, Runtimes: unknown, DefaultRuntime = 'runc') =>
    infoOf({ KernelVersion, Runtimes, DefaultRuntime }).handlers
  const runtimes = { runc: { path: 'runc', ...features('ro', 'rro') }, crun: features('ro') }
  const none = { recursiveReadOnlyMounts: false, userNamespaces: false }
  const recursive = { ...none, recursiveReadOnlyMounts: true }
  const all = (ofRunc: typeof none) => [
    { name: '', ...ofRunc },
    { name: 'crun', ...none },
    { name: 'runc', ...ofRunc },
  ]
  for (const kernel of ['5.12.0', '5.15.1-v8+', '6.1.0-rpi7'])
    t.same(handlers(kernel, runtimes), all(recursive), kernel)
  for (const kernel of ['5.11.22', '4.19.0', 'unknown']) t.same(handlers(kernel, runtimes), all(none), kernel)
  t.same(handlers('6.1.0', runtimes, 'crun')[0], { name: '', ...none }, 'as the default runtime')
  const old = { runc: { path: 'runc' }, 'io.containerd.runc.v2': { path: 'runc' } }
  t.same(
    handlers('6.1.0', old),
    ['', 'io.containerd.runc.v2', 'runc'].map((name) => ({ name, ...none })),
    'an engine that does not report it',
  )
  const key = 'org.opencontainers.runtime-spec.features'
  for (const status of [null, 'rro', { [key]: '{' }, { [key]: 'null' }, { [key]: '{"mountOptions":"rro"}' }]) {
    t.same(handlers('6.1.0', { runc: { status } }), [
      { name: '', ...none },
      { name: 'runc', ...none },
    ])
  }
  for (const absent of [undefined, null, 'runc', []]) t.same(handlers('6.1.0', absent), [])
})

test('the firewall backend is that of the engine, if it reports one', async (t) => {
  t.equal(infoOf({ FirewallBackend: { Driver: 'nftables', Info: [] } }).firewallBackend, 'nftables')
  for (const info of [{}, { FirewallBackend: null }, { FirewallBackend: { Driver: 5 } }]) {
    t.equal(infoOf(info).firewallBackend, undefined)
  }
})
