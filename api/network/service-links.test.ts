import { test } from 'tap'
import type { Service, ServiceSpec } from './service.ts'
import { serviceLinkOf, serviceVariables } from './service-links.ts'

const service = (spec: ServiceSpec, name = 'web', namespace: string | undefined = 'shop'): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec,
})
const ports = [{ name: '', protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 30080 }]

test('a node receives the address and the ports of a Service', async (t) => {
  t.same(serviceLinkOf(service({ clusterIP: '10.96.0.7', ports, selector: { app: 'web' } })), {
    namespace: 'shop',
    name: 'web',
    clusterIP: '10.96.0.7',
    ports: [{ protocol: 'TCP', port: 80 }],
  })
  t.match(serviceLinkOf(service({ clusterIP: '10.96.0.7', ports: [{ name: 'dns', port: 53 }] })), {
    ports: [{ name: 'dns', port: 53 }],
  })
  for (const spec of [{ ports }, { clusterIP: '', ports }, { clusterIP: 'None', ports }, { clusterIP: '10.96.0.7' }]) {
    t.equal(serviceLinkOf(service(spec)), undefined)
  }
})

test('the Service of the API has variables of its own', async (t) => {
  const spec = { clusterIP: '10.96.0.1', ports }
  t.equal(serviceLinkOf(service(spec, 'kubernetes', 'default')), undefined)
  t.match(serviceLinkOf(service(spec, 'kubernetes')), { name: 'kubernetes' })
  t.match(serviceLinkOf(service(spec, 'web', 'default')), { namespace: 'default' })
})

test('variables have the names and the order of Kubernetes', async (t) => {
  const link = {
    namespace: 'shop',
    name: 'redis-primary',
    clusterIP: '10.0.0.11',
    ports: [{ port: 6379 }, { name: 'q-p', port: 8083, protocol: 'UDP' }],
  }
  t.same(serviceVariables(link), [
    ['REDIS_PRIMARY_SERVICE_HOST', '10.0.0.11'],
    ['REDIS_PRIMARY_SERVICE_PORT', '6379'],
    ['REDIS_PRIMARY_SERVICE_PORT_Q_P', '8083'],
    ['REDIS_PRIMARY_PORT', 'tcp://10.0.0.11:6379'],
    ['REDIS_PRIMARY_PORT_6379_TCP', 'tcp://10.0.0.11:6379'],
    ['REDIS_PRIMARY_PORT_6379_TCP_PROTO', 'tcp'],
    ['REDIS_PRIMARY_PORT_6379_TCP_PORT', '6379'],
    ['REDIS_PRIMARY_PORT_6379_TCP_ADDR', '10.0.0.11'],
    ['REDIS_PRIMARY_PORT_8083_UDP', 'udp://10.0.0.11:8083'],
    ['REDIS_PRIMARY_PORT_8083_UDP_PROTO', 'udp'],
    ['REDIS_PRIMARY_PORT_8083_UDP_PORT', '8083'],
    ['REDIS_PRIMARY_PORT_8083_UDP_ADDR', '10.0.0.11'],
  ])
  t.same(serviceVariables({ ...link, ports: [] }), [])
  t.match(serviceVariables({ ...link, clusterIP: 'fd00::1' })[2], ['REDIS_PRIMARY_SERVICE_PORT_Q_P'])
  t.match(serviceVariables({ ...link, clusterIP: 'fd00::1' })[3], ['REDIS_PRIMARY_PORT', 'tcp://[fd00::1]:6379'])
})
