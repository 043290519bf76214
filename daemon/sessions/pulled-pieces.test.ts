import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { pulledReads } from './pulled-pieces.ts'

/** Both ends of a connection: that of the test, and one that is read by pieces. */
async function pair(
  t: Test,
): Promise<{ readonly far: Socket; readonly near: Socket; readonly pieces: AsyncGenerator<Buffer> }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const reads = pulledReads()
  const { port } = server.address() as AddressInfo
  const near = connect({ port, host: '127.0.0.1', onread: reads.onread })
  const [far] = (await accepted) as [Socket]
  for (const one of [near, far]) one.on('error', () => undefined)
  t.teardown(() => {
    near.destroy()
    far.destroy()
    server.close()
  })
  return { far, near, pieces: reads.pieces(near) }
}

test('all bytes come in pieces that stay as they are', async (t) => {
  const { far, pieces } = await pair(t)
  const sent = randomBytes(1_000_000)
  for (let at = 0, size = 1; at < sent.length; at += size, size = (size * 7) % 50_021)
    far.write(sent.subarray(at, at + size))
  far.end()
  const received: Buffer[] = []
  for await (const piece of pieces) received.push(piece)
  t.ok(Buffer.concat(received).equals(sent))
  t.ok(received.every(({ length }) => length <= 60 * 1024))
})

test('nothing is read that is not wanted', async (t) => {
  const { far, near, pieces } = await pair(t)
  far.write(Buffer.alloc(4_000_000))
  await pieces.next()
  for (let turn = 0; turn < 20; turn++) await setImmediate()
  t.ok(near.bytesRead <= 60 * 1024, `${near.bytesRead} bytes are read`)
})

test('a short piece keeps little memory', async (t) => {
  const { far, pieces } = await pair(t)
  far.write('line\n')
  const { value } = await pieces.next()
  t.equal(String(value), 'line\n')
  t.ok(value?.buffer.byteLength <= 16 * 1024)
})

test('a reader that waits gets the error of the connection', async (t) => {
  const { near, pieces } = await pair(t)
  const waiting = pieces.next()
  near.destroy(new Error('broken'))
  await t.rejects(waiting, { message: 'broken' })
})

test('a connection that is closed before its end does not end the data', async (t) => {
  const { near, pieces } = await pair(t)
  near.destroy()
  await t.rejects(pieces.next(), { message: 'The connection was closed' })
})

test('an end that came before the first piece was wanted is seen', async (t) => {
  const { far, near, pieces } = await pair(t)
  const ended = once(near, 'end')
  far.end()
  await ended
  t.same(await pieces.next(), { value: undefined, done: true })
})
