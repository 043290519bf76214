import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { kernelIPv6Forwarding } from './ipv6-forwarding.ts'

/** Settings of a kernel: `accept_ra` by interface. */
function kernel(t: Test, forwarding: string, acceptRA: { readonly [name: string]: string }) {
  const all = { forwarding: `${forwarding}\n`, accept_ra: '1\n' }
  const interfaces = Object.entries(acceptRA).map(([name, value]) => [name, { accept_ra: `${value}\n` }])
  const root = testFolder(t, { proc: { sys: { net: { ipv6: { conf: { all, ...Object.fromEntries(interfaces) } } } } } })
  const file = (name: string) => join(root, 'proc/sys/net/ipv6/conf', name)
  return {
    root,
    dataDir: join(root, 'data'),
    shown: () =>
      ['all/forwarding', ...Object.keys(acceptRA).map((name) => `${name}/accept_ra`)]
        .map((name) => readFileSync(file(name), 'utf8').trim())
        .join(' '),
    set: (name: string, value: string) => writeFileSync(file(name), `${value}\n`),
  }
}

test('the kernel forwards, takes announcements of routers as before, and both are undone', async (t) => {
  const { root, dataDir, shown, set } = kernel(t, '0', { eth0: '1', wlan0: '0', 'br-0123456789ab': '1', veth1: '1' })
  const first = kernelIPv6Forwarding(root, dataDir)
  await first.restore()
  await first.enable()
  t.equal(shown(), '1 2 0 1 1', 'pods cannot act as routers for their machine')
  set('eth0/accept_ra', '1')
  await kernelIPv6Forwarding(root, dataDir).enable()
  t.equal(shown(), '1 2 0 1 1', 'an interface that came later')
  await kernelIPv6Forwarding(root, dataDir).restore()
  t.equal(shown(), '0 1 0 1 1', 'by another process')
  set('all/forwarding', '1')
  await first.restore()
  t.equal(shown(), '1 1 0 1 1', 'once')
})

test('after a reboot Docker has let the kernel forward before the agent starts', async (t) => {
  const { root, dataDir, shown, set } = kernel(t, '0', { eth0: '1' })
  await kernelIPv6Forwarding(root, dataDir).enable()
  set('all/forwarding', '1')
  set('eth0/accept_ra', '1')
  rmSync(join(root, 'run'), { recursive: true, force: true })
  await kernelIPv6Forwarding(root, dataDir).enable()
  t.equal(shown(), '1 2', 'the default route of the machine comes back')
  await kernelIPv6Forwarding(root, dataDir).restore()
  t.equal(shown(), '0 1')
})

test('a router that the user has set up is left as it is', async (t) => {
  const { root, dataDir, shown } = kernel(t, '1', { eth0: '1' })
  const forwarding = kernelIPv6Forwarding(root, dataDir)
  await forwarding.enable()
  t.equal(shown(), '1 1')
  await forwarding.restore()
  t.equal(shown(), '1 1')
})

test('a kernel without IPv6 is an error with its reason, and nothing to undo', async (t) => {
  const root = testFolder(t)
  const forwarding = kernelIPv6Forwarding(root, root)
  await t.rejects(forwarding.enable(), { message: 'The kernel has no setting net.ipv6.conf.all.forwarding' })
  await forwarding.restore()
})
