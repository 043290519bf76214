import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { cameUp } from '../../node/connection/network-state.ts'
import { readNetworkState } from './network-changes.ts'

/** A machine's files, written below a folder of the test's own. */
async function machine(t: Test) {
  const root = testFolder(t)
  return {
    root,
    async write(path: string, text: string) {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), text)
    },
    remove: (path: string) => rm(join(root, path), { recursive: true }),
    look: () => readNetworkState(root),
  }
}

const heads = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n'
const defaultRoute = 'eth0\t00000000\t0100A8C0\t0003\t0\t0\t202\t00000000\t0\t0\t0\n'
const localRoute = 'eth0\t0000A8C0\t00000000\t0001\t0\t0\t202\t00FFFFFF\t0\t0\t0\n'

test('a cable that is plugged again is a network that came up, and a pulled one is not', async (t) => {
  const { write, look } = await machine(t)
  await write('sys/class/net/eth0/carrier', '1\n')
  await write('sys/class/net/eth0/carrier_changes', '2\n')
  const before = look()
  await write('sys/class/net/eth0/carrier', '0\n')
  await write('sys/class/net/eth0/carrier_changes', '3\n')
  const pulled = look()
  t.notOk(cameUp(before, pulled))
  await write('sys/class/net/eth0/carrier', '1\n')
  await write('sys/class/net/eth0/carrier_changes', '4\n')
  t.ok(cameUp(pulled, look()))
  t.ok(cameUp(before, look()), 'also without a look in between')
  t.notOk(cameUp(look(), look()))
})

test('a new default route counts, one of IPv6 too, and other routes do not', async (t) => {
  const { write, look } = await machine(t)
  await write('proc/net/route', heads + localRoute)
  await write('proc/net/ipv6_route', '')
  const before = look()
  await write('proc/net/route', heads + localRoute + localRoute.replace('0000A8C0', '0001A8C0'))
  t.notOk(cameUp(before, look()))
  await write('proc/net/route', heads + defaultRoute + localRoute)
  const routed = look()
  t.ok(cameUp(before, routed))
  const zeros = '0'.repeat(32)
  const reject = `${zeros} 00 ${zeros} 00 ${zeros} ffffffff 00000001 00000000 00200200       lo\n`
  await write('proc/net/ipv6_route', reject)
  t.notOk(cameUp(routed, look()))
  const gateway = 'fe800000000000000000000000000001'
  await write(
    'proc/net/ipv6_route',
    `${zeros} 00 ${zeros} 00 ${gateway} 00000064 00000003 00000000 00000003     eth0\n`,
  )
  t.ok(cameUp(routed, look()))
})

test('interfaces of Docker for containers do not count, and a machine without files has no network', async (t) => {
  const { write, look, remove } = await machine(t)
  for (const name of ['lo', 'docker0', 'br-0123456789ab', 'vethab12'])
    await write(`sys/class/net/${name}/carrier`, '1\n')
  t.equal(look().size, 0)
  await remove('sys')
  t.equal(look().size, 0)
})

test('interfaces that lead to no controller do not count', async (t) => {
  const { write, look } = await machine(t)
  for (const name of ['lo', 'veth12ab', 'docker0', 'br-0123456789ab']) {
    await write(`sys/class/net/${name}/carrier`, '1\n')
    await write(`sys/class/net/${name}/carrier_changes`, '1\n')
  }
  t.same([...look()], [])
  for (const name of ['lowpan0', 'xbr-1', 'eth0.docker']) {
    await write(`sys/class/net/${name}/carrier`, '1\n')
    await write(`sys/class/net/${name}/carrier_changes`, '1\n')
  }
  t.same([...look()].sort(), ['link eth0.docker 1', 'link lowpan0 1', 'link xbr-1 1'])
})

test('a default route has a destination and a mask of zero', async (t) => {
  const { write, look } = await machine(t)
  const zeros = '0'.repeat(32)
  const row = (name: string, destination: string, mask: string) =>
    `${name}\t${destination}\t0100A8C0\t0003\t0\t0\t0\t${mask}\t0\t0\t0\n`
  const row6 = (name: string, destination: string, length: string) =>
    `${destination} ${length} ${zeros} 00 ${'f'.repeat(32)} 0 0 0 0     ${name}\n`
  await write('proc/net/route', heads + row('tun0', '00000000', '00000080') + row('host0', '0100000A', '00000000'))
  await write(
    'proc/net/ipv6_route',
    row6('tun0', zeros, '01') + row6('net0', `fd${'0'.repeat(30)}`, '00') + row6('net1', `${'0'.repeat(30)}fd`, '00'),
  )
  t.same([...look()], [])
  await write('proc/net/route', row('eth0', '00000000', '00000000'))
  await write('proc/net/ipv6_route', row6('eth0', zeros, '00'))
  t.same([...look()], ['route eth0 0100A8C0', `route eth0 ${'f'.repeat(32)}`])
})

test('a machine without these files has no network', async (t) => {
  const { look, write } = await machine(t)
  t.same([...look()], [])
  await write('sys/class/net/eth0/operstate', 'down\n')
  t.same([...look()], [], 'an interface that is down has no readable carrier')
})
