import { test } from 'tap'
import { ipv6LinksIn } from './mdns-sockets.ts'

test('an interface has the IPv6 addresses that last, and the ranges of all that routers forward', async (t) => {
  const links = ipv6LinksIn(`00000000000000000000000000000001 01 80 10 80       lo
fe800000000000000000000000000005 02 40 20 80     eth0
fd000007000000000000000000000005 02 40 00 80     eth0
20010db8000000000000000000000005 02 40 00 00     eth0
20010db800000000000000000000abcd 02 40 00 01     eth0
20010db8000900000000000000000005 02 40 00 20     eth0
fd000009000000000000000000000240 02 80 00 30     eth0
fd00000a000000000000000000000005 02 40 00 40     eth0
fd000007000000000000000000000006 03 40 00 80    wlan0
fe800000000000000000000000000006 04 40 20 40    wlan1
`)
  t.same([...links.keys()], ['eth0'], 'one without an address of the link, or a tentative one, sends no messages')
  t.same(links.get('eth0'), {
    addresses: ['2001:db8::5', 'fd00:7::5'],
    ranges: ['2001:db8:9::/64', '2001:db8::/64', 'fd00:7::/64', 'fd00:9::240/128', 'fd00:a::/64'],
  })
})

test('a kernel without IPv6 has none', async (t) => {
  t.equal(ipv6LinksIn('').size, 0)
})
