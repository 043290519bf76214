import { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { generate, type Packet } from 'mqtt-packet'
import { test } from 'tap'
import { pingrespPacket } from './mqtt-encoding.ts'
import { readPackets } from './session-socket.ts'

/** A socket that keeps the sizes of what is sent together, and the packets that it received. */
function aSocket(answerBytes = pingrespPacket.length) {
  const received: Packet[] = []
  const sent: number[] = []
  const send = (bytes: number, done: () => void) => {
    sent.push(bytes)
    done()
  }
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => send(chunk.length, done),
    writev: (chunks, done) =>
      send(
        chunks.reduce((sum, { chunk }: { readonly chunk: Buffer }) => sum + chunk.length, 0),
        done,
      ),
  })
  const answer = Buffer.alloc(answerBytes)
  const failures: unknown[] = []
  readPackets(
    socket,
    1024,
    (packet) => {
      received.push(packet)
      socket.write(answer)
    },
    (error) => {
      failures.push(error)
      socket.destroy()
    },
  )
  return { socket, sent, received, failures }
}

const ping = generate({ cmd: 'pingreq' })

test('the answers to pieces that are read in one turn of the event loop are sent together', async (t) => {
  const { socket, sent } = aSocket()
  socket.resume()
  await nextTurn()
  for (let piece = 0; piece < 3; piece++) socket.push(ping)
  t.same(sent, [], 'not before the turn ends')
  await nextTurn()
  await nextTurn()
  t.same(sent, [3 * pingrespPacket.length])
  socket.push(ping)
  await nextTurn()
  await nextTurn()
  t.same(sent, [3 * pingrespPacket.length, pingrespPacket.length], 'what is read later is answered later')
})

test('many answers do not wait for the end of the turn', async (t) => {
  const { socket, sent } = aSocket(1024)
  socket.resume()
  await nextTurn()
  for (let piece = 0; piece < 10; piece++) socket.push(ping)
  t.same(sent, [4096, 4096])
  await nextTurn()
  await nextTurn()
  t.same(sent, [4096, 4096, 2048])
})

test('a connection that ends in the turn of its last packets sends nothing more', async (t) => {
  const { socket, sent, failures } = aSocket()
  socket.on('error', () => undefined)
  socket.resume()
  await nextTurn()
  socket.push(ping)
  socket.push(generate({ cmd: 'publish', topic: 'a', payload: 'x'.repeat(2000), qos: 0, retain: false, dup: false }))
  await nextTurn()
  await nextTurn()
  t.same(failures, [undefined], 'a packet that is too large')
  t.same(sent, [])
})

test('what one connection sends does not change how the packets of others are read', async (t) => {
  const [first, later, broken, split] = [aSocket(), aSocket(), aSocket(), aSocket()]
  for (const { socket } of [first, later, broken, split]) {
    socket.on('error', () => undefined)
    socket.resume()
  }
  await nextTurn()
  const subscribe = generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'a', qos: 1 }] })
  const half = subscribe.subarray(0, 4)
  split.socket.push(half)
  const connect = { cmd: 'connect', protocolId: 'MQTT', clientId: 'a', clean: true, keepalive: 1 } as const
  first.socket.push(generate({ ...connect, protocolVersion: 5 }, { protocolVersion: 5 }))
  broken.socket.push(Buffer.concat([ping, Buffer.from([0x21, 0]), ping]))
  later.socket.push(Buffer.concat([subscribe, ping]))
  split.socket.push(subscribe.subarray(half.length))
  await nextTurn()
  const commands = ({ received }: { readonly received: readonly Packet[] }) => received.map(({ cmd }) => cmd)
  t.same([first, broken, later, split].map(commands), [
    ['connect'],
    ['pingreq'],
    ['subscribe', 'pingreq'],
    ['subscribe'],
  ])
  t.match(later.received[0], { subscriptions: [{ topic: 'a', qos: 1 }] })
  t.match(
    [first, broken, later, split].map(({ failures }) => failures.length),
    [0, 1, 0, 0],
  )
})
