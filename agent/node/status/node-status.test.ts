import { test } from 'tap'
import { nodeConditions } from './conditions.ts'
import { isWorthReporting, type NodeFacts, nodeStatus } from './node-status.ts'

const early = '2026-01-02T03:04:05Z'
const late = '2026-01-02T03:14:05Z'

const facts: NodeFacts = {
  capacity: { cpu: 4, memory: 1024 ** 3, pods: 110 },
  allocatable: { cpu: 4, memory: 1024 ** 3 / 2, pods: 110 },
  addresses: [
    { type: 'InternalIP', address: '192.168.1.7' },
    { type: 'Hostname', address: 'pi-7' },
  ],
  system: {
    machineID: 'aaaa',
    systemUUID: 'bbbb',
    bootID: 'cccc',
    kernelVersion: '6.12.34',
    osImage: 'Debian GNU/Linux 12 (bookworm)',
    operatingSystem: 'linux',
    architecture: 'arm64',
  },
  agentVersion: 'v1.32.0',
  runtimeVersion: 'docker://20.10.24',
  images: [],
  conditions: nodeConditions([], { pressures: [], problems: [] }, early),
}

test('a node status carries everything kubectl shows of a node', async (t) => {
  const status = nodeStatus(facts)
  t.match(status, {
    capacity: { cpu: '4', memory: '1048576Ki', pods: '110' },
    allocatable: { memory: '524288Ki' },
    addresses: facts.addresses,
    daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
    nodeInfo: { containerRuntimeVersion: 'docker://20.10.24', kubeletVersion: 'v1.32.0', architecture: 'arm64' },
  })
  t.equal(nodeStatus({ ...facts, runtimeVersion: undefined }).nodeInfo?.containerRuntimeVersion, 'docker://Unknown')
})

test('a node status lists the runtimes of the engine, that of pods without a RuntimeClass without a name', async (t) => {
  const features = { recursiveReadOnlyMounts: true, userNamespaces: false }
  const runtimeHandlers = [
    { name: '', ...features },
    { name: 'runc', ...features },
  ]
  t.same(nodeStatus({ ...facts, runtimeHandlers }).runtimeHandlers, [{ features }, { name: 'runc', features }])
  t.notOk('runtimeHandlers' in nodeStatus(facts), 'the engine has not answered')
})

test('of many images the largest are reported, digests before tags', async (t) => {
  const images = Array.from({ length: 60 }, (_, i) => ({
    id: `sha256:${i}`,
    digests: [`web@sha256:${i}`],
    tags: [`web:${i}`, 'b', 'c', 'd', 'e'],
    sizeBytes: i,
  }))
  const unnamed = { id: 'sha256:x', digests: [], tags: [], sizeBytes: 1000 }
  const reported = nodeStatus({ ...facts, images: [...images, unnamed] }).images ?? []
  t.equal(reported.length, 50)
  t.same(reported[0], { names: ['web@sha256:59', 'web:59', 'b', 'c', 'd'], sizeBytes: 59 })
})

test('images of one size are reported in the order of their ids, so that an unchanged node reports nothing', async (t) => {
  const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id, digests: [], tags: [id], sizeBytes: 1 }))
  const names = (images: readonly (typeof a)[]) =>
    nodeStatus({ ...facts, images: images.flatMap((image) => image ?? []) }).images?.map((image) => image.names?.[0])
  t.same(names([b, c, a]), ['a', 'b', 'c'])
  t.same(names([c, b, a]), ['a', 'b', 'c'])
  t.same(names([a, b, c]), ['a', 'b', 'c'])
})

test('a pass that finds nothing new is not worth a report', async (t) => {
  const first = nodeStatus(facts)
  const again = nodeStatus({
    ...facts,
    conditions: nodeConditions(facts.conditions, { pressures: [], problems: [] }, late).toReversed(),
  })
  t.equal(isWorthReporting(undefined, first), true)
  t.equal(isWorthReporting(first, again), false)
})

test('a new address, a pressure or another sentence is', async (t) => {
  const first = nodeStatus(facts)
  const moved = nodeStatus({ ...facts, addresses: [{ type: 'InternalIP', address: '192.168.1.8' }] })
  const pressed = nodeConditions(facts.conditions, { pressures: ['MemoryPressure'], problems: [] }, late)
  t.equal(isWorthReporting(first, moved), true)
  t.equal(isWorthReporting(first, nodeStatus({ ...facts, conditions: pressed })), true)
})
