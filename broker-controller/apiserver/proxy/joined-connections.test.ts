import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { blockedMs, joinConnections } from './joined-connections.ts'

test('what comes on one goes out on the other, and both end together', async (t) => {
  const { client, server, joined } = aPair(t, { fromClient: 'a', fromServer: 'b' })
  client.far.write('c')
  server.far.write('d')
  t.equal(await read(server.far, 2), 'ac')
  t.equal(await read(client.far, 2), 'bd')
  server.far.end()
  await joined
  t.ok(client.near.destroyed && server.near.destroyed)
})

test('they end where the server takes nothing for a time, and not where it sends or takes', async (t) => {
  const { client, server, joined, clock } = aPair(t)
  let isOver = false
  void joined.then(() => {
    isOver = true
  })
  const later = async (ms: number) => {
    await clock.advance(ms)
    return isOver
  }
  t.notOk(await later(10 * blockedMs), 'nothing waits')
  client.far.resume()
  for (let i = 0; i < 64; i++) client.far.write(Buffer.alloc(16_384))
  await clock.settle()
  t.ok(server.near.writableNeedDrain, 'it is blocked')
  for (let i = 0; i < 4; i++) {
    server.far.write('still here')
    t.notOk(await later(blockedMs), 'the server sends')
  }
  server.far.read(16_384)
  t.notOk(await later(blockedMs), 'it takes something')
  await later(2 * blockedMs)
  t.ok(isOver, 'it takes and sends nothing')
  t.ok(client.near.destroyed && server.near.destroyed)
  t.equal(clock.sleepers, 0)
})

function aPair(t: Test, sent: { readonly fromClient?: string; readonly fromServer?: string } = {}) {
  const clock = fakeClock()
  const [client, server] = [anEnd(t), anEnd(t)]
  const connection = {
    incoming: new IncomingMessage(new Socket()),
    socket: client.near,
    head: Buffer.from(sent.fromClient ?? ''),
    signal: new AbortController().signal,
  }
  const joined = joinConnections(connection, { socket: server.near, head: Buffer.from(sent.fromServer ?? '') }, clock)
  return { client, server, joined, clock }
}

function anEnd(t: Test) {
  const [there, back] = [new PassThrough(), new PassThrough()]
  const near = Duplex.from({ writable: there, readable: back })
  const far = Duplex.from({ writable: back, readable: there })
  for (const one of [there, back, near, far]) one.on('error', () => undefined)
  t.teardown(() => void [near, far].map((one) => one.destroy()))
  return { near, far }
}

async function read(from: Duplex, bytes: number): Promise<string> {
  let text = ''
  from.on('data', (piece: Buffer) => {
    text += piece.toString()
  })
  while (text.length < bytes) await new Promise((resolve) => setImmediate(resolve))
  return text
}
