import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../../daemon/testing/test-folder.ts'
import { podPorts } from './pod-ports.ts'

const sandbox = { id: 'abc123', pid: 40, mac: '02:42:0a:f4:01:05' }

/** The kernel's files of a machine whose pod is at a port of a bridge. */
function machine(
  t: Test,
  { iflink = '8\n', peer = '7\n', cgroup = '0::/docker/abc123\n', hasMaster = true } = {},
): string {
  const root = testFolder(t, {
    proc: { '40': { cgroup, root: { sys: { class: { net: { eth0: { iflink, ifindex: '7\n' } } } } } } },
    sys: {
      class: { net: { lo: { ifindex: '1\n' }, veth9: { ifindex: '9\n' }, veth8: { ifindex: '8\n', iflink: peer } } },
      devices: { virtual: { net: {} } },
    },
  })
  if (hasMaster) {
    mkdirSync(join(root, 'sys/devices/virtual/net/br-0123456789ab'))
    symlinkSync('../../../../devices/virtual/net/br-0123456789ab', join(root, 'sys/class/net/veth8/master'))
  }
  return root
}

test('a pod is at the port whose other end is its interface', async (t) => {
  t.same(await podPorts(machine(t)).placeOf(sandbox), { port: 'veth8', bridge: 'br-0123456789ab' })
})

test('a pod that is at no bridge, or has ended, has no place', async (t) => {
  const placeOn = (root: string) => podPorts(root).placeOf(sandbox)
  t.equal(await placeOn(machine(t, { hasMaster: false })), undefined, 'an interface without a bridge')
  t.equal(await placeOn(machine(t, { iflink: '7\n' })), undefined, 'an interface of no machine')
  t.equal(await placeOn(machine(t, { iflink: '' })), undefined)
  t.equal(await placeOn(machine(t, { peer: '9\n' })), undefined, 'an interface of another pair')
  t.equal(await placeOn(machine(t, { cgroup: '0::/system.slice\n' })), undefined, 'another process with its id')
  t.equal(await podPorts(machine(t)).placeOf({ ...sandbox, pid: 41 }), undefined)
})
