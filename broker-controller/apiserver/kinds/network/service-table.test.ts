import { test } from 'tap'
import type { Service } from '../../../../api/network/service.ts'
import { serviceTable } from './service-table.ts'

const row = (spec?: Service['spec'], status?: Service['status']) => {
  const metadata = { name: 'web', creationTimestamp: '2026-01-01T00:00:00Z' }
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    ...(spec && { spec }),
    ...(status && { status }),
  }
  const cells = serviceTable.cells(service, Date.parse('2026-01-01T00:01:00Z'))
  return Object.fromEntries(serviceTable.columns.map(({ name }, index) => [name, cells[index]]))
}
const external = (spec: Service['spec'], ...ingress: readonly { readonly ip?: string; readonly hostname?: string }[]) =>
  row(spec, { loadBalancer: { ingress } })['External-IP']

test('a Service shows its first address, its ports and what it selects', async (t) => {
  t.same(row({ type: 'ClusterIP', clusterIPs: ['192.0.2.7', '2001:db8::7'], ports: [{ port: 80, protocol: 'TCP' }] }), {
    ...{ Name: 'web', Type: 'ClusterIP', 'Cluster-IP': '192.0.2.7', 'External-IP': '<none>', 'Port(s)': '80/TCP' },
    ...{ Age: '60s', Selector: '<none>' },
  })
  const ports = [
    { port: 53, protocol: 'UDP', nodePort: 30_053 },
    { port: 80, protocol: 'TCP', nodePort: 0 },
  ]
  t.match(row({ type: 'NodePort', clusterIPs: ['2001:db8::7'], ports, selector: { tier: 'b', app: 'web' } }), {
    ...{ 'Cluster-IP': '2001:db8::7', 'Port(s)': '53:30053/UDP,80/TCP', Selector: 'app=web,tier=b' },
  })
  t.match(row({ type: 'ClusterIP', clusterIPs: ['None'] }), { 'Cluster-IP': 'None', 'Port(s)': '<none>' })
  t.match(row(), { Type: '', 'Cluster-IP': '<none>', 'Port(s)': '<none>' })
})

test('every type of Service has its own address outside', async (t) => {
  const externalIPs = ['198.51.100.1', '198.51.100.2']
  t.equal(external({ type: 'ClusterIP', externalIPs }), '198.51.100.1,198.51.100.2')
  t.equal(external({ type: 'NodePort' }), '<none>')
  t.equal(external({ type: 'NodePort', externalIPs }), '198.51.100.1,198.51.100.2')
  t.equal(external({ type: 'ExternalName', externalName: 'db.example.com' }), 'db.example.com')
  t.equal(external({ type: 'LoadBalancer' }), '<pending>')
  t.equal(external({ type: 'LoadBalancer', externalIPs }), '198.51.100.1,198.51.100.2')
  t.equal(external({ type: 'LoadBalancer', externalIPs: [] }, { ip: '192.0.2.9' }), '192.0.2.9')
  t.equal(external({ type: 'LoadBalancer', externalIPs }, { ip: '192.0.2.9' }), '192.0.2.9,198.51.100.1,198.51.100.2')
  t.equal(external({ type: 'LoadBalancer' }, { hostname: 'lb.example.com' }), 'lb.example.com')
  t.equal(
    external({ type: 'LoadBalancer' }, { ip: '2001:db8::9' }, { ip: '192.0.2.9' }, { ip: '192.0.2.9' }, {}),
    '192.0.2.9,2001:db8::9',
    'each once, in the order of their texts',
  )
  t.equal(external({ type: 'LoadBalancer' }, { ip: '', hostname: '' }), '<pending>')
  t.equal(external({ type: 'LoadBalancer' }, { ip: '192.0.2.9', hostname: 'lb.example.com' }), '192.0.2.9')
})
