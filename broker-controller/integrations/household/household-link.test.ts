import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { openHouseholdLink } from './household-link.ts'
import { householdPace } from './paced-reading.ts'

const accepted = Buffer.from([0x20, 2, 0, 0])

/** A broker that accepts the first packet, and then does this. */
async function linkTo(t: Test, then: (socket: Socket) => void, receive: () => void = () => undefined) {
  const server = createServer((socket: Socket) => {
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.write(accepted)
      then(socket)
    })
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const broker = {
    ...{ isEncrypted: false, host: '127.0.0.1', port, username: undefined },
    ...{ passwordFile: undefined, caFile: undefined, clientFiles: undefined },
  }
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const link = await openHouseholdLink({ broker, clientId: 'test', receive }, stop.signal)
  t.teardown(() => link.close())
  return link
}

test('a message that is too long ends the connection before it has arrived', async (t) => {
  // PUBLISH of 256 MB, the longest that MQTT has; a part of it follows.
  const longest = Buffer.concat([Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]), Buffer.alloc(2 * 1024 * 1024)])
  const link = await linkTo(t, (socket) => void socket.write(longest))
  t.match(await link.ended, { message: 'A message is longer than 1048576 bytes' })
})

test('a message that the broker wants acknowledged ends the connection: none was asked for', async (t) => {
  for (const [first, qos] of [
    [0x32, 1],
    [0x34, 2],
  ] as const) {
    const message = Buffer.from([first, 6, 0, 1, 97, 0, 7, 120])
    const link = await linkTo(t, (socket) => void socket.write(message))
    t.match(await link.ended, { message: `The broker sends with QoS ${qos} what was subscribed to with QoS 0` })
  }
})

test('a flood of messages is read at a pace, in pieces between which others get their turn', async (t) => {
  const message = Buffer.from([0x30, 6, 0, 3, 97, 47, 98, 120])
  const flood = Buffer.concat(Array.from({ length: 8_192 }, () => message))
  const { burstBytes, bytesPerSecond, bytesAtOnce, bytesPerMessage } = householdPace
  let [received, inTurn, mostInTurn, turns] = [0, 0, 0, 0]
  const beganMs = performance.now()
  const link = await linkTo(
    t,
    (socket) => void pipeline(Readable.from(Array.from({ length: 64 }, () => flood)), socket).catch(() => undefined),
    () => {
      received += message.length
      inTurn += message.length
      mostInTurn = Math.max(mostInTurn, inTurn)
    },
  )
  // Until more than the burst has arrived, or it is held back.
  for (let last = -1; received > last || received === 0; ) {
    last = received
    for (let turn = 0; turn < 50; turn++, turns++) {
      inTurn = 0
      await nextTurn()
    }
  }
  const seconds = (performance.now() - beganMs) / 1000
  t.ok(received > 0 && turns > 0)
  t.ok(mostInTurn <= 4 * bytesAtOnce, `${mostInTurn} bytes in one turn`)
  // What counts is read once a piece has been taken in.
  const each = message.length + bytesPerMessage
  const most = (burstBytes + bytesPerSecond * seconds) / each + (2 * bytesAtOnce) / message.length
  const messages = received / message.length
  t.ok(messages <= most, `${messages} messages in ${seconds.toFixed(1)} s, of ${most.toFixed(0)} at most`)
  await link.close()
})
