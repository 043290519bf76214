import { once } from 'node:events'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { generate, type Packet } from 'mqtt-packet'
import { type Test, t, test } from 'tap'
import { eventually } from '../../../test/support/wait.ts'
import { certificates } from '../../testing/mqtt-clients.ts'
import { acceptedBytes } from './accepted-bytes.ts'
import { connackCode } from './mqtt-encoding.ts'
import { type MqttSession, type MqttSessionHandler, mqttSession } from './mqtt-session.ts'

const certs = await certificates()
t.teardown(() => certs.remove())

const hello: Packet = { cmd: 'connect', clientId: 'x', clean: true, keepalive: 10, protocolVersion: 4 }
const subscribe: Packet = { cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'desired', qos: 1 }] }
const message: Packet = { cmd: 'publish', topic: 'status', payload: '{}', qos: 0, retain: false, dup: false }

/** A session and its client over TLS. The client does not read. */
async function aSession(t: Test, handlerOf: (session: () => MqttSession) => Partial<MqttSessionHandler> = () => ({})) {
  const { ca, certificate, key } = certs.server
  const server = createServer({ cert: certificate, key })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const accepted = once(server, 'secureConnection')
  const client = connect({ port, host: '127.0.0.1', servername: 'localhost', ca })
  client.on('error', () => undefined)
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  const [socket]: TLSSocket[] = await accepted
  if (socket === undefined) throw new Error('no connection')
  let nowMs = 0
  let close = (_error: Error | undefined) => {}
  const closed = new Promise<Error | undefined>((resolve) => {
    close = resolve
  })
  const session: MqttSession = mqttSession({
    socket,
    limits: { maxPacketBytes: 256 * 1024, drainTimeoutMs: 5000 },
    monotonicMs: () => nowMs,
    handler: {
      connect: () => connackCode.accepted,
      publish: () => true,
      subscribe: () => true,
      subscribed: () => undefined,
      tooLarge: () => undefined,
      closed: (_isGoodbye, error) => close(error),
      ...handlerOf(() => session),
    },
  })
  t.teardown(() => session.close())
  const advance = (ms: number) => {
    nowMs += ms
    session.checkTimes(nowMs)
  }
  return { session, client, closed, advance, write: (...packets: Packet[]) => writeAll(client, packets) }
}

function writeAll(client: TLSSocket, packets: readonly Packet[]) {
  client.write(Buffer.concat(packets.map((packet) => generate(packet))))
}

test('a client that subscribes again and again without reading is sent a few retained messages only', async (t) => {
  const body = 'x'.repeat(200_000)
  let sent = 0
  const { write, closed } = await aSession(t, (session) => ({
    subscribed: () => {
      sent += 1
      session().publish('desired', body, { qos: 1, retain: true })
    },
  }))
  write(hello, ...Array.from({ length: 1000 }, () => subscribe))
  t.match(await closed, { message: /does not read/ })
  t.ok(sent < 50, `${sent} times`)
})

test('a client whose messages wait here is not cut off for being silent meanwhile', async (t) => {
  let taken = () => {}
  let began = () => {}
  const begun = new Promise<void>((resolve) => {
    began = resolve
  })
  const { write, advance, session, closed } = await aSession(t, () => ({
    publish: () => {
      began()
      return new Promise<void>((resolve) => {
        taken = resolve
      })
    },
  }))
  write(hello, message)
  await begun
  advance(60_000)
  t.notOk(session.socket.destroyed, 'what it sends is not read, so it is not silent')
  taken()
  await new Promise((resolve) => setImmediate(resolve))
  advance(14_000)
  t.notOk(session.socket.destroyed, 'the keep alive begins again')
  advance(2_000)
  t.match(await closed, { message: /keep alive/ })
})

test('what a session sends last arrives, also where the client sends something meanwhile', async (t) => {
  const { write, client, session } = await aSession(t)
  write(hello, subscribe)
  while ((await once(session.socket, 'data'))[0].length < 10);
  const body = 'x'.repeat(20_000_000)
  session.publish('desired', body, { qos: 0, retain: false })
  const ended = session.end()
  write({ cmd: 'pingreq' })
  await once(session.socket, 'data')
  let received = 0
  client.on('data', (piece: Buffer) => {
    received += piece.length
  })
  // Not 'once': a connection may be reset after all has arrived.
  await Promise.all([ended, new Promise((resolve) => client.once('close', resolve))])
  t.ok(received >= body.length, `${received} bytes`)
})

test('a client that reads slowly is not cut off while it reads a large message, and is when it stops', async (t) => {
  const { session, write, client, closed, advance } = await aSession(t)
  write(hello, subscribe)
  await once(session.socket, 'data')
  session.publish('desired', 'x'.repeat(30_000_000), { qos: 0, retain: false })
  client.pause()
  let received = 0
  for (let second = 4; received < 20_000_000; second += 4) {
    const accepted = acceptedBytes(session.socket)
    // The kernel takes more in steps of a third of its buffer, about 1.4 MB.
    for (const until = received + 4_000_000; received < until; ) {
      const piece: Buffer | null = client.read()
      if (piece === null) await once(client, 'readable')
      else received += piece.length
    }
    await eventually('the kernel has taken more', () => acceptedBytes(session.socket) > accepted, { everyMs: 5 })
    advance(4_000)
    if (session.socket.destroyed) return t.fail(`cut off after ${second} s with ${received} bytes read`)
    write({ cmd: 'pingreq' })
    await once(session.socket, 'data')
  }
  t.pass('it was given its time')
  for (let second = 0; second < 12; second += 4) advance(4_000)
  t.match(await closed, { message: /does not read/ })
})

test('a client whose CONNECT was refused cannot connect with another one', async (t) => {
  let attempts = 0
  const { write, client, closed } = await aSession(t, () => ({
    connect: () => (++attempts === 1 ? connackCode.notAuthorized : connackCode.accepted),
  }))
  write(hello, hello)
  client.resume()
  t.equal(await closed, undefined)
  t.equal(attempts, 1)
})
