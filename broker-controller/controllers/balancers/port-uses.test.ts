import { test } from 'tap'
import type { Service } from '../../../api/network/service.ts'
import type { Container } from '../../../api/pod.ts'
import { aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { hostPortUses, nodePortsOf } from './port-uses.ts'

const listening = (hostPort: number, more: Partial<Container> = {}): Container => ({
  ...{ name: `c${hostPort}`, ports: [{ containerPort: 80, hostPort }], ...more },
})
const on = (nodeName: string, over: PodOverrides = {}) => aPod({ nodeName, containers: [listening(80)], ...over })
const shown = (uses: ReturnType<typeof hostPortUses>) =>
  Object.fromEntries([...uses.byNode()].map(([node, ports]) => [node, [...ports].sort()]))

test('the host ports of a pod are those of the containers that run as long as it does', async (t) => {
  const sidecar = listening(81, { restartPolicy: 'Always' })
  const udp: Container = { name: 'dns', ports: [{ containerPort: 53, hostPort: 53, protocol: 'UDP' }] }
  const cases: readonly (readonly [title: string, PodOverrides, ports: readonly string[]])[] = [
    ['of a container', {}, ['TCP/80']],
    ['of several', { containers: [listening(80), udp] }, ['TCP/80', 'UDP/53']],
    ['of a sidecar', { spec: { initContainers: [sidecar] } }, ['TCP/80', 'TCP/81']],
    ['of an init container that ends', { spec: { initContainers: [listening(82)] } }, ['TCP/80']],
    ['without one', { containers: [{ name: 'c', ports: [{ containerPort: 80 }] }] }, []],
    ['0 does not count', { containers: [listening(0)] }, []],
    ['a pod that has succeeded', { phase: 'Succeeded' }, []],
    ['a pod that has failed', { phase: 'Failed' }, []],
  ]
  for (const [title, over, ports] of cases) {
    const uses = hostPortUses()
    t.equal(uses.put('a', on('pi-1', over)), ports.length > 0, title)
    t.same(shown(uses), ports.length === 0 ? {} : { 'pi-1': ports }, title)
  }
})

test('a change is one only where ports come to a node or leave it', async (t) => {
  const uses = hostPortUses()
  t.equal(uses.put('a', on('')), false, 'it has no node')
  t.equal(uses.put('a', on('pi-1')), true)
  t.equal(uses.put('a', on('pi-1', { phase: 'Running' })), false)
  t.equal(uses.put('a', on('pi-2')), true, 'another pod of its uid: restored, or the object was made again')
  t.same(shown(uses), { 'pi-2': ['TCP/80'] })
  t.equal(uses.put('b', on('pi-2', { containers: [listening(81)] })), true)
  t.same(shown(uses), { 'pi-2': ['TCP/80', 'TCP/81'] })
  t.equal(uses.put('a', on('pi-2', { phase: 'Succeeded' })), true)
  t.equal(uses.put('a', undefined), false)
  t.equal(uses.put('b', undefined), true)
  t.same(shown(uses), {})
})

test('the node ports of a Service are those of its type', async (t) => {
  const ports = [{ port: 80, nodePort: 30_080 }, { port: 53, nodePort: 30_053, protocol: 'UDP' as const }, { port: 81 }]
  const of = (type: string) => nodePortsOf({ apiVersion: 'v1', kind: 'Service', metadata: {}, spec: { type, ports } })
  const both = ['TCP/30080', 'UDP/30053']
  t.same([of('NodePort'), of('LoadBalancer'), of('ClusterIP')], [both, both, []])
  const bare: Service = { apiVersion: 'v1', kind: 'Service', metadata: {} }
  t.same(nodePortsOf(bare), [])
})
