import { type Test, test } from 'tap'
import { trustedAuthoritiesAnnotation } from '../../../api/node/hardware-identity.ts'
import type { Node, NodeStatus } from '../../../api/node.ts'
import type { ApiAnswer } from '../../../daemon/api-client.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { failureStatus, fakeApi } from '../../testing/fake-api.ts'
import {
  formerMachine,
  nodePatch,
  nodeToRegister,
  type RegistrationFacts,
  registration,
  registrationWaitMs,
} from './registration.ts'

const facts: RegistrationFacts = {
  nodeName: 'pi-7',
  operatingSystem: 'linux',
  architecture: 'arm64',
  hardware: { boardSerial: '10000000abcdef01', machineID: 'aaaa' },
  annotations: { 'bramble.dev/board': 'Raspberry Pi 4 Model B' },
  nodeLabels: { room: 'cellar', 'kubernetes.io/arch': 'arm' },
  taints: [{ key: 'slow', effect: 'NoSchedule' }],
}

test('a node is registered with the labels of Kubernetes, its taints and its hardware identity', async (t) => {
  const node = nodeToRegister(facts, { phase: 'filled' })
  t.same(node.metadata.labels, {
    'beta.kubernetes.io/arch': 'arm64',
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'arm',
    'kubernetes.io/hostname': 'pi-7',
    'kubernetes.io/os': 'linux',
    room: 'cellar',
  })
  t.match(node.metadata.annotations, {
    'bramble.dev/hardware-identity': '{"boardSerial":"10000000abcdef01","machineID":"aaaa"}',
    'bramble.dev/board': 'Raspberry Pi 4 Model B',
  })
  t.same(node.spec, { taints: facts.taints })
  t.same(node.status, { phase: 'filled' })
})

test('on an existing Node only the default labels are corrected', async (t) => {
  const there = nodeToRegister({ ...facts, nodeLabels: {} }, {})
  t.equal(nodePatch(there, facts), undefined, 'configured labels and taints are not changed')
  const edited: Node = {
    ...there,
    metadata: { ...there.metadata, labels: { ...there.metadata.labels, 'kubernetes.io/os': 'windows', mine: 'yes' } },
  }
  t.same(nodePatch(edited, facts), { metadata: { labels: { 'kubernetes.io/os': 'linux' } } })
})

test('a machine that restarts on request has an annotation of its Node, which is corrected later', async (t) => {
  const plain = { ...facts, nodeLabels: {} }
  const key = 'bramble.dev/remote-reboot'
  t.notOk(key in (nodeToRegister(plain, {}).metadata.annotations ?? {}))
  const enabled = nodeToRegister({ ...plain, allowsRemoteReboot: true }, {})
  t.equal(enabled.metadata.annotations?.[key], 'enabled')
  t.equal(nodePatch(enabled, { ...plain, allowsRemoteReboot: true }), undefined)
  t.same(nodePatch(enabled, plain), { metadata: { annotations: { [key]: 'disabled' } } })
  t.same(nodePatch(nodeToRegister(plain, {}), { ...plain, allowsRemoteReboot: true }), {
    metadata: { annotations: { [key]: 'enabled' } },
  })
})

test('a lease that is longer than usual is an annotation of the Node, and is corrected later', async (t) => {
  const plain = { ...facts, nodeLabels: {} }
  const key = 'bramble.dev/lease-duration-seconds'
  t.notOk(key in (nodeToRegister({ ...plain, leaseDurationSeconds: 40 }, {}).metadata.annotations ?? {}))
  const metered = nodeToRegister({ ...plain, leaseDurationSeconds: 1_200 }, {})
  t.equal(metered.metadata.annotations?.[key], '1200')
  t.same(nodePatch(nodeToRegister(plain, {}), { ...plain, leaseDurationSeconds: 1_200 }), {
    metadata: { annotations: { [key]: '1200' } },
  })
  t.same(nodePatch(metered, plain), { metadata: { annotations: { [key]: '40' } } })
})

test('a name that another machine had is detected', async (t) => {
  const there = nodeToRegister({ ...facts, hardware: { boardSerial: 'other', machineID: 'aaaa' } }, {})
  t.match(formerMachine(there, facts.hardware), { boardSerial: 'other' })
  t.equal(formerMachine(nodeToRegister(facts, {}), facts.hardware), undefined)
})

test('an agent that is stopped before its first status does not wait for it', async (t) => {
  const world = running(t, [], [], new Promise(() => undefined))
  await world.clock.settle()
  await world.stop()
  t.equal(world.registered(), 0)
})

function running(
  t: Test,
  planned: readonly (ApiAnswer | Error)[] = [],
  expectedErrors: readonly string[] = [],
  status: Promise<NodeStatus> = Promise.resolve({}),
) {
  const [api, clock, log] = [fakeApi(), fakeClock(), quietLog(t, ...expectedErrors)]
  for (const next of planned) api.next(next)
  let registered = 0
  const loop = registration({
    api,
    facts: async () => facts,
    status: () => status,
    registered: () => registered++,
    clock,
    log,
  })
  const stopping = new AbortController()
  const done = loop.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await done
  }
  t.teardown(stop)
  return { api, clock, log, stop, store: loop.store, again: loop.again, registered: () => registered }
}

test("the waits before registration are the kubelet's: 100 ms doubling to 7 s", (t) => {
  const waits = Array.from({ length: 9 }, (_, failures) => registrationWaitMs(failures))
  t.same(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000])
  t.equal(registrationWaitMs(5_000), 7_000)
  t.end()
})

test('registration is retried with growing waits until the controller answers', async (t) => {
  const away = Array.from({ length: 4 }, () => new Error('connect ECONNREFUSED'))
  const world = running(t, away)
  await world.clock.advance(99)
  t.equal(world.log.messages('warn').length, 0, 'the first attempt waits, too')
  await world.clock.advance(1 + 200 + 400 + 800 + 1599)
  t.equal(world.registered(), 0)
  await world.clock.advance(1)
  t.equal(world.registered(), 1)
  t.ok(world.api.nodes.has('pi-7'))
  t.same(world.log.messages('warn'), ['Cannot register the node yet, trying until it works'])
})

test('a second outage of the controller is logged again', async (t) => {
  const world = running(t, [new Error('connect ECONNREFUSED')])
  await world.clock.advance(1_000)
  world.store('store-1')
  world.api.next(new Error('connect ECONNREFUSED'))
  world.store('store-2')
  await world.clock.advance(1_000)
  t.equal(world.registered(), 2)
  t.equal(world.log.messages('warn').length, 2)
})

test('registration is done once', async (t) => {
  const world = running(t)
  await world.clock.advance(100)
  world.api.nodes.delete('pi-7')
  await world.clock.advance(3600_000)
  t.equal(world.registered(), 1)
  t.notOk(world.api.nodes.has('pi-7'), 'a node that an administrator deleted stays deleted')
})

test('the node registers again with a controller that has another store', async (t) => {
  const world = running(t)
  await world.clock.advance(100)
  world.store('store-1')
  world.store('store-1')
  await world.clock.advance(100)
  t.equal(world.registered(), 1)
  world.api.nodes.delete('pi-7')
  world.store('store-2')
  await world.clock.advance(100)
  t.equal(world.registered(), 2)
  t.ok(world.api.nodes.has('pi-7'))
})

test('a rejection is logged once with its remedy, and retried', async (t) => {
  const no = [
    failureStatus(403, 'nodes is forbidden: label "kubernetes.io/x" is reserved'),
    failureStatus(404, 'not found'),
  ]
  const world = running(
    t,
    [...no, ...no, ...no],
    ['The controller rejects this node, trying again until it accepts it'],
  )
  await world.clock.advance(10_000)
  t.equal(world.log.messages('error').length, 1)
  t.match(world.log.lines.find(({ level }) => level === 'error')?.facts['remedy'], /nodeLabels/)
  t.equal(world.registered(), 1)
})

test('a Node without taints or trusted authorities has no field for them', (t) => {
  const plain = nodeToRegister({ ...facts, taints: [] }, {})
  t.same(plain.spec, {})
  t.same(Object.keys(plain.metadata.annotations ?? {}).sort(), [
    'bramble.dev/board',
    'bramble.dev/hardware-identity',
    'volumes.kubernetes.io/controller-managed-attach-detach',
  ])
  const trusting = nodeToRegister({ ...facts, trusted: ['sha256:a', 'sha256:b'] }, {})
  t.equal(trusting.metadata.annotations?.[trustedAuthoritiesAnnotation], 'sha256:a,sha256:b')
  t.same(nodeToRegister({ ...facts, trusted: [] }, {}), nodeToRegister(facts, {}))
  t.end()
})

test('a Node without a hardware identity, or with one that cannot be read, had no other machine', (t) => {
  const there = nodeToRegister(facts, {})
  const annotated = (annotations: { readonly [name: string]: string } | undefined): Node => {
    const { annotations: _, ...metadata } = there.metadata
    return { ...there, metadata: annotations === undefined ? metadata : { ...metadata, annotations } }
  }
  const other = { boardSerial: 'zzz', machineID: 'zzz' }
  t.equal(formerMachine(annotated(undefined), other), undefined)
  t.equal(formerMachine(annotated({ note: 'x' }), other), undefined)
  t.equal(formerMachine(annotated({ 'bramble.dev/hardware-identity': 'no JSON' }), other), undefined)
  t.match(formerMachine(there, other), facts.hardware)
  t.end()
})

test('a machine that takes over a name logs it, and corrects the Node', async (t) => {
  const world = running(t)
  world.api.nodes.set('pi-7', nodeToRegister({ ...facts, nodeLabels: {}, hardware: { machineID: 'bbbb' } }, {}))
  await world.clock.advance(100)
  t.match(world.log.lines, [
    {
      level: 'warn',
      message: 'Another machine had the name of this node before',
      facts: { node: 'pi-7', before: /bbbb/, now: /10000000abcdef01/ },
    },
    {
      level: 'info',
      message: 'Node is registered already, updated',
      facts: { node: 'pi-7', changed: ['annotations'] },
    },
  ])
  t.equal(world.registered(), 1)
})

test('a Node that is as it must be is not changed', async (t) => {
  const world = running(t)
  world.api.nodes.set('pi-7', nodeToRegister({ ...facts, nodeLabels: {} }, {}))
  await world.clock.advance(100)
  t.match(world.log.lines, [{ message: 'Node is registered already', facts: { node: 'pi-7' } }])
  t.equal(world.log.lines.length, 1)
  t.equal(world.registered(), 1)
})

test('each rejection names the remedy for its status', async (t) => {
  for (const [status, remedy] of [
    [401, /Join again with a new token/],
    [403, /certificate is for another name/],
    [422, /correct nodeLabels or registerWithTaints/],
    [500, /See the controller's log/],
  ] as const) {
    const rejected = 'The controller rejects this node, trying again until it accepts it'
    const world = running(t, [failureStatus(status, 'no'), failureStatus(404, 'not found')], [rejected])
    await world.clock.advance(100)
    t.match(world.log.lines, [
      { level: 'error', facts: { remedy, error: { message: `Cannot create node pi-7: ${status} no` } } },
    ])
    await world.stop()
  }
})

test('changed facts are registered at once', async (t) => {
  const world = running(t)
  await world.clock.advance(100)
  t.match(world.log.lines, [{ message: 'Node registered', facts: { node: 'pi-7' } }])
  world.again()
  await world.clock.advance(100)
  t.equal(world.registered(), 2)
})

test('another store is logged with the one before', async (t) => {
  const world = running(t)
  await world.clock.advance(100)
  world.store('one')
  world.store('two')
  t.match(world.log.lines.at(-1), { level: 'info', facts: { store: 'two', before: 'one' } })
})
