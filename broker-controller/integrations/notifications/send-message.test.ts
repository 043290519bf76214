import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import type { Notification } from './messages.ts'
import { defaultTemplate, type HttpChannel } from './notify-settings.ts'
import { SendError, sendMessage } from './send-message.ts'
import { messageReceiver } from './testing/receiver.ts'

const message: Notification = { status: 'firing', title: '1 problem', text: 'Node "pi-1" is lost\nand more', count: 1 }
const never = new AbortController().signal

const channel = (url: string, more: Partial<HttpChannel> = {}): HttpChannel => ({
  name: 'phone',
  type: 'ntfy',
  url: { value: url },
  tokenFile: undefined,
  template: defaultTemplate,
  contentType: 'application/json',
  selection: { kinds: undefined, namespaces: undefined },
  ...more,
})

async function refusal(sending: Promise<void>): Promise<SendError> {
  const error: unknown = await sending.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof SendError) return error
  throw new Error('It was sent')
}

test('ntfy gets the text as the body, title and priority as headers', async (t) => {
  const { url, received } = await messageReceiver(t)
  await sendMessage(channel(url), message, never)
  t.match(received, [{ headers: { title: '1 problem', priority: 'high', tags: 'warning' }, body: message.text }])
})

test('a webhook gets its template, with values that cannot leave their string or field', async (t) => {
  const { url, received } = await messageReceiver(t)
  await sendMessage(channel(url, { type: 'webhook' }), message, never)
  t.match(received[0]?.headers, { 'content-type': 'application/json' })
  t.same(JSON.parse(received[0]?.body ?? ''), {
    ...{ status: 'firing', title: '1 problem', message: 'Node "pi-1" is lost\nand more', count: 1 },
  })
  const form = { template: 'to=me&text={{message}}', contentType: 'application/x-www-form-urlencoded' }
  await sendMessage(channel(url, { type: 'webhook', ...form }), { ...message, text: 'a&to=you \ud83d' }, never)
  t.same(
    [...new URLSearchParams(received.pop()?.body)],
    [
      ['to', 'me'],
      ['text', 'a&to=you \ufffd'],
    ],
  )
  const template = '{{title}}: {{message}} {{unknown}}'
  await sendMessage(channel(url, { type: 'webhook', template, contentType: 'text/plain' }), message, never)
  t.equal(received[1]?.body, '1 problem: Node "pi-1" is lost\nand more {{unknown}}')
})

test('a URL in a file is read for each message; other users must not be able to read it', async (t) => {
  const { url, received } = await messageReceiver(t)
  const file = join(testFolder(t), 'url')
  await writeFile(file, `${url}\n`, { mode: 0o600 })
  await sendMessage(channel('', { url: { file } }), message, never)
  t.equal(received.length, 1)
  await chmod(file, 0o644)
  const { message: why, isFinal } = await refusal(sendMessage(channel('', { url: { file } }), message, never))
  t.match(why, /Other users can read .*: chmod 600/)
  t.ok(isFinal)
})

test('a token is not sent in plain text', async (t) => {
  const { url, received } = await messageReceiver(t)
  const tokenFile = join(testFolder(t), 'token')
  await writeFile(tokenFile, 'hunter2', { mode: 0o600 })
  const { message: why } = await refusal(sendMessage(channel(url, { tokenFile }), message, never))
  t.match(why, /must begin with https:\/\//)
  t.same(received, [])
})

test('errors of the server pass, refusals stay, redirects are not followed; no error contains the URL', async (t) => {
  for (const [status, isFinal] of [
    [500, false],
    [503, false],
    [429, false],
    [400, true],
    [403, true],
    [302, true],
  ] as const) {
    const { url, received } = await messageReceiver(t, (response) =>
      response.writeHead(status, { location: '/other' }).end(),
    )
    const error = await refusal(sendMessage(channel(url), message, never))
    t.equal(error.isFinal, isFinal, String(status))
    t.notMatch(String(error.stack), /secret-topic/)
    t.equal(received.length, 1)
  }
})

test('a server that is away may come back', async (t) => {
  const error = await refusal(sendMessage(channel('http://127.0.0.1:1/secret-topic'), message, never))
  t.notOk(error.isFinal)
  t.notMatch(String(error.stack), /secret-topic/)
})

test('an answer that does not come is given up when the controller stops', async (t) => {
  const { url } = await messageReceiver(t, () => undefined)
  const stop = new AbortController()
  const sending = refusal(sendMessage(channel(url), message, stop.signal))
  stop.abort()
  t.notOk((await sending).isFinal)
})
