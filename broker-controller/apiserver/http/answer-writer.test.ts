import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import type { ApiResponse } from '../wire/answers.ts'
import { warningHeaders, writeAnswer } from './answer-writer.ts'

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
  const { text } = await written(t, { kind: 'object', code: 200, body: { kind: 'List', items } }, closing, drained)
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
  const { text } = await written(t, { kind: 'stream', pieces: pieces() }, new AbortController(), drained)
  t.equal(text, `${'x'.repeat(1_000_000)}\nshort\n`)
  t.ok(slices >= 15, `${slices} slices`)
  t.ok(largest < 200_000, `${largest} bytes wait at most`)
})

async function written(
  t: Test,
  answer: ApiResponse,
  { signal }: AbortController,
  drained: (outgoing: ServerResponse) => Promise<void>,
) {
  const server = createServer((_, outgoing) => {
    const slow = { drained: () => drained(outgoing) }
    void writeAnswer(answer, false, outgoing, signal, slow)
  })
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const [incoming] = (await once(get({ host: '127.0.0.1', port, agent: false }), 'response')) as [IncomingMessage]
  incoming.setEncoding('utf8')
  let text = ''
  for await (const chunk of incoming) text += chunk
  return { text }
}
