import { test } from 'tap'
import { type AddressFacts, chooseNodeIP, nodeAddresses } from './addresses.ts'

const pi: AddressFacts = {
  nodeIPs: [],
  nodeName: 'pi-7',
  hostname: 'pi-7',
  resolved: [],
  interfaces: [
    { name: 'lo', addresses: ['127.0.0.1', '::1'] },
    { name: 'docker0', addresses: ['172.17.0.1'] },
    { name: 'wlan0', addresses: ['192.168.2.7'] },
    { name: 'eth0', addresses: ['fe80::1', '2001:db8::7', '192.168.1.7'] },
  ],
  defaultInterfaces: ['eth0', 'wlan0'],
}

test('the address of the default route is taken, IPv4 first', async (t) => {
  t.same(chooseNodeIP(pi), { ips: ['192.168.1.7'] })
})

test('the resolved address of the node name comes first, if it is on this machine', async (t) => {
  t.same(chooseNodeIP({ ...pi, resolved: ['10.9.9.9', '192.168.2.7'] }), { ips: ['192.168.2.7'] })
  t.same(
    chooseNodeIP({ ...pi, resolved: ['127.0.1.1', '127.0.0.1'] }),
    { ips: ['192.168.1.7'] },
    'Debian resolves it to 127.0.1.1',
  )
})

test('the configured address comes before all, and must be on an interface', async (t) => {
  t.same(chooseNodeIP({ ...pi, nodeIPs: ['172.17.0.1'] }), { ips: ['172.17.0.1'] })
  t.match(chooseNodeIP({ ...pi, nodeIPs: ['10.0.0.1'] }), { because: /nodeIP 10.0.0.1 is on no interface/ })
  const both = ['192.168.1.7', '2001:db8::7']
  t.same(chooseNodeIP({ ...pi, nodeIPs: both }), { ips: both }, 'one of each IP family')
  t.match(chooseNodeIP({ ...pi, nodeIPs: ['192.168.1.7', '2001:db8::8'] }), { because: /nodeIP 2001:db8::8 is on no/ })
})

test('a machine with IPv6 only has its address', async (t) => {
  const interfaces = [{ name: 'eth0', addresses: ['fe80::1', '2001:db8::7'] }]
  t.same(chooseNodeIP({ ...pi, interfaces }), { ips: ['2001:db8::7'] })
})

test('without a network there is no address, but a reason', async (t) => {
  t.match(chooseNodeIP({ ...pi, defaultInterfaces: [] }), { because: /no default route/ })
})

test('the addresses of the node are its IP and its hostname', async (t) => {
  t.same(nodeAddresses(['192.168.1.7'], 'pi-7'), [
    { type: 'InternalIP', address: '192.168.1.7' },
    { type: 'Hostname', address: 'pi-7' },
  ])
})
