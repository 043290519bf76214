import { once } from 'node:events'
import { createServer, IncomingMessage, request, ServerResponse } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import type { ApiResponse } from '../wire/answers.ts'
import { warningHeaders, writeAnswer } from './answer-writer.ts'
import { chunkOf } from './shared-chunks.ts'

test('warnings are sent whole, or cut and left out where they are too long for headers', async (t) => {
  t.same(warningHeaders(['a "b"', 'c']), ['299 - "a \\"b\\""', '299 - "c"'])
  const many = warningHeaders(Array.from({ length: 10_000 }, () => 'x'.repeat(300)))
  t.equal(many.length, 16)
  t.ok(many.every((text) => text.length < 300))
})

test('a list is sent whole when the server closes while it is written', async (t) => {
  const items = Array.from({ length: 2000 }, (_, index) => ({ name: `item-${index}`, text: 'x'.repeat(100) }))
  const closing = new AbortController()
  const drained = async () => closing.abort()
  const { text } = await written(
    t,
    { kind: 'object', code: 200, body: { kind: 'List', items } },
    {
      signal: closing.signal,
      drained,
    },
  )
  t.ok(closing.signal.aborted)
  t.same(JSON.parse(text), { kind: 'List', items })
})

test('a large event of a watch is written in slices, each when the one before was taken', async (t) => {
  async function* pieces() {
    yield Buffer.from(`${'x'.repeat(1_000_000)}\n`)
    yield 'short\n'
  }
  let slices = 0
  let largest = 0
  const drained = async (outgoing: ServerResponse) => {
    slices += 1
    largest = Math.max(largest, outgoing.writableLength)
    if (outgoing.writableNeedDrain) await once(outgoing, 'drain')
  }
  const { text } = await written(t, { kind: 'stream', pieces: pieces() }, { drained })
  t.equal(text, `${'x'.repeat(1_000_000)}\nshort\n`)
  t.ok(slices >= 15, `${slices} slices`)
  t.ok(largest < 200_000, `${largest} bytes wait at most`)
})

test('an event is a chunk that all its clients share, and plain bytes for a client of HTTP/1.0', async (t) => {
  const event = Buffer.from('an event\n')
  async function* pieces() {
    yield event
    yield Buffer.alloc(0)
    yield 'another\n'
  }
  t.equal(
    await bodyOf(t, { kind: 'stream', pieces: pieces() }, 'HTTP/1.1'),
    '9\r\nan event\n\r\n8\r\nanother\n\r\n0\r\n\r\n',
  )
  t.equal(await bodyOf(t, { kind: 'stream', pieces: pieces() }, 'HTTP/1.0'), 'an event\nanother\n')
  t.equal(chunkOf(event), chunkOf(event), 'framed once')
})

/** As it is on the wire. */
async function bodyOf(t: Test, answer: ApiResponse, protocol: string): Promise<string> {
  const port = await serving(t, (outgoing) =>
    writeAnswer(answer, false, outgoing, idle, { drained: async () => undefined }),
  )
  const socket = connect({ host: '127.0.0.1', port })
  socket.setEncoding('latin1').write(`GET / ${protocol}\r\nHost: x\r\nConnection: close\r\n\r\n`)
  let text = ''
  for await (const piece of socket) text += piece
  return text.slice(text.indexOf('\r\n\r\n') + 4)
}

const short: ApiResponse = { kind: 'object', code: 201, body: { a: 1 } }

test('a short answer is one packet with its length and a newline at its end', async (t) => {
  const { incoming, text } = await written(t, short)
  t.equal(incoming.statusCode, 201)
  t.equal(text, '{"a":1}\n')
  t.match(incoming.headers, {
    'content-type': 'application/json',
    'content-length': '8',
    'cache-control': 'no-cache, private',
  })
  t.notOk('warning' in incoming.headers || 'retry-after' in incoming.headers)
})

test('an object is YAML for who accepts YAML, or of the content type the answer names', async (t) => {
  const yaml = await written(t, { ...short, encoding: 'yaml' })
  t.equal(yaml.text, 'a: 1\n', 'one line, as of Kubernetes')
  t.equal(yaml.incoming.headers['content-type'], 'application/yaml')
  const own = await written(t, { ...short, contentType: 'application/json;as=Table' })
  t.equal(own.incoming.headers['content-type'], 'application/json;as=Table')
})

test('warnings and the time to come back are headers', async (t) => {
  const { incoming } = await written(t, { ...short, warnings: ['old field'], retryAfterSeconds: 5 })
  t.match(incoming.headers, { warning: '299 - "old field"', 'retry-after': '5' })
  t.notOk('warning' in (await written(t, { ...short, warnings: [] })).incoming.headers)
})

test('HEAD has the head of the answer, with the length of what GET sends, and no body', async (t) => {
  const items = Array.from({ length: 2000 }, (_, index) => ({ name: `\u00fc-${index}`, text: 'x'.repeat(100) }))
  for (const answer of [short, { ...short, code: 200, body: { kind: 'List', items } }]) {
    const get = await written(t, answer)
    const head = await written(t, answer, { method: 'HEAD' })
    t.equal(head.text, '')
    t.equal(head.incoming.statusCode, answer.code)
    t.equal(head.incoming.headers['content-length'], String(Buffer.byteLength(get.text)))
  }
  const text = await written(t, { kind: 'text', code: 200, text: 'ok', contentType: 'text/plain' }, { method: 'HEAD' })
  t.equal(text.incoming.headers['content-length'], '2')
})

test('the length of a long list is counted for HEAD in many turns of the event loop', async (t) => {
  let turn = 0
  const turns = new Set<number>()
  const toJSON = () => {
    turns.add(turn)
    return 'x'.repeat(10_000)
  }
  let isOver = false
  const count = () => {
    turn += 1
    if (!isOver) setImmediate(count)
  }
  count()
  const body = { kind: 'List', items: Array.from({ length: 100 }, () => ({ toJSON })) }
  await written(t, { kind: 'object', code: 200, body }, { method: 'HEAD' })
  isOver = true
  t.ok(turns.size > 10, `${turns.size} turns`)
})

test('a text has its length and its content type', async (t) => {
  const { incoming, text } = await written(t, { kind: 'text', code: 404, text: '\u00fcber', contentType: 'text/plain' })
  t.equal(incoming.statusCode, 404)
  t.equal(text, '\u00fcber')
  t.match(incoming.headers, { 'content-type': 'text/plain', 'content-length': '5' })
})

test('an answer up to 60 kB is sent at once, a longer one in slices', async (t) => {
  for (const [length, slices] of [
    [60 * 1024, 0],
    [60 * 1024 + 1, 2],
  ] as const) {
    let written = 0
    const outgoing = responseDouble(() => written++ < 0)
    const text = 'x'.repeat(length)
    await writeAnswer({ kind: 'text', code: 200, text, contentType: 'text/plain' }, false, outgoing, idle, unhurried)
    t.equal(written, slices, `${length} bytes`)
  }
})

const document: ApiResponse = {
  kind: 'document',
  code: 200,
  bytes: Buffer.from('{}'),
  contentType: 'application/json',
  etag: '"1"',
  isImmutable: false,
}

test('a document has its tag; one whose address names its content is kept for a year', async (t) => {
  const plain = await written(t, document)
  t.equal(plain.text, '{}')
  t.match(plain.incoming.headers, {
    'content-type': 'application/json',
    'cache-control': 'no-cache, private',
    etag: '"1"',
    vary: 'Accept, Accept-Encoding',
  })
  t.equal(plain.incoming.headers['content-encoding'], undefined)
  const packed = await written(t, { ...document, bytes: gzipSync('{}'), encoding: 'gzip' })
  t.equal(packed.incoming.headers['content-encoding'], 'gzip')
  const kept = await written(t, { ...document, isImmutable: true })
  t.equal(kept.incoming.headers['cache-control'], 'public, immutable, max-age=31536000')
})

test('a document the client has is answered with 304 and nothing else', async (t) => {
  const { incoming, text } = await written(t, { ...document, code: 304 })
  t.equal(incoming.statusCode, 304)
  t.equal(incoming.headers.etag, '"1"')
  t.equal(text, '')
})

test('pieces are sent with the content type of the answer, a watch as JSON, a log with its own', async (t) => {
  async function* pieces() {
    yield 'one '
    yield 'two'
  }
  async function* bytes() {
    for await (const piece of pieces()) yield Buffer.from(piece)
  }
  const answers = [
    [
      { kind: 'pieces', code: 200, contentType: 'text/plain; version=0.0.4', pieces: pieces() },
      'text/plain; version=0.0.4',
    ],
    [{ kind: 'stream', pieces: pieces() }, 'application/json'],
    [{ kind: 'flow', contentType: 'text/plain', pieces: bytes() }, 'text/plain'],
  ] as const
  for (const [answer, contentType] of answers) {
    const { incoming, text } = await written(t, answer)
    t.equal(text, 'one two', answer.kind)
    t.equal(incoming.headers['content-type'], contentType)
  }
})

test('HEAD of a watch or a log does not begin it', async (t) => {
  async function* never(): AsyncGenerator<Buffer> {
    yield Buffer.from(String(t.fail('begun')))
  }
  for (const answer of [
    { kind: 'stream', pieces: never() },
    { kind: 'flow', contentType: 'text/plain', pieces: never() },
  ] as const) {
    const { incoming, text } = await written(t, answer, { method: 'HEAD' })
    t.equal(incoming.statusCode, 200)
    t.equal(text, '')
  }
})

test('a watch and a log end with the signal, without another piece', async (t) => {
  for (const kind of ['stream', 'flow'] as const) {
    const over = new AbortController()
    async function* pieces() {
      yield Buffer.from('sent')
      over.abort()
      yield Buffer.from('not sent')
    }
    const answer = { kind, contentType: 'text/plain', pieces: pieces() }
    const { text } = await written(t, answer, { signal: over.signal })
    t.equal(text, 'sent', kind)
  }
})

test('a log waits for its reader where much is unsent, until the signal', async (t) => {
  const over = new AbortController()
  const given: string[] = []
  async function* pieces() {
    for (const text of ['a', 'b', 'c', 'd']) {
      given.push(text)
      yield Buffer.from(text)
    }
  }
  let unsent = 128 * 1024 - 1
  const outgoing = responseDouble(() => false)
  Object.defineProperty(outgoing, 'writableLength', { get: () => unsent++ })
  const answer: ApiResponse = { kind: 'flow', contentType: 'text/plain', pieces: pieces() }
  const done = writeAnswer(answer, false, outgoing, over.signal, unhurried)
  await turn()
  t.same(given, ['a', 'b'], 'the reader has not taken them')
  outgoing.emit('drain')
  await turn()
  t.same(given, ['a', 'b', 'c'])
  over.abort()
  await done
  t.same(given, ['a', 'b', 'c', 'd'], 'the piece after the end of the signal is not sent')
  t.equal(outgoing.listenerCount('drain'), 0)
})

test('a log whose signal aborts while a piece is written does not wait for its reader', async (t) => {
  const over = new AbortController()
  async function* pieces() {
    yield Buffer.from('a')
  }
  const outgoing = responseDouble(() => {
    over.abort()
    return false
  })
  await writeAnswer(
    { kind: 'flow', contentType: 'text/plain', pieces: pieces() },
    false,
    outgoing,
    over.signal,
    unhurried,
  )
  t.ok(outgoing.writableEnded)
})

test('nothing is written for a client that is gone', async (t) => {
  const outgoing = responseDouble(() => true)
  outgoing.destroy()
  Object.assign(outgoing, { setHeader: () => t.fail('a header') })
  await writeAnswer(short, false, outgoing, idle, unhurried)
})

test('a connection that was not asked for is an error of the program', async (t) => {
  const answer: ApiResponse = { kind: 'connection', take: async () => undefined }
  await t.rejects(
    writeAnswer(
      answer,
      false,
      responseDouble(() => true),
      idle,
      unhurried,
    ),
    /was not asked for/,
  )
})

test('4,096 characters of warnings are sent whole, one more has each cut to 256', async (t) => {
  const [long, last] = ['y'.repeat(4000), 'z'.repeat(96)]
  t.same(warningHeaders([long, last]), [`299 - "${long}"`, `299 - "${last}"`])
  const [cut = '', ...others] = warningHeaders([long, `${last}z`])
  t.ok(cut.length < 300)
  t.same(others, [`299 - "${last}z"`])
})

const idle = new AbortController().signal
const unhurried = { drained: async () => undefined }
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A response without a connection; `write` is asked whether the reader takes more. */
function responseDouble(write: () => boolean): ServerResponse {
  const outgoing = new ServerResponse(new IncomingMessage(new Socket()))
  return Object.assign(outgoing, { write })
}

type Circumstances = {
  readonly signal?: AbortSignal
  readonly drained?: (outgoing: ServerResponse) => Promise<void>
  readonly method?: string
}

/** What a client receives of the answer. */
async function written(t: Test, answer: ApiResponse, { signal = idle, drained, method = 'GET' }: Circumstances = {}) {
  const port = await serving(t, (outgoing) =>
    writeAnswer(answer, method === 'HEAD', outgoing, signal, { drained: async () => drained?.(outgoing) }),
  )
  const sent = request({ host: '127.0.0.1', port, agent: false, method }).end()
  const [incoming] = (await once(sent, 'response')) as [IncomingMessage]
  incoming.setEncoding('utf8')
  let text = ''
  for await (const chunk of incoming) text += chunk
  return { incoming, text }
}

async function serving(t: Test, answer: (outgoing: ServerResponse) => Promise<void>): Promise<number> {
  // Each slice is more, so each is waited for: the default of Node.js 22 is above it.
  const server = createServer({ highWaterMark: 16 * 1024 }, (_, outgoing) => void answer(outgoing))
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
