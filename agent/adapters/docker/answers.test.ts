import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { containerOptions } from '../../pods/options/container-options.ts'
import { containerOf, infoOf } from './answers.ts'
import { containerRequest } from './requests.ts'

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

test('the devices of a container are read as they were requested, each with its path in the container', async (t) => {
  const devices = [
    { source: '/dev/ttyUSB0', target: '/dev/ttyACM0' },
    { source: '/dev/net/tun', target: '/dev/net/tun' },
  ]
  const container = { name: 'main', image: 'app:1' }
  const made = containerOptions(aPod({ containers: [container] }), container, {
    hostIP: '192.0.2.1',
    podIP: '10.1.0.5',
    configMaps: [],
    secrets: [],
    allocatable: {},
    sandboxID: 'sandbox',
    attempt: 0,
    memoryCapacityBytes: 0,
    mounts: [],
    devices,
  })
  if (!made.ok) return t.fail(made.message)
  const { identity } = made.options
  const { HostConfig } = containerRequest('pi-1', made.options, { maxBytes: 1, maxFiles: 2 })
  t.match(HostConfig?.Devices?.[0], { PathOnHost: '/dev/ttyUSB0', PathInContainer: '/dev/ttyACM0' })
  const known = { id: 'a', identity, imageID: '' }
  t.same(containerOf({ HostConfig: { Devices: HostConfig?.Devices ?? [] } }, known).devices, devices)
  const old = containerOf({ HostConfig: { Devices: [{ PathOnHost: '/dev/fuse' }, {}] } }, known)
  t.same(old.devices, [{ source: '/dev/fuse', target: '/dev/fuse' }])
  const permissions = [
    { source: '/dev/a', target: '/dev/a' },
    { source: '/dev/b', target: '/dev/b', readOnly: true as const },
  ]
  const asked = containerRequest('pi-1', { ...made.options, devices: permissions }, { maxBytes: 1, maxFiles: 2 })
  t.match(asked.HostConfig?.Devices, [{ CgroupPermissions: 'rwm' }, { CgroupPermissions: 'r' }])
})
