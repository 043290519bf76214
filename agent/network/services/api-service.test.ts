import { test } from 'tap'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { ipv4Rules } from '../rule-family.ts'
import { aService } from '../testing/services.ts'
import { apiService } from './api-service.ts'
import { rulesOfServices } from './rules-of-services.ts'

const node = {
  nodeName: 'pi-1',
  family: ipv4Rules,
  zone: '',
  addresses: [],
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
}
const kubernetes = (...ips: string[]): ServiceState => ({
  ...aService({ namespace: 'default', name: 'kubernetes', clusterIPs: ['10.96.0.1'] }),
  ports: [{ name: 'https', port: 443, protocol: 'TCP' }],
  endpoints: [
    {
      ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
      addresses: ips.map((ip) => ({ ip, ready: true, serving: true, terminating: false })),
    },
  ],
})
const rulesFor = (state: ServiceState) => {
  const services = new Map([[`${state.namespace}/${state.name}`, state]])
  return { ...rulesOfServices(node)(services), services }
}

test('the API is reached by its Service once the kernel has its rules', async (t) => {
  const rules = rulesFor(kubernetes('192.168.1.10'))
  t.same(apiService(rules, [rules]), { host: '10.96.0.1', port: 443 })
  t.equal(apiService(rules, []), undefined)
  t.equal(apiService(rules, [{ ...rules }]), undefined, 'the rules of before')
})

test('without rules, without the Service or without an IPv4 endpoint it is not', async (t) => {
  t.equal(apiService(undefined, []), undefined)
  for (const rules of [rulesFor(kubernetes()), rulesFor(kubernetes('fd00::1')), rulesFor(aService({}))]) {
    t.equal(apiService(rules, [rules]), undefined)
  }
})
