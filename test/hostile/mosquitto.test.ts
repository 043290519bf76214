/** A node that attacks a fleet with a Mosquitto in front. What it reaches with MQTT 3.1.1 is in `mosquitto-rights.test.ts`. */
import { X509Certificate } from 'node:crypto'
import { connect, type TLSSocket } from 'node:tls'
import mqtt, { type IClientOptions } from 'mqtt'
import { type Test, test } from 'tap'
import { noMosquitto as skip } from '../../agent/testing/mosquitto.ts'
import { displaceConnection } from '../../broker-controller/broker/mqtt-client/displaced-connection.ts'
import { openExternalBroker } from '../../broker-controller/broker/mqtt-client/external-broker.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { metricsRegistry } from '../../daemon/metrics-registry.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { type MosquittoFleet, mosquittoFleet } from '../support/mosquitto-server.ts'
import { eventually } from '../support/wait.ts'
import { connectPacket } from './support/clients.ts'

type Keys = ReturnType<MosquittoFleet['keysOf']>

async function connected(t: Test, port: number, { ca, certificate, key }: Keys, options: IClientOptions = {}) {
  const client = await mqtt.connectAsync({
    ...{ protocol: 'mqtts', host: 'localhost', port, ca, cert: certificate, key },
    ...{ protocolVersion: 4, clean: true, keepalive: 60, reconnectPeriod: 0, connectTimeout: 30_000 },
    ...options,
  })
  client.on('error', () => undefined)
  t.teardown(() => client.end(true))
  return client
}

/** Whether the server accepts a CONNECT of this client, and the last session of TLS that it gave. */
async function secured(t: Test, port: number, more: object) {
  const socket: TLSSocket = connect({ host: 'localhost', port, ...more })
  t.teardown(() => socket.destroy())
  const closed = new Promise<undefined>((resolve) => {
    socket.once('close', () => resolve(undefined))
  })
  let session: Buffer | undefined
  socket.on('error', () => undefined)
  socket.on('session', (given: Buffer) => {
    session = given
  })
  const isSecure = new Promise<true>((resolve) => {
    socket.once('secureConnect', () => resolve(true))
  })
  if ((await Promise.race([isSecure, closed])) === undefined) return { isAccepted: false, session }
  socket.write(connectPacket('x'))
  const answer = new Promise<Buffer>((resolve) => {
    socket.once('data', resolve)
  })
  const [type, , , code] = (await Promise.race([answer, closed])) ?? []
  return { isAccepted: type === 0x20 && code === 0, session }
}

/** Only the certificate of these keys is revoked; these nodes have rights. */
async function revoked(server: MosquittoFleet, nodes: readonly string[], { certificate }: Keys): Promise<void> {
  const { serialNumber: serial } = new X509Certificate(certificate)
  await server.write(nodes, [{ serial, revokedMs: Date.now() }])
  server.reload()
}

/** Resolves when Mosquitto has read its files. */
async function isRefused(t: Test, { port }: MosquittoFleet, { ca, certificate: cert, key }: Keys): Promise<void> {
  await eventually('the certificate is refused', async () => !(await secured(t, port, { ca, cert, key })).isAccepted)
}

test('no session of TLS outlives the revocation of its certificate, or serves another client', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a', 'pi-b'])
  const keys = server.keysOf('pi-b')
  const { ca, certificate: cert, key } = keys
  const older = await secured(t, server.port, { ca, cert, key, maxVersion: 'TLSv1.2' })
  t.equal(older.isAccepted, false, 'TLS 1.2, whose sessions cannot be switched off')
  const { isAccepted, session } = await secured(t, server.port, { ca, cert, key })
  t.equal(isAccepted, true)
  t.equal((await secured(t, server.port, { ca, session })).isAccepted, false, 'without the key')
  await revoked(server, ['pi-a', 'pi-b'], keys)
  await isRefused(t, server, keys)
  t.equal((await secured(t, server.port, { ca, cert, key, session })).isAccepted, false, 'after its revocation')
})

test('the connection of a revoked certificate gets no rights again when the name is given to another machine', {
  skip,
}, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a', 'pi-b'])
  const keys = server.keysOf('pi-b')
  const controller = await connected(t, server.port, server.controller)
  const stolen = await connected(t, server.port, keys)
  const seen: string[] = []
  stolen.on('message', (topic, body) => void seen.push(`${topic} ${body}`))
  await stolen.subscribeAsync('bramble/v1/nodes/pi-b/desired', { qos: 1 })
  await revoked(server, ['pi-a'], keys)
  await isRefused(t, server, keys)
  // As the controller does it before it writes the list with this name again: `server-folder.test.ts`.
  await displaceConnection('pi-b', { host: 'localhost', port: server.port }, { authority: server.authority, clock })
  await revoked(server, ['pi-a', 'pi-b', 'pi-c'], keys)
  const other = await connected(t, server.port, server.keysOf('pi-c'))
  const read: string[] = []
  other.on('message', (_, body) => void read.push(String(body)))
  await controller.publishAsync('bramble/v1/controller', 'online', { qos: 1, retain: true })
  await eventually('Mosquitto has read its files', async () => {
    await other.subscribeAsync('bramble/v1/controller', { qos: 1 })
    return read.length > 0
  })
  await controller.publishAsync('bramble/v1/nodes/pi-b/desired', 'secret', { qos: 1, retain: true })
  const next = await connected(t, server.port, server.keysOf('pi-b'))
  const own: string[] = []
  next.on('message', (_, body) => void own.push(String(body)))
  await next.subscribeAsync('bramble/v1/nodes/pi-b/desired', { qos: 1 })
  await eventually('the new machine has its pods', () => own.includes('secret'))
  t.same(seen, [])
})

test('a server that allows TLS session resumption is named in the log, with the remedy', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a'])
  const warnings = async () => {
    const log = quietLog(t)
    const broker = openExternalBroker({
      ...{ host: 'localhost', port: server.port, clientId: 'system:bramble-controller', tls: () => server.controller },
      lastWill: () => '{}',
      ...{ clock, random: Math.random, log, registry: metricsRegistry() },
    })
    const stopping = new AbortController()
    const running = broker.run(stopping.signal)
    await eventually('the controller is connected', () => broker.isConnected)
    // What the server sends after its part of the handshake comes before its answers.
    await broker.publish({ kind: 'controller' }, '{}')
    stopping.abort()
    await running
    return log.lines.filter(({ message }) => message.includes('allows TLS session resumption'))
  }
  t.same(await warnings(), [])
  await server.kill()
  await server.start({ resumesSessions: true })
  t.match(await warnings(), [{ level: 'warn', facts: { remedy: /set OPENSSL_CONF of the server/ } }])
})

test('MQTT 5 opens no other way', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a', 'pi-b'])
  const controller = await connected(t, server.port, server.controller)
  const seen: string[] = []
  controller.on('message', (topic, body) => void seen.push(`${topic} ${body}`))
  await controller.subscribeAsync('bramble/v1/#', { qos: 1 })
  const keys = server.keysOf('pi-a')
  const topic = 'bramble/v1/nodes/pi-b/status'
  const five = {
    protocolVersion: 5,
    clientId: 'x',
    properties: { topicAliasMaximum: 10, sessionExpiryInterval: 100 },
  } as const
  const evil = await connected(t, server.port, keys, { ...five, clean: false })
  const tries = [
    () => evil.publishAsync(topic, 'forged', { qos: 1, properties: { topicAlias: 1 } }),
    () => evil.publishAsync('', 'forged', { qos: 1, properties: { topicAlias: 1 } }),
    () => evil.publishAsync('bramble/v1/nodes/pi-a/status', 'own', { qos: 1, properties: { responseTopic: topic } }),
    () => evil.publishAsync('$SYS/broker/uptime', 'forged', { qos: 1, retain: true }),
    () => evil.publishAsync('$CONTROL/dynamic-security/v1', '{}', { qos: 1 }),
  ]
  for (const one of tries) await one().catch(() => undefined)
  const will = {
    topic,
    payload: Buffer.from('forged'),
    qos: 1,
    retain: true,
    properties: { willDelayInterval: 0 },
  } as const
  const dying = await connected(t, server.port, keys, { ...five, will }).catch(() => undefined)
  dying?.stream.destroy()
  await controller.publishAsync('bramble/v1/controller', 'end', { qos: 1 })
  await eventually('the end', () => seen.includes('bramble/v1/controller end'))
  t.same(
    seen.filter((one) => one.includes('pi-b') || one.endsWith('forged')),
    [],
  )
})
