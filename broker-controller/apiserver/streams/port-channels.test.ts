import { Duplex, PassThrough } from 'node:stream'
import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { sessionChannels } from '../../../api/sessions.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { sessionFrames } from '../../../daemon/sessions/session-frames.ts'
import type { ByteChannel } from './byte-channel.ts'
import { forwardChannels, forwardedPorts } from './port-channels.ts'

const read = (text: string) => forwardedPorts(new URLSearchParams(text))

test('the query names the ports, each by itself or with commas between them', async (t) => {
  t.same(read('ports=8080'), [8080])
  t.same(read('ports=1&ports=65535,80'), [1, 65_535, 80])
  t.equal(read(`ports=${Array(128).fill('80').join(',')}`).length, 128)
})

test('a query without a valid port is refused', async (t) => {
  t.throws(() => read(''), { reason: 'BadRequest', message: 'query parameter "ports" is required' })
  t.throws(() => read(`ports=${Array(129).fill('80').join(',')}`), {
    message: 'at most 128 ports can be forwarded together',
  })
  for (const port of ['', '0', '65536', '-1', '1e3', '80.5', ' 80', '000080', 'http']) {
    const message = `unable to parse ${JSON.stringify(port)} as a port: it must be 1 to 65535`
    t.throws(() => read(`ports=${encodeURIComponent(port)}`), { reason: 'BadRequest', message })
  }
})

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'default', uid: 'u' },
  spec: { nodeName: 'pi-1', containers: [] },
}

/** Sessions of a node that sends `hello PORT` on each connection, and ends that to the port 1 at once, the others with `lastEnd`. */
function greetingNode(lastEnd: Promise<void>) {
  const connected = () => {
    const [there, back] = [new PassThrough(), new PassThrough()]
    const node = sessionFrames(Duplex.from({ readable: there, writable: back }))
    const serve = async () => {
      const { portForward } = JSON.parse(String((await node.next())?.payload))
      await node.sendText(sessionChannels.status, JSON.stringify({ state: 'started' }))
      await node.sendText(sessionChannels.output, `hello ${portForward.port}`)
      if (portForward.port !== 1) await lastEnd
      await node.sendText(sessionChannels.status, JSON.stringify({ state: 'ended' }))
    }
    void serve()
    return Duplex.from({ readable: back, writable: there })
  }
  return { open: async () => connected(), awaits: () => false, connect: () => false }
}

test('a reset that an earlier agent reports as an error ends that connection without a message', async (t) => {
  const sentOf = async (message: string) => {
    const [there, back] = [new PassThrough(), new PassThrough()]
    const node = sessionFrames(Duplex.from({ readable: there, writable: back }))
    const sessions = {
      async open() {
        await node.sendText(sessionChannels.status, JSON.stringify({ state: 'started' }))
        await node.sendText(sessionChannels.output, 'hello')
        await node.sendText(
          sessionChannels.status,
          JSON.stringify({ state: 'ended', reason: 'InternalError', message }),
        )
        return Duplex.from({ readable: back, writable: there })
      },
      awaits: () => false,
      connect: () => false,
    }
    const { client, sent } = silentClient()
    const request = { identity: { user: 'ada', groups: [] }, signal: client.closed }
    await forwardChannels(client, [80], pod, request, { sessions, clock })
    return sent.slice(2)
  }
  for (const reset of ['read ECONNRESET', 'write EPIPE']) t.same(await sentOf(reset), ['\u0000hello'])
  t.same(await sentOf('no space'), ['\u0000hello', '\u0001error forwarding port 80 to pod u: no space'])
})

/** A client that sends nothing; it has gone once the server ends the connection. */
function silentClient() {
  const sent: string[] = []
  const closed = new AbortController()
  const gone = new Promise<undefined>((resolve) => {
    closed.signal.addEventListener('abort', () => resolve(undefined))
  })
  const client: ByteChannel = {
    next: () => gone,
    async send(bytes) {
      sent.push(Buffer.from(bytes).toString('latin1'))
    },
    flushed: async () => undefined,
    closed: closed.signal,
    close: () => closed.abort('closed'),
    destroy: () => closed.abort('closed'),
  }
  return { client, sent }
}

test('each port has its own channels, and the connection ends with the last of them', async (t) => {
  let endLast = () => {}
  const lastEnd = new Promise<void>((resolve) => {
    endLast = resolve
  })
  const { client, sent } = silentClient()
  const request = { identity: { user: 'ada', groups: [] }, signal: client.closed }
  const forwarding = forwardChannels(client, [258, 1], pod, request, { sessions: greetingNode(lastEnd), clock })
  while (sent.length < 6) await new Promise((resolve) => setImmediate(resolve))
  t.same(sent.slice(0, 4), ['\x00\x02\x01', '\x01\x02\x01', '\x02\x01\x00', '\x03\x01\x00'])
  t.same(sent.slice(4).toSorted(), ['\x00hello 258', '\x02hello 1'])
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  t.notOk(client.closed.aborted, 'the connection to the other port goes on')
  endLast()
  await forwarding
  t.ok(client.closed.aborted)
})
