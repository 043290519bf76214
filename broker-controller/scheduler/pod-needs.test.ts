import { test } from 'tap'
import type { Container, PodSpec } from '../../api/pod.ts'
import { aNode, aPod, type PodOverrides } from '../../api/testing/builders.ts'
import { cluster } from './cluster.ts'
import { nodeAmounts, podNeeds } from './pod-needs.ts'

test('the most of init steps and the sum of containers counts, sidecars with both', async (t) => {
  const asking = (cpu: string) => ({ name: `c${cpu}`, resources: { requests: { cpu } } })
  const pod = aPod({
    containers: [asking('500m'), asking('500m')],
    spec: { initContainers: [{ ...asking('1'), restartPolicy: 'Always' }, asking('3')], overhead: { cpu: '10m' } },
  })
  t.equal(podNeeds(pod).requests.get('cpu'), 4010)
})

test('pods that ask for the same share one record of it, and others do not', async (t) => {
  const [one, other] = [aPod({ name: 'a', requests: { cpu: '1' } }), aPod({ name: 'b', requests: { cpu: '1000m' } })]
  t.equal(podNeeds(one).requests, podNeeds(other).requests)
  const more = podNeeds(aPod({ name: 'c', requests: { cpu: '2' } }))
  t.not(more.requests, podNeeds(one).requests)
  t.same([...more.requests], [['cpu', 2000]])
})

test('equal amounts are held once, and host ports belong to their pod', async (t) => {
  const asking = (cpu: string, hostPort?: number) => {
    const pod = aPod({ requests: { cpu } })
    const containers = pod.spec.containers.map((one) => ({
      ...one,
      ...(hostPort !== undefined && { ports: [{ containerPort: 80, hostPort }] }),
    }))
    return podNeeds({ ...pod, spec: { ...pod.spec, containers } })
  }
  t.equal(asking('1'), asking('1000m'))
  t.not(asking('1'), asking('2'))
  t.match([asking('1'), asking('2')], [{ ports: [] }, { ports: [] }])
  t.match([asking('1', 80), asking('1', 81)], [{ ports: [{ port: 80 }] }, { ports: [{ port: 81 }] }])
  const known = cluster()
  for (const name of ['a', 'b']) known.putNode(aNode({ name, allocatable: { cpu: '4', memory: '4Gi' } }))
  known.putNode(aNode({ name: 'c', allocatable: { cpu: '8', memory: '4Gi' } }))
  t.equal(known.node('a')?.allocatable, known.node('b')?.allocatable)
  t.same(
    [known.node('a'), known.node('c')].map((node) => node?.allocatable.get('cpu')),
    [4000, 8000],
  )
})

test('a node whose resource has the text of two as its name takes nothing from the others', async (t) => {
  const known = cluster()
  known.putNode(aNode({ name: 'a', allocatable: { 'cpu=4000,memory': '5Gi' } }))
  known.putNode(aNode({ name: 'b', allocatable: { cpu: '4', memory: '5Gi' } }))
  t.equal(known.node('b')?.allocatable.get('cpu'), 4000)
})

const asks = (cpu: string, more: Partial<Container> = {}): Container => ({
  ...{ name: 'c', resources: { requests: { cpu } } },
  ...more,
})
const sidecar = { restartPolicy: 'Always' }

test('a pod needs what its containers need together, or an init step with the sidecars before it', async (t) => {
  const cases: readonly (readonly [title: string, Partial<PodSpec>, cpu: number | undefined])[] = [
    ['nothing', { containers: [{ name: 'c' }] }, undefined],
    ['the sum', { containers: [asks('500m'), asks('1')] }, 1500],
    ['a smaller init step', { containers: [asks('1')], initContainers: [asks('500m')] }, 1000],
    ['a larger init step', { containers: [asks('1')], initContainers: [asks('3'), asks('2')] }, 3000],
    ['a sidecar', { containers: [asks('1')], initContainers: [asks('500m', sidecar)] }, 1500],
    ['a step after a sidecar', { containers: [asks('1')], initContainers: [asks('2', sidecar), asks('3')] }, 5000],
    ['a step before a sidecar', { containers: [asks('1')], initContainers: [asks('3'), asks('1', sidecar)] }, 3000],
    ['overhead', { containers: [asks('1')], initContainers: [asks('3')], overhead: { cpu: '10m' } }, 3010],
    ['a limit alone', { containers: [{ name: 'c', resources: { limits: { cpu: '2' } } }] }, 2000],
    [
      'a limit and a request',
      { containers: [{ name: 'c', resources: { limits: { cpu: '2' }, requests: { cpu: '1' } } }] },
      1000,
    ],
    ['part of a thousandth', { containers: [asks('0.0001')] }, 1],
  ]
  for (const [title, spec, cpu] of cases) t.equal(podNeeds(aPod({ spec })).requests.get('cpu'), cpu, title)
})

test('each resource is counted by itself', async (t) => {
  const requests = { memory: '1Gi', 'example.com/camera': '1' }
  const initContainers = [asks('2'), { name: 'i', resources: { requests } }]
  const needs = podNeeds(aPod({ requests: { cpu: '1', 'ephemeral-storage': '1k' }, spec: { initContainers } }))
  t.same(Object.fromEntries(needs.requests), {
    ...{ cpu: 2000, memory: 2 ** 30, 'example.com/camera': 1, 'ephemeral-storage': 1000 },
  })
})

test('for a score each container that asks for nothing counts 100m and 200 MiB', async (t) => {
  const mebibyte = 2 ** 20
  const scored = (...containers: readonly Container[]) => {
    const { scored: amounts } = podNeeds(aPod({ containers }))
    return [amounts.get('cpu'), (amounts.get('memory') ?? 0) / mebibyte]
  }
  t.same(scored({ name: 'c' }, { name: 'd' }), [200, 400])
  t.same(scored(asks('1')), [1000, 200])
  t.same(scored({ name: 'c', resources: { requests: { cpu: '0', memory: '0' } } }), [0, 0], 'a request of zero is one')
  t.same(scored({ name: 'c', resources: { limits: { memory: '1Gi' } } }), [100, 1024])
})

test('host ports are those of the containers that run as long as the pod', async (t) => {
  const listening = (
    port: Partial<NonNullable<Container['ports']>[number]>,
    more: Partial<Container> = {},
  ): Container => ({
    ...{ name: 'c', ports: [{ containerPort: 80, ...port }] },
    ...more,
  })
  const usual = { protocol: 'TCP', ip: '', port: 8080 }
  const cases: readonly (readonly [title: string, PodOverrides, ports: readonly object[]])[] = [
    ['none', { containers: [listening({})] }, []],
    ['0 does not count', { containers: [listening({ hostPort: 0 })] }, []],
    ['one', { containers: [listening({ hostPort: 8080 })] }, [usual]],
    [
      'its address and protocol',
      { containers: [listening({ hostPort: 8080, hostIP: '192.0.2.1', protocol: 'UDP' })] },
      [{ ...usual, ip: '192.0.2.1', protocol: 'UDP' }],
    ],
    [
      'of the network of the node',
      { containers: [listening({})], spec: { hostNetwork: true } },
      [{ ...usual, port: 80 }],
    ],
    ['of a sidecar', { spec: { initContainers: [listening({ hostPort: 8080 }, sidecar)] } }, [usual]],
    ['of an init step', { spec: { initContainers: [listening({ hostPort: 8080 })] } }, []],
  ]
  for (const [title, over, ports] of cases) t.same(podNeeds(aPod(over)).ports, ports, title)
})

test('a node without a status has nothing', async (t) => {
  t.equal(nodeAmounts({ ...aNode(), status: {} }).size, 0)
})
