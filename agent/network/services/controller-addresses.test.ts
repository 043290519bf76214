import { test } from 'tap'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { controllerAddresses } from './controller-addresses.ts'
import { serviceRules } from './service-rules.ts'

const urls = ['https://192.168.1.2:6443', 'mqtts://192.168.1.2:8883', 'mqtts://fleet.example']

test('the addresses of controllers are those of their URLs, and the endpoints of the API', async (t) => {
  t.same(controllerAddresses(urls, new Map(), ipv4Rules), ['192.168.1.2:6443', '192.168.1.2:8883'])
  const api = aService({ namespace: 'default', name: 'kubernetes', addresses: [endpointOn('', '192.168.1.3')] })
  t.same(controllerAddresses(['mqtts://fleet.example', 'none'], new Map([['default/kubernetes', api]]), ipv4Rules), [
    '192.168.1.3:8883',
  ])
  t.same(controllerAddresses(['https://fleet.example'], new Map(), ipv4Rules), [])
})

test('a Service gets no connections to a controller by its external addresses, and those to other ports', async (t) => {
  const node = {
    family: ipv4Rules,
    nodeName: 'pi-1',
    zone: '',
    clusterCIDR: '10.244.0.0/16',
    serviceCIDR: '10.96.0.0/12',
    addresses: [],
  }
  const given = aService({ externalIPs: ['192.168.1.2'], addresses: [endpointOn('pi-1', '10.244.1.2')] })
  const ports = [8883, 80].map((port) => ({ port, protocol: 'TCP' as const }))
  const controllers = controllerAddresses(urls, new Map(), ipv4Rules)
  const { elements } = serviceRules({ ...given, ports }, { ...node, controllers })
  const claimed = elements.map(([, key]) => key).filter((key) => key.startsWith('192.168.1.2 '))
  t.same(claimed, ['192.168.1.2 . tcp . 80'])
})

test('of IPv6 they are those in brackets', async (t) => {
  const urls = ['https://[fd00:7::9]:6443', 'mqtts://192.168.1.2']
  t.same(controllerAddresses(urls, new Map(), ipv6Rules), ['fd00:7::9:6443', 'fd00:7::9:8883'])
  t.same(controllerAddresses(urls, new Map(), ipv4Rules), ['192.168.1.2:6443', '192.168.1.2:8883'])
})
