import { test } from 'tap'
import type { ByteChannel } from './byte-channel.ts'
import { spdyConnection } from './spdy-connection.ts'
import { headerReader, headerWriter } from './spdy-headers.ts'

test('streams are opened, answered, and carry data both ways', async (t) => {
  const client = await aClient()
  await client.open(1, [['Streamtype', 'data']])
  const stream = await client.connection.accept()
  t.same(stream?.headers, new Map([['streamtype', 'data']]))
  client.send(dataFrame(1, 0, 'hello'), dataFrame(1, 1, ' world'))
  t.same([await stream?.next(), await stream?.next(), await stream?.next()].map(String), [
    'hello',
    ' world',
    'undefined',
  ])
  await stream?.send(Buffer.from('answer'))
  await stream?.end()
  const sent = client.sent().toString('hex')
  t.match(sent, /^8003000200000/, 'a reply')
  t.ok(sent.endsWith(Buffer.concat([dataFrame(1, 0, 'answer'), dataFrame(1, 1, '')]).toString('hex')))
})

test('pings are answered, and what does not concern streams is passed over', async (t) => {
  const client = await aClient()
  const settings = Buffer.from('800300040000000400000000', 'hex')
  client.send(settings, Buffer.from('80030006000000040000002b', 'hex'), Buffer.from('800300060000000400000002', 'hex'))
  await turns()
  t.equal(client.sent().toString('hex'), '80030006000000040000002b', 'an even one is an answer')
  t.notOk(client.isDestroyed())
})

test('data that is not taken stops the connection', async (t) => {
  const client = await aClient()
  await client.open(1, [])
  await client.connection.accept()
  for (let i = 0; i < 100; i++) client.send(dataFrame(1, 0, 'x'.repeat(1000)))
  await turns()
  t.ok(client.unread() > 95, `${client.unread()} frames are left`)
})

test('a client that leaves while its data is not taken ends the connection', async (t) => {
  const client = await aClient()
  await client.open(1, [])
  const stream = await client.connection.accept()
  for (let i = 0; i < 3; i++) client.send(dataFrame(1, 0, 'x'))
  await turns()
  client.leave()
  t.equal(await client.connection.accept(), undefined)
  t.ok(stream?.signal.aborted)
})

test('invalid SPDY, or too much of it, ends the connection', async (t) => {
  const long = Buffer.alloc(8)
  long.writeUInt32BE(0x80030001)
  long.writeUInt32BE(0x00ffffff, 4)
  const bomb = await deflated(Buffer.alloc(1_000_000))
  for (const [what, bytes] of [
    ['too long a control frame', long],
    ['a frame that is too short', Buffer.from('8003000600000000', 'hex')],
    ['headers that are not compressed', synStream(1, Buffer.from('hello, world'))],
    ['headers that grow', synStream(1, bomb)],
  ] as const) {
    const client = await aClient()
    client.send(bytes)
    await turns()
    t.equal(await client.connection.accept(), undefined, what)
    t.ok(client.isDestroyed(), what)
  }
})

test('a client has a bounded number of streams', async (t) => {
  const client = await aClient()
  for (let id = 1; id <= 601; id += 2) await client.open(id, [])
  for (let accepted = 0; accepted < 256; accepted++) t.ok(await client.connection.accept())
  const more = client.connection.accept()
  client.connection.destroy()
  t.equal(await more, undefined, 'no more than 256')
})

test('a stream that the client resets is over for its reader and its writer', async (t) => {
  const client = await aClient()
  await client.open(1, [])
  const stream = await client.connection.accept()
  if (stream === undefined) return t.fail('no stream')
  t.notOk(stream.signal.aborted)
  client.send(Buffer.from('8003000300000008' + '00000001' + '00000005', 'hex'))
  t.equal(await stream.next(), undefined)
  t.ok(stream.signal.aborted)
  await t.rejects(stream.send(Buffer.from('late')), /closed/)
})

async function deflated(block: Buffer): Promise<Buffer> {
  const name = block.toString('latin1')
  return await headerWriter().write(new Map([[name, '']]))
}

async function aClient() {
  const incoming: Buffer[] = []
  let wake: () => void = () => undefined
  const out: Buffer[] = []
  let isDestroyed = false
  const closed = new AbortController()
  const channel: ByteChannel = {
    async next() {
      while (incoming.length === 0 && !isDestroyed) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return isDestroyed ? undefined : incoming.shift()
    },
    send: async (bytes) => void out.push(Buffer.from(bytes)),
    flushed: async () => undefined,
    closed: closed.signal,
    close: () => undefined,
    destroy() {
      isDestroyed = true
      closed.abort('closed')
      wake()
    },
  }
  const writer = headerWriter()
  const connection = spdyConnection(channel)
  const send = (...frames: readonly Buffer[]) => {
    incoming.push(...frames)
    wake()
  }
  return {
    connection,
    send,
    sent: () => Buffer.concat(out),
    unread: () => incoming.length,
    isDestroyed: () => isDestroyed,
    leave: () => closed.abort('closed'),
    async open(id: number, headers: readonly (readonly [string, string])[]) {
      send(synStream(id, await writer.write(new Map(headers))))
    },
  }
}

function synStream(id: number, block: Buffer): Buffer {
  const frame = Buffer.alloc(18)
  frame.writeUInt32BE(0x80030001)
  frame.writeUInt32BE(10 + block.length, 4)
  frame.writeUInt32BE(id, 8)
  return Buffer.concat([frame, block])
}

function dataFrame(id: number, flags: number, text: string): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(id)
  head.writeUInt32BE(flags * 0x1000000 + text.length, 4)
  return Buffer.concat([head, Buffer.from(text)])
}

async function turns(count = 50): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('header blocks are read as they were written, over the whole connection', async (t) => {
  const [reader, writer] = [headerReader(), headerWriter()]
  t.teardown(() => {
    reader.close()
    writer.close()
  })
  for (const port of ['80', '443', '8080']) {
    const headers = new Map([
      ['streamtype', 'data'],
      ['port', port],
      ['requestid', '0'],
    ])
    const block = await writer.write(headers)
    t.same(await reader.read(block), headers)
  }
})
