import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { generate } from 'mqtt-packet'
import { type Test, t, test } from 'tap'
import { topicName } from '../../../api/topics.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { openLog } from '../../../daemon/log.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { bareClient, certificates, mosquitto, noMosquittoClients, startMosquitto } from '../../testing/mqtt-clients.ts'
import type { NodeListener, NodeMessage } from '../broker.ts'
import type { BrokerLimits } from './broker-limits.ts'
import { openMqttBroker } from './mqtt-broker.ts'

const certs = await certificates()
t.teardown(() => certs.remove())
const a = certs.node('pi-a')
const skip = noMosquittoClients
const topicsOf = (node: string) => `bramble/v1/nodes/${node}`

test('a node publishes on its own topics, and its certificate identifies it', { skip }, async (t) => {
  const { options, received, port } = await opened(t)
  const args = ['-i', 'any-name', '-u', 'any-user', '-t', `${topicsOf('pi-a')}/status`, '-q', '1', '-r', '-m', '{}']
  t.same(await mosquitto('pub', [...(await options(a)), ...args]), { code: 0, out: '', error: '' })
  await received.until(({ messages, disconnected }) => messages.length === 1 && disconnected.length === 1)
  t.same(received.messages, [{ node: 'pi-a', topic: { kind: 'status', node: 'pi-a' }, body: '{}' }])
  t.same(received.connected, ['pi-a'])
  t.ok(port > 0)
})

test('a short lease is the lease of the node that its certificate names, with QoS 0 and 1', { skip }, async (t) => {
  const { options, received } = await opened(t)
  for (const qos of ['0', '1']) {
    t.equal((await mosquitto('pub', [...(await options(a)), '-t', 'l', '-q', qos, '-n'])).code, 0)
  }
  // The first one was not acknowledged.
  await received.until(({ messages }) => messages.length >= 2)
  const lease = { node: 'pi-a', topic: { kind: 'lease', node: 'pi-a' }, body: '' }
  t.match(received.messages, [lease, lease])
})

test('a message of a newer agent on an unsupported topic of its own is dropped, and it stays connected', {
  skip,
}, async (t) => {
  const { options, received } = await opened(t)
  const later = `${topicsOf('pi-a')}/later`
  const { code } = await mosquitto('pub', [...(await options(a)), '-t', later, '-q', '1', '-r', '-m', '{}'])
  t.equal(code, 0)
  t.same(received.messages, [])
})

test('a node cannot publish on topics of another: it is disconnected, counted and named in the log', {
  skip,
}, async (t) => {
  const { options, received, refusals, lines } = await opened(t)
  for (const [topic, reason] of [
    [`${topicsOf('pi-b')}/status`, 'ForeignTopic'],
    [`${topicsOf('pi-a')}/desired`, 'ControllerTopic'],
    ['bramble/v1/controller', 'ControllerTopic'],
    ['something/else', 'UnknownTopic'],
    ['$SYS/broker', 'UnknownTopic'],
  ] as const) {
    const { code } = await mosquitto('pub', [...(await options(a)), '-t', topic, '-q', '1', '-r', '-m', '{}'])
    t.not(code, 0, topic)
    t.ok((await refusals(reason)) > 0, reason)
  }
  t.same(received.messages, [])
  t.match(
    lines.join(''),
    /"what":"publish","node":"pi-a","because":"bramble\/v1\/nodes\/pi-b\/status belongs to node pi-b"/,
  )
})

test('a node cannot subscribe to topics of another, nor with wildcards', { skip }, async (t) => {
  const { options, refusals, broker } = await opened(t)
  await broker.publish({ kind: 'desired', node: 'pi-b' }, 'secret')
  for (const filter of [`${topicsOf('pi-b')}/desired`, `${topicsOf('pi-a')}/#`, '#', `${topicsOf('+')}/desired`]) {
    const { out, error } = await mosquitto('sub', [...(await options(a)), '-t', filter, '-C', '1', '-q', '1'])
    t.equal(out, '', filter)
    t.match(error, /All subscription requests were denied/)
  }
  t.equal(await refusals('ForeignTopic'), 1)
})

test('a last will on another’s topic is refused with the connection', { skip }, async (t) => {
  const { options, received } = await opened(t)
  const will = [
    '--will-topic',
    `${topicsOf('pi-b')}/connection`,
    '--will-payload',
    'x',
    '--will-qos',
    '1',
    '--will-retain',
  ]
  const { code, error } = await mosquitto('sub', [...(await options(a)), ...will, '-t', `${topicsOf('pi-a')}/desired`])
  t.not(code, 0)
  t.match(error, /not authori[sz]ed/i)
  t.same(received.connected, [])
})

test('only a client with a valid certificate of the fleet’s authority connects', { skip }, async (t) => {
  const { options, received, refusals, port } = await opened(t)
  const message = ['-t', `${topicsOf('pi-a')}/status`, '-q', '1', '-r', '-m', '{}']
  const expired = certs.node('pi-a', { nowMs: Date.now() - 86_400_000, lifeMs: 3_600_000 })
  const strangers = { none: undefined, foreign: certs.foreign('pi-a'), expired }
  for (const [name, issued] of Object.entries(strangers)) {
    t.not((await mosquitto('pub', [...(await options(issued)), ...message])).code, 0, name)
  }
  t.equal(await refusals('Handshake'), 3)
  const admin = await mosquitto('pub', [...(await options(certs.admin())), ...message])
  t.match(admin.error, /not authori[sz]ed/i, 'an administrator is not a node')
  t.equal(await refusals('NotANode'), 1)
  const version = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const
  const old = connect({ ...clientOptions(port), ...version })
  t.match(await once(old, 'error'), [{ message: /protocol version/ }], 'TLS 1.1 is not supported')
  t.same([received.connected, received.messages], [[], []])
})

test('a client with a revoked certificate is disconnected and cannot connect again', { skip }, async (t) => {
  let isRevoked = false
  const changed: (() => void)[] = []
  const revocations = {
    because: (user: string, sinceMs: number) =>
      isRevoked && user === 'system:node:pi-a' && sinceMs < Date.now() ? 'it was stolen' : undefined,
    onChange: (notify: () => void) => void changed.push(notify),
  }
  const { options, received, refusals } = await opened(t, {}, revocations)
  const watching = mosquitto('sub', [...(await options(a)), '-t', `${topicsOf('pi-a')}/desired`, '-q', '1'])
  await received.until(({ connected }) => connected.length === 1)
  isRevoked = true
  for (const notify of changed) notify()
  await received.until(({ disconnected }) => disconnected.length === 1)
  t.match((await watching).error, /connection was lost|not authori[sz]ed/i)
  const again = await mosquitto('sub', [...(await options(a)), '-t', `${topicsOf('pi-a')}/desired`, '-q', '1'])
  t.match(again.error, /not authori[sz]ed/i)
  t.ok((await refusals('Revoked')) >= 2)
  t.same(received.connected, ['pi-a'])
})

test('a client whose authority is no longer trusted is disconnected', { skip }, async (t) => {
  let trusted: string | undefined = 'sha256:first'
  const authorities = { only: () => undefined, of: () => trusted }
  const { options, received, broker, refusals } = await opened(t, {}, undefined, authorities)
  const watching = startMosquitto('sub', [...(await options(a)), '-t', `${topicsOf('pi-a')}/desired`, '-q', '1'])
  t.teardown(() => watching.kill())
  await received.until(({ connected }) => connected.length === 1)
  broker.renew(certs.server)
  t.equal(await refusals('AuthorityGone'), 0, 'a new certificate of the server disconnects no client')
  trusted = undefined
  broker.renew(certs.server)
  await received.until(({ disconnected }) => disconnected.length === 1)
  t.ok((await refusals('AuthorityGone')) > 0)
})

test('a handshake that began before the authorities changed leads to no connection', async (t) => {
  const { port, pending, broker, received } = await opened(t)
  const early = connectTcp({ port, host: '127.0.0.1' })
  t.teardown(() => early.destroy())
  while ((await pending()) !== 1) await systemClock.sleep(5)
  broker.renew(certs.server)
  const secure = connect({
    socket: early,
    servername: 'localhost',
    ca: certs.server.ca,
    cert: a.certificate,
    key: a.key,
  })
  secure.on('error', () => undefined)
  secure.once('secureConnect', () => {
    secure.write(generate({ cmd: 'connect', protocolId: 'MQTT', clientId: 'pi-a', clean: true, keepalive: 60 }))
  })
  await once(secure, 'close')
  t.same(received.connected, [])
})

test('the last retained message of the controller is sent to later connections', { skip }, async (t) => {
  const { options, broker } = await opened(t)
  await broker.publish({ kind: 'desired', node: 'pi-a' }, 'first')
  await broker.publish({ kind: 'desired', node: 'pi-a' }, 'second')
  await broker.publish({ kind: 'calls', node: 'pi-a' }, 'not retained')
  const filters = ['desired', 'calls'].flatMap((kind) => ['-t', `${topicsOf('pi-a')}/${kind}`])
  const reading = ['-C', '2', '-q', '1', '-v', ...filters, '-t', 'bramble/v1/controller']
  await broker.publish({ kind: 'controller' }, 'online')
  const { out } = await mosquitto('sub', [...(await options(a)), ...reading])
  t.same(out.trim().split('\n').sort(), ['bramble/v1/controller online', `${topicsOf('pi-a')}/desired second`])
})

test('a retained message that can be made again is made for each later connection, unless it is long', {
  skip,
}, async (t) => {
  const { options, broker } = await opened(t)
  const received = async () => {
    const args = ['-t', `${topicsOf('pi-a')}/desired`, '-q', '1', '-C', '1']
    return (await mosquitto('sub', [...(await options(a)), ...args])).out.trim()
  }
  let made = 0
  const publish = (body: string) =>
    broker.publish({ kind: 'desired', node: 'pi-a' }, body, {
      again() {
        made += 1
        return body
      },
    })
  await publish('short')
  t.equal(made, 0)
  t.same([await received(), await received(), made], ['short', 'short', 2])
  const long = 'x'.repeat(40_000)
  await publish(long)
  t.ok((await received()) === long)
  t.equal(made, 2)
})

test('what is withdrawn or published without retention is not sent to a later connection', { skip }, async (t) => {
  const { options, broker } = await opened(t)
  await broker.publish({ kind: 'desired', node: 'pi-a' }, 'earlier')
  await broker.withdraw({ kind: 'desired', node: 'pi-a' })
  await broker.publish({ kind: 'desired', node: 'pi-a' }, 'not retained', { retain: false })
  await broker.publish({ kind: 'controller' }, 'online')
  const filters = ['-t', `${topicsOf('pi-a')}/desired`, '-t', 'bramble/v1/controller']
  const { out } = await mosquitto('sub', [...(await options(a)), '-C', '1', '-q', '1', '-v', ...filters])
  t.same(out.trim().split('\n'), ['bramble/v1/controller online'])
})

test('the last will of a killed node is published at once, followed by the end of its connection', {
  skip,
}, async (t) => {
  const { options, received } = await opened(t)
  const client = startMosquitto('sub', [...(await options(a)), ...willing('pi-a'), '-t', `${topicsOf('pi-a')}/desired`])
  await received.until(({ connected }) => connected.length === 1)
  client.kill('SIGKILL')
  await received.until(({ messages, disconnected }) => messages.length === 1 && disconnected.length === 1)
  t.same(received.messages, [{ node: 'pi-a', topic: { kind: 'connection', node: 'pi-a' }, body: 'lost' }])
})

test('a second connection replaces the first, of which nothing more is passed on', { skip }, async (t) => {
  const { options, received } = await opened(t)
  const args = [...(await options(a)), ...willing('pi-a'), '-t', `${topicsOf('pi-a')}/desired`]
  const first = startMosquitto('sub', ['-i', 'first', ...args])
  await received.until(({ connected }) => connected.length === 1)
  const firstEnded = once(first, 'exit')
  const second = startMosquitto('sub', ['-i', 'second', ...args])
  await received.until(({ connected }) => connected.length === 2)
  first.kill('SIGKILL')
  await firstEnded
  t.same([received.messages, received.disconnected], [[], []], 'neither its will nor its end')
  second.kill('SIGKILL')
  await received.until(({ messages, disconnected }) => messages.length === 1 && disconnected.length === 1)
})

test('a reader that stops reading does not delay the others, and is disconnected', async (t) => {
  const drainTimeoutMs = 1000
  const { broker, port, received } = await opened(t, { drainTimeoutMs })
  const { ca } = certs.server
  const desired = (node: string) => topicName({ kind: 'desired', node })
  const frozen = await bareClient(port, { ca, issued: a, topic: desired('pi-a') })
  const reader = await bareClient(port, { ca, issued: certs.node('pi-b'), topic: desired('pi-b') })
  t.teardown(() => [frozen, reader].forEach((socket) => void socket.destroy()))
  let arrived = ''
  let wake = () => {}
  reader.setEncoding('latin1').on('data', (part: string) => {
    arrived = `${arrived}${part}`.slice(-100)
    wake()
  })
  const big = 'x'.repeat(1_000_000)
  let worstMs = 0
  for (let i = 0; i < 60 && received.disconnected.length === 0; i++) {
    await broker.publish({ kind: 'desired', node: 'pi-a' }, big)
    const sent = performance.now()
    await broker.publish({ kind: 'desired', node: 'pi-b' }, `message ${i};`)
    while (!arrived.endsWith(`message ${i};`)) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    worstMs = Math.max(worstMs, performance.now() - sent)
  }
  await received.until(({ disconnected }) => disconnected.length === 1)
  t.same(received.disconnected, ['pi-a'])
  t.ok(worstMs < drainTimeoutMs + 10_000, `the longest wait was ${Math.round(worstMs)} ms`)
})

test('a packet larger than allowed ends the connection', { skip }, async (t) => {
  const { options, received, refusals } = await opened(t, { maxPacketBytes: 70_000 })
  const large = ['-t', `${topicsOf('pi-a')}/status`, '-q', '1', '-r', '-m', 'x'.repeat(100_000)]
  t.not((await mosquitto('pub', [...(await options(a)), ...large])).code, 0)
  t.equal(await refusals('TooLarge'), 1)
  t.same(received.messages, [])
})

test('a connection without a CONNECT is closed', async (t) => {
  const { port } = await opened(t, { connectTimeoutMs: 200 })
  const socket = connect(clientOptions(port))
  socket.on('error', () => undefined).resume()
  await closed(socket)
  t.pass('it was closed')
})

test('a connection with an invalid handshake is closed, counted, and logged within limits', async (t) => {
  const { port, refusals, pending, lines } = await opened(t)
  for (let i = 0; i < 40; i++) {
    const socket = connectTcp({ port, host: '127.0.0.1' })
    socket.on('error', () => undefined).resume()
    socket.write('GET / HTTP/1.1\r\n\r\n'.padEnd(64))
    await closed(socket)
  }
  t.equal(await refusals('Handshake'), 40)
  t.equal(await pending(), 0)
  t.equal(lines.filter((line) => line.includes('TLS handshake failed')).length, 5)
})

test('a handshake that never ends is ended, however often a byte of it arrives', async (t) => {
  const { port, refusals } = await opened(t, { connectTimeoutMs: 400 })
  const silent = connectTcp({ port, host: '127.0.0.1' })
  const slow = connectTcp({ port, host: '127.0.0.1' })
  // The header of a TLS record of 512 bytes, then a byte at a time.
  slow.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]))
  const dripping = setInterval(() => !slow.destroyed && slow.write(Buffer.from([0])), 20)
  t.teardown(() => clearInterval(dripping))
  await Promise.all([silent, slow].map((socket) => closed(socket.on('error', () => undefined).resume())))
  t.equal(await refusals('HandshakeTimeout'), 2)
})

test('waiting connections are bounded, and do not delay another address', async (t) => {
  const { port, refusals, received } = await opened(t, { handshakesPerAddress: 2, pendingPerAddress: 5 })
  const strangers = Array.from({ length: 8 }, () => connectTcp({ port, host: '127.0.0.1', localAddress: '127.0.0.9' }))
  t.teardown(() => strangers.forEach((socket) => void socket.destroy()))
  await Promise.race(strangers.map((socket) => closed(socket.on('error', () => undefined).resume())))
  const client = await bareClient(port, { ca: certs.server.ca, issued: a })
  t.teardown(() => void client.destroy())
  await received.until(({ connected }) => connected.length === 1)
  t.equal(await refusals('TooManyConnections'), 3)
})

test('refused topics are cut in the log, and a node that repeats them writes a few lines', async (t) => {
  const { port, refusals, lines, received, broker } = await opened(t)
  const client = await bareClient(port, { ca: certs.server.ca, issued: a })
  client.resume()
  const topic = `${topicsOf('pi-a')}/${'x'.repeat(60_000)}`
  const packet = generate({ cmd: 'publish', topic, payload: '{}', qos: 0, retain: false, dup: false })
  for (let i = 0; i < 100; i++) client.write(packet)
  client.end(generate({ cmd: 'disconnect' }))
  await received.until(({ disconnected }) => disconnected.length === 1)
  t.equal(await refusals('UnknownTopic'), 100)
  await broker.close()
  t.ok(lines.join('').length < 10_000, `${lines.join('').length} bytes of log`)
  t.match(lines.at(-1), /"suppressed":95/)
})

test('a keep alive that is missing or too long is refused', async (t) => {
  const { port, received, refusals } = await opened(t)
  for (const keepalive of [0, 3600]) {
    const socket = connect(clientOptions(port))
    socket.on('error', () => undefined)
    socket.write(
      generate({ cmd: 'connect', clientId: 'x', clean: true, keepalive, protocolId: 'MQTT', protocolVersion: 4 }),
    )
    t.same((await once(socket, 'data'))[0], Buffer.from([0x20, 2, 0, 6]))
    socket.destroy()
  }
  t.equal(await refusals('KeepAlive'), 2)
  t.same(received.connected, [])
})

test('a node that is silent for longer than its keep alive is disconnected, and its will is published', async (t) => {
  const { port, received } = await opened(t)
  const socket = connect(clientOptions(port))
  socket.on('error', () => undefined).resume()
  const will = { topic: `${topicsOf('pi-a')}/connection`, payload: Buffer.from('lost'), qos: 1, retain: true } as const
  const hello = { clientId: 'x', clean: true, keepalive: 1, protocolId: 'MQTT', protocolVersion: 4, will } as const
  socket.write(generate({ cmd: 'connect', ...hello }))
  await received.until(({ disconnected }) => disconnected.length === 1)
  t.same(received.messages, [{ node: 'pi-a', topic: { kind: 'connection', node: 'pi-a' }, body: 'lost' }])
})

test('a broker that closes publishes no wills, and reports no ends of connections', async (t) => {
  const { broker, port, received } = await opened(t)
  const client = await bareClient(port, { ca: certs.server.ca, issued: a })
  await received.until(({ connected }) => connected.length === 1)
  client.resume()
  const closed = once(client, 'close')
  await broker.close()
  await closed
  t.same([received.messages, received.disconnected], [[], []])
})

test('no TLS session is resumed without sending the certificate again', async (t) => {
  const { port } = await opened(t)
  const secured = async (version: 'TLSv1.2' | 'TLSv1.3', session?: Buffer) => {
    const client = connect({
      ...clientOptions(port),
      minVersion: version,
      maxVersion: version,
      ...(session && { session }),
    })
    t.teardown(() => client.destroy())
    await once(client, 'secureConnect')
    return client
  }
  const older = await secured('TLSv1.2')
  t.equal((await secured('TLSv1.2', older.getSession())).isSessionReused(), false)
  const first = await secured('TLSv1.3')
  const [session] = await once(first, 'session')
  t.equal((await secured('TLSv1.3', session)).isSessionReused(), false)
})

/** Not `once` of node:events, which rejects: a byte that arrives after the end resets the connection. */
function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('close', resolve))
}

function clientOptions(port: number) {
  const { ca } = certs.server
  return { port, host: '127.0.0.1', servername: 'localhost', ca, cert: a.certificate, key: a.key }
}

function willing(node: string): readonly string[] {
  return ['--will-topic', `${topicsOf(node)}/connection`, '--will-payload', 'lost', '--will-qos', '1', '--will-retain']
}

/** A listener that records its calls. */
type Received = {
  readonly messages: NodeMessage[]
  readonly connected: string[]
  readonly disconnected: string[]
  until(enough: (received: Received) => boolean): Promise<void>
}

async function opened(
  t: Test,
  limits: Partial<BrokerLimits> = {},
  revocations?: Parameters<typeof openMqttBroker>[0]['revocations'],
  authorities?: Parameters<typeof openMqttBroker>[0]['authorities'],
) {
  const lines: string[] = []
  const log = openLog({ level: 'info', format: 'json', write: (line) => void lines.push(line) })
  const registry = metricsRegistry()
  const broker = await openMqttBroker({
    tls: certs.server,
    clock: systemClock,
    log,
    registry,
    limits,
    ...(revocations && { revocations }),
    ...(authorities && { authorities }),
  })
  t.teardown(() => broker.close())
  let wake = () => {}
  const received: Received = {
    messages: [],
    connected: [],
    disconnected: [],
    async until(enough) {
      while (!enough(received)) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
  const listener: NodeListener = {
    async message(message) {
      received.messages.push(message)
      wake()
    },
    connected(node) {
      received.connected.push(node)
      wake()
    },
    disconnected(node) {
      received.disconnected.push(node)
      wake()
    },
  }
  const port = await broker.listen({ port: 0, host: '127.0.0.1' }, listener)
  const refusals = async (reason: string) => {
    const found = registry.samplesOf('bramble_broker_refusals_total')
    return found.find(({ labels = {} }) => labels['reason'] === reason)?.value ?? 0
  }
  const pending = async () => {
    const found = registry.samplesOf('bramble_broker_pending_connections')
    return found[0]?.value
  }
  return {
    broker,
    port,
    received,
    lines,
    refusals,
    pending,
    options: (issued?: typeof a) => certs.options(port, issued),
  }
}
