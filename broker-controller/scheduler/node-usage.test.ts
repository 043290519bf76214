import { test } from 'tap'
import { aNode, aPod, type PodOverrides } from '../../api/testing/builders.ts'
import { nodeInfo } from './node-usage.ts'
import type { HostPort } from './pod-needs.ts'

const mebibyte = 2 ** 20
const port = (number: number, ip = '', protocol = 'TCP'): HostPort => ({ port: number, ip, protocol })
function listening(...ports: readonly HostPort[]) {
  const written = ports.map(({ port: hostPort, ip: hostIP, protocol }) => ({
    ...{ containerPort: 80, hostPort, hostIP, protocol },
  }))
  return aPod({ containers: [{ name: 'c', ports: written }] })
}

test('the requests of pods are added up, and taken off again', async (t) => {
  const info = nodeInfo(aNode())
  const sums = () => [
    info.podCount,
    info.requested('cpu'),
    info.scored('cpu'),
    info.requested('memory') / mebibyte,
    info.scored('memory') / mebibyte,
  ]
  t.same(sums(), [0, 0, 0, 0, 0])
  info.add('a', aPod({ requests: { cpu: '1', memory: '1Gi' } }))
  info.add('b', aPod())
  t.same(sums(), [2, 1000, 1100, 1024, 1224])
  info.add('a', aPod({ requests: { cpu: '2' } }))
  t.same(sums(), [2, 2000, 2100, 0, 400], 'a pod that is added again is counted as it is now')
  info.remove('a')
  info.remove('a')
  info.remove('unknown')
  t.same(sums(), [1, 0, 100, 0, 200])
  t.same([...info.pods.keys()], ['b'])
  t.equal(info.requested('example.com/camera'), 0)
})

test('a node has a pod below a priority until the last one is gone', async (t) => {
  const info = nodeInfo(aNode())
  const below = (...priorities: readonly number[]) => priorities.map((priority) => info.hasPodBelow(priority))
  const of = (over: PodOverrides) => aPod(over)
  t.same(below(10), [false])
  info.add('a', of({ priority: 5 }))
  info.add('b', of({ priority: 5 }))
  info.add('c', of({}))
  t.same(below(0, 1, 5, 6), [false, true, true, true])
  info.remove('c')
  t.same(below(5, 6), [false, true])
  info.remove('a')
  t.same(below(6), [true])
  info.remove('b')
  t.same(below(6), [false])
})

test('ports meet at one address, or where one of both is of all addresses', async (t) => {
  const cases: readonly (readonly [taken: HostPort, wanted: HostPort, isConflict: boolean])[] = [
    [port(80), port(80), true],
    [port(80), port(81), false],
    [port(80), port(80, '', 'UDP'), false],
    [port(80, '', 'SCTP'), port(80, '', 'SCTP'), true],
    [port(80), port(80, '192.0.2.1'), true],
    [port(80, '0.0.0.0'), port(80, '192.0.2.1'), true],
    [port(80, '192.0.2.1'), port(80), true],
    [port(80, '192.0.2.1'), port(80, '192.0.2.1'), true],
    [port(80, '192.0.2.1'), port(80, '192.0.2.2'), false],
    [port(80, '::'), port(80, '2001:db8::1'), true],
    [port(80, '::'), port(80, '192.0.2.1'), false],
    [port(80, '2001:db8::1'), port(80, '2001:DB8:0::1'), true],
    [port(80, '2001:db8::1'), port(80, '2001:db8::2'), false],
    [port(80, '2001:db8::1'), port(80), true],
  ]
  for (const [taken, wanted, isConflict] of cases) {
    const info = nodeInfo(aNode())
    info.add('a', listening(taken))
    const title = `${taken.protocol} ${taken.ip}:${taken.port} and ${wanted.protocol} ${wanted.ip}:${wanted.port}`
    t.equal(info.hasConflict([wanted]), isConflict, title)
    info.add('b', listening(port(80, '198.51.100.1'), port(80, '198.51.100.1', 'UDP')))
    if (wanted.ip !== '') t.equal(info.hasConflict([wanted]), isConflict, `${title}, beside another address`)
    info.remove('a')
    info.remove('b')
    t.equal(info.hasConflict([wanted]), false, `${title}, after its pod has gone`)
  }
})

test('a port is free when the last of its pods is gone, and any of several ports may meet', async (t) => {
  const info = nodeInfo(aNode())
  t.equal(info.hasConflict([port(80)]), false)
  info.add('a', listening(port(80, '192.0.2.1'), port(81)))
  info.add('b', listening(port(80, '192.0.2.1')))
  t.equal(info.hasConflict([]), false)
  t.equal(info.hasConflict([port(90), port(81)]), true)
  info.remove('a')
  t.same([info.hasConflict([port(81)]), info.hasConflict([port(80, '192.0.2.1')])], [false, true])
  info.remove('b')
  t.equal(info.hasConflict([port(80)]), false)
})

test('a node that changes keeps its pods, and has the amounts and taints that it has now', async (t) => {
  const info = nodeInfo(aNode({ allocatable: { cpu: '2' } }))
  info.add('a', aPod({ requests: { cpu: '1' } }))
  info.become(aNode({ allocatable: { cpu: '3' }, taints: [{ key: 'a', effect: 'NoSchedule' }], labels: { a: 'b' } }))
  t.same(
    [info.allocatable.get('cpu'), info.taints.length, info.labels['a'], info.requested('cpu')],
    [3000, 1, 'b', 1000],
  )
  const { status } = info.node
  info.become({ ...aNode(), ...(status && { status }) })
  t.same([info.allocatable.get('cpu'), info.taints], [3000, []])
  const { labels: _, ...bare } = aNode().metadata
  info.become({ ...aNode(), metadata: bare, spec: undefined })
  t.same([info.labels, info.taints], [{}, []])
})
