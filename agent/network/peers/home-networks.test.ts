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

test('networks of the fleet itself, of Docker, and those behind gateways are none', async (t) => {
  const routes = [
    on('br-0123456789ab', '10.244.1.0/24'),
    on('eth0', '10.244.2.0/24', '192.168.1.2'),
    on('bramble-vxlan', '10.244.3.0/24', '10.244.3.0'),
    on('*', '10.244.0.0/16'),
    on('eth0', '10.0.0.0/8', '192.168.1.1'),
  ]
  t.same(homeNetworkOverlaps(fleet, routes), [])
})
