import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { heldIPv6, ipv6ChangesOf, neighbourNotices } from './balancer-ipv6.ts'

test('addresses of load balancers are found by their flags, and no other address of the link is one', async (t) => {
  const rows = [
    'fd000009000000000000000000000240 02 80 00 30     eth0',
    'fd000009000000000000000000000241 02 80 00 70  eth0.10',
    'fd000009000000000000000000000001 02 40 00 82     eth0',
    'fd000009000000000000000000000009 02 80 00 20     eth0',
    'fe80000000000000e0363dfffe9a6a70 02 40 20 80     eth0',
    'no row',
  ]
  const root = testFolder(t, { proc: { net: { if_inet6: `${rows.join('\n')}\n` } } })
  t.same(
    [...heldIPv6(root)],
    [
      ['fd00:9::240', 'eth0'],
      ['fd00:9::241', 'eth0.10'],
    ],
  )
  t.same([...heldIPv6(testFolder(t))], [], 'a kernel without IPv6')
})

test('an address is taken on the link, moves with it, and is released where it is', async (t) => {
  const ip = 'fd00:9::240'
  const [take] = ipv6ChangesOf({ step: 'take', ip }, 'eth0')
  t.equal(take, `address replace ${ip}/128 dev eth0 home noprefixroute valid_lft 30 preferred_lft 0`)
  t.same(ipv6ChangesOf({ step: 'renew', ip }, 'eth0', 'eth0'), [take])
  t.same(ipv6ChangesOf({ step: 'renew', ip }, 'eth0', 'wlan0'), [`address delete ${ip}/128 dev wlan0`, take])
  t.same(ipv6ChangesOf({ step: 'release', ip }, undefined, 'wlan0'), [`address delete ${ip}/128 dev wlan0`])
  t.same(ipv6ChangesOf({ step: 'release', ip }, 'eth0'), [], 'it is gone')
  t.same(ipv6ChangesOf({ step: 'announce', ip }, 'eth0', 'eth0'), [], 'the kernel does')
})

test('the kernel is set to announce addresses, and set back, also by a later agent', async (t) => {
  const setting = (text: string) => ({ ndisc_notify: text })
  const conf = { eth0: setting('0\n'), wlan0: setting('1\n'), usb0: setting('0\n') }
  const root = testFolder(t, { proc: { sys: { net: { ipv6: { conf } } } } })
  const folder = join(root, 'proc/sys/net/ipv6/conf')
  const shown = () =>
    ['eth0', 'wlan0'].map((device) => readFileSync(join(folder, device, 'ndisc_notify'), 'utf8').trim()).join()
  const notices = neighbourNotices(root)
  for (const device of ['eth0', 'wlan0', 'usb0']) await notices.turnOn(device)
  t.equal(shown(), '1,1')
  rmSync(join(folder, 'usb0'), { recursive: true })
  await neighbourNotices(root).turnOff()
  t.equal(shown(), '0,1', 'one that was set before stays')
  writeFileSync(join(folder, 'eth0/ndisc_notify'), '1\n')
  await notices.turnOff()
  t.equal(shown(), '1,1', 'it was set by others since')
  await t.rejects(notices.turnOn('gone'), /ENOENT/)
})
