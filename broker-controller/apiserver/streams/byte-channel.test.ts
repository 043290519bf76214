import { Duplex } from 'node:stream'
import { test } from 'tap'
import { sendWindow, socketChannel } from './byte-channel.ts'

const most = 128 * 1024

test('a write is waited for only where much is unsent, or the connection is closed', async (t) => {
  let unsent: number | undefined = most - 1
  let finish: (error?: Error) => void = () => undefined
  const { send, flushed } = sendWindow(() => unsent)
  const write = (done: (error?: Error) => void) => {
    finish = done
  }
  await send(write)
  t.equal(await stateOf(flushed()), 'waits')
  finish()
  t.equal(await stateOf(flushed()), 'done')
  for (const waiting of [most, undefined]) {
    unsent = waiting
    const sending = send(write)
    t.equal(await stateOf(sending), 'waits', `${waiting} bytes`)
    finish()
    t.equal(await stateOf(sending), 'done')
  }
  const failing = send(write)
  finish(new Error('gone'))
  await t.rejects(failing, { message: 'gone' })
  t.equal(await stateOf(flushed()), 'done', 'a client that is gone is not waited for')
})

test('what waits for a client that reads nothing is bounded, and it is refused when it has gone', async (t) => {
  let fail: (error: Error) => void = () => undefined
  const socket = new Duplex({
    read: () => undefined,
    write(_chunk, _encoding, done) {
      fail = done
    },
    destroy(error, done) {
      fail(new Error('destroyed')) // as a socket: the write that is under way fails
      done(error)
    },
  })
  socket.on('error', () => undefined)
  const channel = socketChannel(socket, Buffer.alloc(0))
  const piece = Buffer.alloc(most / 2)
  await channel.send(piece)
  const second = channel.send(piece)
  t.equal(await stateOf(second), 'waits')
  const refused = t.rejects(second, /destroyed/)
  channel.destroy()
  await refused
  await t.rejects(channel.send(Buffer.of(1)), /destroyed/)
  t.equal(await stateOf(channel.flushed()), 'done')
  t.ok(channel.closed.aborted)
})

async function stateOf(promise: Promise<void>): Promise<'waits' | 'done'> {
  const turn = new Promise<'waits'>((resolve) => setImmediate(resolve, 'waits'))
  return Promise.race([promise.then(() => 'done' as const), turn])
}
