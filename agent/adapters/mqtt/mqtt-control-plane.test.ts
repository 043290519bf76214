import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import type { Desired } from '../../../api/desired.ts'
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'
import type { NodeStatus } from '../../../api/node.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { PodMessage, StatsMessage } from '../../../api/topics.ts'
import { type Clock, systemClock } from '../../../daemon/clock.ts'
import { type QuietLog, quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { ControlPlaneListener } from '../../node/connection/control-plane.ts'
import { type Mosquitto, mosquitto, type NodeKeys, noMosquitto } from '../../testing/mosquitto.ts'
import { until } from '../../testing/until.ts'
import { type MqttControlPlane, type MqttControlPlaneSettings, mqttControlPlane } from './mqtt-control-plane.ts'
import { type MqttLink, openLink } from './mqtt-link.ts'

const skip = noMosquitto
const base = 'bramble/v1/nodes/pi-1'
const forever = new AbortController().signal

async function broker(t: Test): Promise<Mosquitto> {
  const made = await mosquitto()
  t.teardown(() => made.remove())
  await made.start()
  return made
}

function settingsFor(url: string, keys: NodeKeys): MqttControlPlaneSettings {
  return { nodeName: 'pi-1', mqttUrl: url, ...keys, agentVersion: 'v1', bootID: 'boot-1' }
}

type Agent = MqttControlPlane & {
  readonly log: QuietLog
  readonly received: readonly Desired[]
  readonly times: readonly { readonly wallMs: number; readonly isLive: boolean }[]
  stop(): Promise<void>
}

function agent(
  t: Test,
  settings: MqttControlPlaneSettings,
  clock: Clock = systemClock,
  listener: Omit<ControlPlaneListener, 'desired' | 'controllerTime'> = {},
): Agent {
  const log = quietLog(t)
  const link = mqttControlPlane({ clock, random: () => 0.02, log }, settings)
  const received: Desired[] = []
  const stopping = new AbortController()
  const times: { readonly wallMs: number; readonly isLive: boolean }[] = []
  const running = link.run(
    {
      ...listener,
      desired: (message) => received.push(message),
      controllerTime: (wallMs, isLive) => void times.push({ wallMs, isLive }),
    },
    stopping.signal,
  )
  const stop = async () => {
    stopping.abort()
    await running
  }
  t.teardown(stop)
  return Object.assign(Object.create(link) as MqttControlPlane, { log, received, times, stop })
}

type Message = { readonly topic: string; readonly body: string }
type Observer = MqttLink & { readonly messages: Message[]; last(topic: string): string | undefined }

/** Another client of the broker, which receives everything. */
async function observer(t: Test, at: Mosquitto, topics: readonly string[] = ['bramble/v1/#']): Promise<Observer> {
  const messages: Message[] = []
  const { port } = at
  const link = await openLink(
    {
      host: 'localhost',
      port,
      clientId: `observer-${messages.length}-${Math.random()}`,
      ...at.keysOf('observer'),
      keepaliveSeconds: 10,
      will: { topic: 'observer', body: '' },
    },
    (topic, body) => messages.push({ topic, body }),
    forever,
  )
  t.teardown(() => link.close())
  await link.subscribe(topics)
  const last = (topic: string) => messages.findLast((message) => message.topic === topic)?.body
  return { ...link, messages, last }
}

const closedPort = 'mqtts://localhost:1'

const status = (ready: 'True' | 'False', heartbeat = 'a'): NodeStatus => ({
  conditions: [{ type: 'Ready', status: ready, message: heartbeat }],
})

const pod = (uid: string, observedResourceVersion = '1'): PodMessage => ({
  namespace: 'default',
  name: `pod-${uid}`,
  uid,
  observedResourceVersion,
  status: { phase: 'Running' },
})

const states = ({ messages }: Observer) =>
  messages.filter(({ topic }) => topic === `${base}/connection`).map(({ body }) => JSON.parse(body).state)

test('of several controllers the agent connects to the one that accepts it, at once', { skip }, async (t) => {
  const at = await broker(t)
  const { url } = at
  // Any wait would be for ever.
  const clock: Clock = { ...systemClock, sleep: (_, signal) => systemClock.sleep(3_600_000, signal) }
  const servers = [closedPort, 'mqtts://localhost:2', url]
  const connected = agent(t, { ...settingsFor(url, at.keysOf('pi-1')), mqttServers: () => servers }, clock)
  await until('connected', () => connected.connected)
  t.pass()
})

test('the addresses of all controllers are passed on, also where there is one again', { skip }, async (t) => {
  const at = await broker(t)
  const found: unknown[] = []
  agent(t, settingsFor(at.url, at.keysOf('pi-1')), systemClock, { servers: (servers) => void found.push(servers) })
  const other = await observer(t, at)
  const publish = (more: object) =>
    other.publish(
      'bramble/v1/controller',
      JSON.stringify({ state: 'online', epoch: '1', time: '2026-01-01T00:00:00Z', ...more }),
      {
        qos: 1,
        retain: true,
      },
    )
  const lists = { apiServers: ['https://a:6443', 'https://b:6443'], mqttServers: ['mqtts://a:8883', 'mqtts://b:8883'] }
  await publish(lists)
  await until('the lists', () => found.length > 0)
  await publish({})
  await until('no lists', () => found.length > 1)
  t.same(found, [lists, { apiServers: [], mqttServers: [] }])
})

test('a node publishes its whole state when it connects, and again after a crash of the broker', {
  skip,
}, async (t) => {
  const at = await broker(t)
  const warnings: string[] = []
  const warned = ({ message }: Error) => void warnings.push(message)
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')))
  node.reportNodeStatus(status('True'))
  for (let i = 1; i <= 20; i++) node.reportPod(pod(`u${i}`))
  await until('connected', () => node.connected)
  const first = await observer(t, at)
  await until('everything arrived', () => first.last(`${base}/status`) && first.last(`${base}/pods/u1`))
  t.same(states(first), ['online'])
  await until('the broker has acknowledged the status', () => node.log.messages('info').length > 1)
  t.same(node.log.messages('info'), ['Connected to the control plane', 'Node status posted'])

  await at.kill()
  await until('disconnected', () => !node.connected)
  node.reportNodeStatus(status('False', 'while away'))
  node.reportNodeStatus(status('False', 'newest'))
  t.equal(node.renewLease(), false, 'no heartbeat can be sent')
  await at.start()
  const second = await observer(t, at)
  await until('everything arrived again', () => second.last(`${base}/status`) && second.last(`${base}/pods/u1`))
  t.match(JSON.parse(second.last(`${base}/connection`) ?? ''), {
    state: 'online',
    bootID: 'boot-1',
    agentVersion: 'v1',
  })
  t.match(second.last(`${base}/status`), 'newest')
  t.notOk(
    second.messages.some(({ body }) => body.includes('while away')),
    'an overtaken state is not published',
  )
  t.same(node.log.messages('warn'), ['Connection to the control plane lost, trying until it is back'])
  t.same(warnings, [], 'many messages at once cause no warning of a leak')
})

test('the end of a connection is passed on, and a failed attempt is not an end', { skip }, async (t) => {
  const at = await broker(t)
  let ended = 0
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')), systemClock, { disconnected: () => void ended++ })
  await until('connected', () => node.connected)
  t.equal(ended, 0)
  await at.kill()
  await until('the loss is noticed', () => ended > 0)
  t.notOk(node.connected)
  const tried = () => node.log.messages('debug').includes('Cannot connect to the control plane')
  await until('another attempt has failed', tried)
  t.equal(ended, 1)
})

test('without a connection a thousand reports of a pod become one', { skip }, async (t) => {
  const at = await mosquitto()
  t.teardown(() => at.remove())
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')))
  for (let i = 1; i <= 1000; i++) node.reportPod(pod('u1', String(i)))
  node.reportPod(pod('u2'))
  node.reportPodGone('u2')
  for (let i = 1; i <= 150; i++) node.reportEvent(event(i))
  await until('an attempt failed', () => node.log.messages('warn').length > 0)
  await at.start()
  const other = await observer(t, at)
  // From the time before the observer subscribed, retained pod states arrive, and Events are lost.
  node.reportEvent(event(151))
  await until('the last event arrived', () => other.last(`${base}/events`)?.includes('event 151'))
  const about = (topic: string) => other.messages.filter((message) => message.topic === `${base}/${topic}`)
  t.same(
    about('pods/u1').map(({ body }) => JSON.parse(body).observedResourceVersion),
    ['1000'],
  )
  const kept = about('events').filter(({ body }) => !body.includes('event 151'))
  t.ok(kept.length <= 100, 'at most 100 events wait for a connection')
  t.ok(about('pods/u2').every(({ body }) => body === ''))
  t.equal(node.log.messages('warn')[0], 'Cannot connect to the control plane, trying until it works')
})

const event = (i: number) =>
  ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `e${i}` },
    involvedObject: { kind: 'Pod', name: `pod-${i}` },
    message: `event ${i}`,
  }) as const

test('an agent that is stopped publishes a goodbye, for one that is killed the broker publishes the last will', {
  skip,
}, async (t) => {
  const at = await broker(t)
  const watcher = await observer(t, at)
  const settings = settingsFor(at.url, at.keysOf('pi-1'))
  const node = agent(t, settings)
  await until('online', () => states(watcher).includes('online'))
  await node.stop()
  await until('goodbye', () => states(watcher).includes('goodbye'))
  t.match(JSON.parse(watcher.last(`${base}/connection`) ?? ''), { state: 'goodbye', reason: 'agent-stopped' })

  const lone = loneAgent(t, settings)
  await until('online again', () => states(watcher).at(-1) === 'online')
  lone.kill('SIGKILL')
  await until('lost', () => states(watcher).at(-1) === 'lost')
  t.same(states(watcher), ['online', 'goodbye', 'online', 'lost'])
  const late = await observer(t, at)
  await until('a later subscriber receives it', () => states(late)[0] === 'lost')
})

function loneAgent(t: Test, settings: MqttControlPlaneSettings): ChildProcess {
  const program = fileURLToPath(new URL('../../testing/lone-agent.js', import.meta.url))
  const child = spawn(process.execPath, [program, JSON.stringify(settings)], { stdio: 'ignore' })
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return child
}

test('the heartbeat carries the digest of the published states, which are published again on request', {
  skip,
}, async (t) => {
  const at = await broker(t)
  const controller = await observer(t, at)
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')))
  await until('connected', () => node.connected)
  node.reportNodeStatus(status('True'))
  node.reportPod(pod('u1'))
  node.reportPod(pod('u2'))
  node.reportPodGone('u2')
  await until('gone', () => controller.last(`${base}/pods/u2`) === '')
  t.equal(node.renewLease(), true)
  const lease = await until('a lease', () => leases(controller).find(({ seq }) => seq === 2))
  const wanted = ['status', 'pods/u1']
    .map((name) => digestText(`${base}/${name}`, controller.last(`${base}/${name}`) ?? ''))
    .reduce(foldDigest, emptyDigest)
  t.equal(lease.digest, wanted)

  controller.messages.length = 0
  await controller.publish(`${base}/calls`, JSON.stringify({ call: 'report' }), { qos: 1, retain: false })
  await until('again', () => controller.last(`${base}/status`) && controller.last(`${base}/pods/u1`))
  t.equal(controller.last(`${base}/pods/u2`), undefined, 'a deleted state is not published')
  node.renewLease()
  const later = await until('a lease', () => leases(controller).find(({ seq }) => seq === 3))
  t.equal(later.digest, wanted)
})

const leases = ({ messages }: Observer): { seq: number; digest: string }[] =>
  messages.filter(({ topic }) => topic === `${base}/lease`).map(({ body }) => JSON.parse(body))

test('desired pods reach the node, and a message that cannot be decoded has no effect', {
  skip,
}, async (t) => {
  const at = await broker(t)
  const controller = await observer(t, at, ['nothing'])
  const publish = (topic: string, body: string) => controller.publish(topic, body, { qos: 1, retain: true })
  await publish(`${base}/desired`, JSON.stringify({ epoch: 'e', version: 1, pods: [] }))
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')))
  await until('the retained message', () => node.received.at(-1)?.version === 1)
  await publish(`${base}/desired`, '{"epoch":"e","version":"two"')
  await publish(`${base}/desired`, JSON.stringify({ epoch: 'e', version: 'three', pods: 3 }))
  await publish(`${base}/desired`, JSON.stringify({ epoch: 'e', version: 4, pods: [], newer: true }))
  await until('the next good one', () => node.received.at(-1)?.version === 4)
  t.equal(node.received.length, 2)
  t.same(node.log.messages('warn'), ['A message could not be decoded', 'A message could not be decoded'])
  const strange = { ...aPod({ name: 'strange' }), spec: { containers: 'none' } }
  await publish(`${base}/desired`, JSON.stringify({ epoch: 'e', version: 5, pods: [strange, aPod({ name: 'web' })] }))
  await until('the decodable pod', () => node.received.at(-1)?.version === 5)
  t.match(node.received.at(-1), { pods: [{ metadata: { name: 'web' } }], misread: [{ uid: 'uid-of-strange' }] })
})

test('a controller that restarts behind an external broker receives everything again', { skip }, async (t) => {
  const at = await broker(t)
  const controller = await observer(t, at)
  const announce = (epoch: string) =>
    controller.publish('bramble/v1/controller', JSON.stringify({ state: 'online', epoch, time: 'now' }), {
      qos: 1,
      retain: true,
    })
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')))
  node.reportNodeStatus(status('True'))
  await until('published', () => controller.last(`${base}/status`))
  await announce('first')
  await announce('first')
  const count = () => controller.messages.filter(({ topic }) => topic === `${base}/status`).length
  t.equal(count(), 1)
  await announce('second')
  await until('published again', () => count() === 2)
})

test("the controller's time is passed on, and whether it is current", { skip }, async (t) => {
  const at = await broker(t)
  const controller = await observer(t, at)
  const announce = (time: string) =>
    controller.publish('bramble/v1/controller', JSON.stringify({ state: 'online', epoch: 'e1', time }), {
      qos: 1,
      retain: true,
    })
  await announce('2026-01-02T03:04:05Z')
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')))
  await until('the old one', () => node.times.length === 1)
  await announce('2026-01-02T03:14:05Z')
  await until('the other', () => node.times.length === 2)
  t.same(node.times, [
    { wallMs: Date.parse('2026-01-02T03:04:05Z'), isLive: false },
    { wallMs: Date.parse('2026-01-02T03:14:05Z'), isLive: true },
  ])
})

test('the network of the fleet is received only from a controller that announces it', { skip }, async (t) => {
  const at = await broker(t)
  const controller = await observer(t, at, ['nothing'])
  const publish = (topic: string, body: object | string) =>
    controller.publish(`bramble/v1/${topic}`, typeof body === 'string' ? body : JSON.stringify(body), {
      qos: 1,
      retain: true,
    })
  const announce = (more: object) => publish('controller', { state: 'online', epoch: 'e', time: 'now', ...more })
  const ranges = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', clusterDomain: 'cluster.local' }
  await publish('network', { epoch: 'e', version: 1, ...ranges, nodes: [] })
  await publish('services/3', { epoch: 'e', version: 2, services: [{ name: 'strange' }] })
  await announce({})
  const seen: unknown[] = []
  const policies: unknown[] = []
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')), systemClock, {
    network: ({ version }) => void seen.push(['network', version]),
    services: (shard, { version, services }) => void seen.push(['services', shard, version, services.length]),
    networkOff: () => void seen.push('off'),
    policies: ({ version, namespaces }) => void policies.push([version, namespaces]),
    policiesOff: () => void policies.push('off'),
  })
  await until('the announcement of none', () => seen.length > 0)
  t.same(seen, ['off'])
  await announce({ network: true })
  await announce({ network: true })
  await until('both messages', () => seen.length === 3)
  t.same([...new Set(policies)], ['off'])
  const policy = { namespace: 'shop', name: 'web', podSelector: {}, ingress: [] }
  const message = { epoch: 'e', version: 4, namespaces: ['shop'], sets: [], policies: [policy] }
  await publish('nodes/pi-1/policies', message)
  await announce({ network: true, policies: true })
  await until('policies', () => policies.at(-1) !== 'off')
  t.same(policies.at(-1), [4, ['shop']])
  t.same(seen.slice(1).sort(), [
    ['network', 1],
    ['services', 3, 2, 0],
  ])
  t.same(node.log.messages('warn'), ['A part of a message is not used'])
  await publish('services/3', '')
  await publish('services/3', `"${'x'.repeat(4 * 1024 * 1024)}"`)
  await publish('services/15', { epoch: 'e', version: 3, services: [] })
  await until('the next message', () => seen.length === 4)
  t.same(node.log.messages('warn').at(-1), 'A message is too long')
})

test('a certificate problem is logged once, with its remedy', { skip }, async (t) => {
  const at = await broker(t)
  const another = await mosquitto()
  t.teardown(() => another.remove())
  const day = 24 * 3600_000
  const remedyOf = async (keys: NodeKeys) => {
    const node = agent(t, settingsFor(at.url, keys))
    const remedy = () => node.log.lines.find(({ level }) => level === 'warn')?.facts['remedy']
    const found = await until('a remedy', remedy)
    await until('tried again', () => node.log.messages('debug').length >= 2)
    t.equal(node.log.messages('warn').length, 1)
    await node.stop()
    return found
  }
  const expired = at.keysOf('pi-1', { nowMs: Date.now() - 2 * day, lifeMs: day })
  t.match(await remedyOf(expired), /certificate expired on .* asks for a new one/)
  t.match(await remedyOf(another.keysOf('pi-1')), /another authority/)
  const stranger = { ...another.keysOf('pi-1'), ca: at.keysOf('pi-1').ca }
  t.match(await remedyOf(stranger), /does not accept the authority of this node's certificate|Join again/)
})

test('an agent is stopped at once while it tries to connect', { skip }, async (t) => {
  const at = await mosquitto()
  t.teardown(() => at.remove())
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')))
  await until('tried', () => node.log.messages('warn').length === 1)
  const before = performance.now()
  await node.stop()
  t.ok(performance.now() - before < 10_000)
})

test('an attempt that is repeated when a network comes up uses the latest credentials', { skip }, async (t) => {
  const at = await broker(t)
  const root = await mkdtemp(join(tmpdir(), 'mqtt-root-'))
  t.teardown(() => rm(root, { recursive: true }))
  let attempts = 0
  const door = createServer((socket) => {
    t.teardown(() => void socket.destroy())
    socket.on('error', () => undefined)
    if (++attempts === 1) return
    const onward = connect(at.port, 'localhost')
    onward.on('error', () => socket.destroy())
    socket.pipe(onward).pipe(socket)
  })
  door.listen(0, 'localhost')
  await once(door, 'listening')
  t.teardown(() => void door.close())
  const address = door.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const expired = at.keysOf('pi-1', { nowMs: Date.now() - 2 * 86_400_000, lifeMs: 86_400_000 })
  const node = agent(t, { ...settingsFor(`mqtts://localhost:${port}`, expired), root })
  await until('the first attempt hangs', () => attempts === 1)
  node.use(at.keysOf('pi-1'))
  await mkdir(join(root, 'sys/class/net/eth0'), { recursive: true })
  await writeFile(join(root, 'sys/class/net/eth0/carrier'), '1')
  await until('connected', () => node.connected)
  t.same(node.log.messages('warn'), [])
})

test('a broker that hangs is detected, though heartbeats can still be sent', { skip }, async (t) => {
  const at = await broker(t)
  const node = agent(t, { ...settingsFor(at.url, at.keysOf('pi-1')), keepaliveSeconds: 1 })
  await until('connected', () => node.connected)
  at.freeze()
  const beating = setInterval(() => node.renewLease(), 100)
  t.teardown(() => clearInterval(beating))
  await until('the connection is closed', () => !node.connected)
  await at.kill()
  await at.start()
  await until('connected again', () => node.connected)
})

/** Twenty times as fast. `idle`: the number of waits for an hour, as of the link guard when there is nothing to check. */
function fastClock() {
  const speed = 20
  const fast = {
    ...systemClock,
    idle: 0,
    monotonicMs: () => systemClock.monotonicMs() * speed,
    sleep(ms: number, signal: AbortSignal) {
      if (ms >= 3600_000) fast.idle++
      return systemClock.sleep(ms / speed, signal)
    },
  }
  return fast
}

test('a broker that hangs is detected when not even a heartbeat can be sent', { skip }, async (t) => {
  const at = await broker(t)
  const clock = fastClock()
  const node = agent(t, settingsFor(at.url, at.keysOf('pi-1')), clock)
  await until('the first heartbeat is checked', () => clock.idle === 2)
  at.freeze()
  const stats = { time: 'x'.repeat(1024 * 1024), summary: { node: { nodeName: 'pi-1' }, pods: [] } } as StatsMessage
  for (let i = 0; i < 100; i++) {
    node.sendStats(stats)
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.equal(node.renewLease(), false, 'the connection takes nothing more')
  await until('the connection is closed', () => !node.connected)
})

test('unanswered pings share one listener', { skip }, async (t) => {
  const at = await broker(t)
  const link = await observer(t, at)
  const warnings: Error[] = []
  const collect = (warning: Error) => void warnings.push(warning)
  process.on('warning', collect)
  t.teardown(() => process.off('warning', collect))
  await Promise.all(Array.from({ length: 20 }, () => link.ping()))
  await link.ping()
  t.same(warnings, [])
})
