import { test } from 'tap'
import { parseCidr } from '../../../api/text/cidr.ts'
import { homeNetworkOverlaps } from './home-networks.ts'

const fleet = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }
const on = (device: string, text: string, gateway?: string) => {
  const range = parseCidr(text)
  if (range === undefined) throw new Error(`Not a range: ${text}`)
  return { interface: device, range, ...(gateway && { gateway }) }
}

test('a network of the machine with addresses of pods or Services is named, with a remedy', async (t) => {
  t.match(homeNetworkOverlaps(fleet, [on('eth0', '192.168.1.0/24'), on('wlan0', '10.100.0.0/24')]), [
    /^the network 10\.100\.0\.0\/24 on wlan0 .* of serviceCIDR 10\.96\.0\.0\/12: .*; give the fleet a serviceCIDR/,
  ])
  t.match(homeNetworkOverlaps(fleet, [on('eth0', '10.0.0.0/8'), on('eth0', '10.0.0.0/8')]), [
    /of clusterCIDR 10\.244\.0\.0\/16/,
    /of serviceCIDR/,
  ])
  t.equal(homeNetworkOverlaps(fleet, [on('eth0', '10.0.0.0/8'), on('eth0', '10.0.0.0/8')]).length, 2, 'once each')
})

test('the same for IPv6 prefixes, which are those of a fleet with both families only', async (t) => {
  const both = { ...fleet, ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' } }
  const routes = [
    { interface: 'eth0', range: 'fe80::/64' },
    { interface: 'eth0', range: '2001:db8:1::/64' },
    { interface: 'eth0', range: 'fd00:10:244:7::/64' },
    { interface: 'wg0', range: 'fd00:10::/32' },
    { interface: 'wg1', range: 'fd00:10:96::/64', gateway: 'fe80::1' },
    { interface: 'br-0123456789ab', range: 'fd00:10:244:1::/64' },
    { interface: '*', range: 'fd00:10:244::/56' },
  ]
  const of = (field: string, range: string) => new RegExp(`of ${field} ${range}: .*; give the fleet a ${field}`)
  t.match(homeNetworkOverlaps(both, routes), [
    /^the network fd00:10:244:7::\/64 on eth0 .* of clusterCIDR fd00:10:244::\/56: .*, or renumber eth0$/,
    of('clusterCIDR', 'fd00:10:244::/56'),
    of('serviceCIDR', 'fd00:10:96::/112'),
  ])
  t.equal(homeNetworkOverlaps(both, routes).length, 3)
  t.same(homeNetworkOverlaps(fleet, routes), [])
  t.match(homeNetworkOverlaps(both, [on('eth0', '10.100.0.0/24')]), [/serviceCIDR 10\.96\.0\.0/])
})

test('networks of the fleet itself, of Docker, and those behind gateways do not count', async (t) => {
  const routes = [
    on('br-0123456789ab', '10.244.1.0/24'),
    on('eth0', '10.244.2.0/24', '192.168.1.2'),
    on('bramble-vxlan', '10.244.3.0/24', '10.244.3.0'),
    on('*', '10.244.0.0/16'),
    on('eth0', '10.0.0.0/8', '192.168.1.1'),
  ]
  t.same(homeNetworkOverlaps(fleet, routes), [])
})
