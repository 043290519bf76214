import { test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../store/memory-store.ts'
import { kubernetesServiceController } from './kubernetes-service-controller.ts'

const key = { namespace: 'default', name: 'kubernetes' }

test('the Service of the API has the first address of the range, and names where the API is reached', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const at = async (address: string, port: number) => {
    const stop = new AbortController()
    const needs = { store, clock: systemClock, log: quietLog(t) }
    const running = kubernetesServiceController(needs, { serviceCIDR: '10.96.0.0/12', address, port }).run(stop.signal)
    stop.abort()
    await running
  }
  await at('192.168.1.10', 6443)
  t.match(await store.get('services', key), {
    metadata: { labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, targetPort: 6443 }] },
  })
  t.match(await store.get('endpoints', key), {
    subsets: [{ addresses: [{ ip: '192.168.1.10' }], ports: [{ port: 6443 }] }],
  })
  t.match(await store.get('endpointslices', key), {
    metadata: { labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.168.1.10'], conditions: { ready: true } }],
  })
  const before = await store.version()
  await at('192.168.1.10', 6443)
  t.equal(await store.version(), before, 'nothing is written while it is right')

  await store.delete('endpointslices', key)
  await at('192.168.1.11', 7443)
  t.match(await store.get('services', key), { spec: { clusterIP: '10.96.0.1', ports: [{ targetPort: 7443 }] } })
  t.match(await store.get('endpoints', key), { subsets: [{ addresses: [{ ip: '192.168.1.11' }] }] })
  t.match(await store.get('endpointslices', key), { endpoints: [{ addresses: ['192.168.1.11'] }] })
})

test('a name is no endpoint', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const stop = new AbortController()
  const location = { serviceCIDR: '10.96.0.0/12', address: 'controller.example.com', port: 6443 }
  const needs = { store, clock: systemClock, log: quietLog(t) }
  const running = kubernetesServiceController(needs, location).run(stop.signal)
  stop.abort()
  await running
  t.match(await store.get('services', key), { spec: { clusterIP: '10.96.0.1' } })
  t.equal(await store.get('endpoints', key), undefined)
})
