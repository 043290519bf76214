import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { bodyReader } from './body-reader.ts'
import { openAnswer } from './connection.ts'

/** The path of the socket of an engine that answers each request so. */
async function engine(t: Test, answer: (response: ServerResponse, url: string) => void): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-log-'))
  const socketPath = join(folder, 'docker.sock')
  const server = createServer((request, response) => answer(response, request.url ?? ''))
  server.listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true })
  })
  return socketPath
}

const never = new AbortController().signal

function open(socketPath: string, path = '/', signal = never) {
  return openAnswer({ socketPath, path, readerOf: bodyReader }, signal)
}

async function textOf(pieces: AsyncIterable<Buffer>): Promise<string> {
  const got: string[] = []
  for await (const piece of pieces) got.push(String(piece))
  return got.join('')
}

test('a log is read to its end, without the chunks in which it was sent', async (t) => {
  const asked: string[] = []
  const socketPath = await engine(t, (response, url) => {
    asked.push(url)
    for (let i = 0; i < 1_000; i++) response.write(`line ${i}\n`)
    response.end()
  })
  const { pieces } = await open(socketPath, '/containers/c1/logs?tail=all')
  t.equal(await textOf(pieces), Array.from({ length: 1_000 }, (_, i) => `line ${i}\n`).join(''))
  t.same(asked, ['/containers/c1/logs?tail=all'])
})

test('a log whose connection is cut is reported as incomplete', async (t) => {
  const socketPath = await engine(t, (response) => {
    response.write('first\n', () => response.destroy())
  })
  const { pieces } = await open(socketPath)
  await t.rejects(textOf(pieces), /before the end of its answer/)
})

test('a refusal has the status and the message of the engine', async (t) => {
  const socketPath = await engine(t, (response) => {
    response.writeHead(404, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ message: 'No such container: c1' }))
  })
  const refusal = await open(socketPath).catch((error: unknown) => error)
  t.match(refusal, { statusCode: 404, json: { message: 'No such container: c1' } })
  await t.rejects(open(`${socketPath}.gone`), { code: 'ENOENT' })
})

test('an engine that does not answer is not waited for', async (t) => {
  const over = new AbortController()
  const socketPath = await engine(t, () => over.abort('deadline'))
  await t.rejects(open(socketPath, '/', over.signal))
})

test('a log that is not wanted any more closes its connection', async (t) => {
  const closed: Promise<unknown>[] = []
  const socketPath = await engine(t, (response) => {
    closed.push(once(response, 'close'))
    response.write('first\n')
  })
  const { pieces, destroy } = await open(socketPath)
  t.equal(String((await pieces.next()).value), 'first\n')
  destroy()
  await closed[0]
  await t.rejects(textOf(pieces))
})
