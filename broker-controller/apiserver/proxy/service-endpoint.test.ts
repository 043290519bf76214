import { test } from 'tap'
import type { EndpointSubset } from '../../../api/network/endpoints.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { serviceAddresses } from './service-endpoint.ts'

const key = { namespace: 'default', name: 'web' }
const targetRef = (name: string, namespace = 'default') => ({ kind: 'Pod', namespace, name })
const http = { name: 'http', port: 8080 }

async function aService(...subsets: readonly EndpointSubset[]) {
  const store = memoryStore({ clock: fakeClock() })
  const ports = [{ name: 'http', port: 80 }, { port: 53 }]
  await store.create('services', { apiVersion: 'v1', kind: 'Service', metadata: { ...key }, spec: { ports } })
  await store.create('endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata: { ...key }, subsets })
  for (const [name, podIP] of [
    ['a', '10.0.0.1'],
    ['b', '10.0.0.2'],
  ] as const) {
    const { metadata: _, ...pod } = aPod({ nodeName: 'pi-01', status: { podIP, podIPs: [{ ip: podIP }] } })
    await store.create('pods', { ...pod, metadata: { namespace: 'default', name } })
  }
  /** `IP:PORT POD` of each address, then the error. */
  return async (port: string, random = 0, name = key.name) => {
    const search = { key: { ...key, name }, port, id: port === '' ? name : `${name}:${port}` }
    const found: string[] = []
    try {
      for await (const one of serviceAddresses({ store, random: () => random }, search)) {
        found.push(`${one.ip}:${one.port} ${one.pod?.metadata.name ?? 'no pod'}`)
      }
    } catch (error) {
      found.push(error instanceof Error ? error.message : String(error))
    }
    return found
  }
}
const none = (id: string) => `no endpoints available for service "${id}"`

test('a port is named, or has the number of one of the Service', async (t) => {
  const at = await aService({
    addresses: [{ ip: '10.0.0.1', targetRef: targetRef('a') }],
    ports: [http, { port: 5353 }],
  })
  t.same(await at('http'), ['10.0.0.1:8080 a', none('web:http')])
  t.same(await at('80'), ['10.0.0.1:8080 a', none('web:80')])
  t.same(await at('53'), ['10.0.0.1:5353 a', none('web:53')])
  t.same(await at(''), ['10.0.0.1:5353 a', none('web')], 'the one without a name')
  t.same(await at('dns'), [none('web:dns')])
  t.same(await at('8080'), ['no service port 8080 found for service "web"'])
})

test('each ready address comes once, from a random one on', async (t) => {
  const at = await aService(
    {
      addresses: [
        { ip: '10.0.0.1', targetRef: targetRef('a') },
        { ip: '10.0.0.2', targetRef: targetRef('b') },
      ],
      notReadyAddresses: [{ ip: '10.0.0.3' }],
      ports: [http],
    },
    { addresses: [{ ip: '192.168.0.1' }], ports: [{ name: 'http', port: 90 }] },
  )
  const [a, b, c] = ['10.0.0.1:8080 a', '10.0.0.2:8080 b', '192.168.0.1:90 no pod']
  t.same(await at('http'), [a, b, c, none('web:http')])
  t.same(await at('http', 0.5), [b, c, a, none('web:http')])
  t.same(await at('http', 0.99), [c, a, b, none('web:http')])
})

test('the address of a pod counts only while the pod of the namespace has it', async (t) => {
  const at = await aService({
    addresses: [
      { ip: '10.0.0.9', targetRef: targetRef('a') },
      { ip: '10.0.0.1', targetRef: targetRef('a', 'other') },
      { ip: '10.0.0.1', targetRef: targetRef('none') },
      { ip: '10.0.0.2', targetRef: targetRef('b') },
      { ip: '10.0.0.3', targetRef: { kind: 'Node', name: 'pi-01' } },
    ],
    ports: [http],
  })
  t.same(await at('http'), ['10.0.0.2:8080 b', '10.0.0.3:8080 no pod', none('web:http')])
})

test('a Service without subsets, and one that does not exist, are named', async (t) => {
  const at = await aService()
  t.same(await at('http'), [none('web')])
  t.same(await at('http', 0, 'none'), ['endpoints "none" not found'])
  t.same(await at('80', 0, 'none'), ['services "none" not found'])
})
