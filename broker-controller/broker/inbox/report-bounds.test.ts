import { test } from 'tap'
import type { NodeStatus } from '../../../api/node.ts'
import { boundedNodeStatus, boundedPodStatus } from './report-bounds.ts'

const many = <T>(count: number, item: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, i) => item(i))

test('a report within the bounds is taken as it is', async (t) => {
  const status: NodeStatus = {
    capacity: { pods: '110' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }],
    images: [{ names: ['a', 'b'], sizeBytes: 7 }],
  }
  const bounded = boundedNodeStatus(status)
  t.same(bounded, { status, cut: [] })
  t.equal(bounded.status.images, status.images, 'and is not copied')
  t.equal(bounded.status.conditions, status.conditions)
  t.same(boundedPodStatus({ phase: 'Running' }), { status: { phase: 'Running' }, cut: [] })
})

test('lists and texts of a node that are too long are cut, and named', async (t) => {
  const { status, cut } = boundedNodeStatus({
    capacity: Object.fromEntries(many(1000, (i) => [`example.com/r${i}`, '1'])),
    conditions: [
      ...many(1000, (i) => ({ type: `Made${i}`, status: 'True', message: 'x'.repeat(100_000) }) as const),
      { type: 'Ready', status: 'True' },
    ],
    images: many(1000, () => ({ names: many(1000, () => 'x'.repeat(10_000)) })),
    volumesInUse: many(10_000, () => 'x'.repeat(10_000)),
    volumesAttached: many(10_000, () => ({ name: 'v', devicePath: '' })),
    addresses: many(1000, () => ({ type: 'InternalIP', address: '192.0.2.1' }) as const),
  })
  t.ok(JSON.stringify(status).length < 1_200_000)
  t.equal(status.conditions?.[0]?.type, 'Ready', 'what the fleet judges it by stays')
  t.same([...cut].sort(), [
    'addresses',
    'capacity',
    'conditions',
    'conditions.message',
    'images',
    'images.names',
    'volumesAttached',
    'volumesInUse',
  ])
})

test('lists and texts of a pod that are too long are cut, and named', async (t) => {
  const { status, cut } = boundedPodStatus({
    message: 'x'.repeat(100_000),
    conditions: many(1000, (i) => ({ type: `T${i}`, status: 'True' }) as const),
    podIPs: many(1000, () => ({ ip: '192.0.2.1' })),
  })
  t.same([status.message?.length, status.conditions?.length, status.podIPs?.length], [4096, 64, 1])
  t.same([...cut].sort(), ['conditions', 'message', 'podIPs'])
})

test('of the addresses of a pod one of each IP family is kept, and texts that are not addresses are not', (t) => {
  const both = [{ ip: '10.244.1.5' }, { ip: 'fd00::5' }]
  const fine = { hostIP: '192.0.2.1', hostIPs: [{ ip: '192.0.2.1' }], podIP: '10.244.1.5', podIPs: both }
  t.same(boundedPodStatus(fine), { status: fine, cut: [] })
  const { status, cut } = boundedPodStatus({
    hostIP: 'x'.repeat(60_000),
    hostIPs: [{ ip: '' }],
    podIP: 'localhost',
    podIPs: [{ ip: 'localhost' }, ...both, { ip: '10.244.1.6' }, { ip: 'fd00::6' }, { ip: '10.244.1.0/24' }],
  })
  t.same(status, { hostIPs: [], podIP: '10.244.1.5', podIPs: both })
  const other = boundedPodStatus({ podIP: '10.244.1.5', podIPs: [{ ip: '10.244.9.9' }] })
  t.same(other.status.podIPs, [{ ip: '10.244.1.5' }], 'as the API pairs them')
  t.same([...cut].sort(), ['hostIP', 'hostIPs', 'podIP', 'podIPs'])
  t.end()
})
