import { Duplex, PassThrough } from 'node:stream'
import { type Test, test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { longestFrame, type SessionRequest, sessionChannels } from '../../api/sessions.ts'
import { aPod } from '../../api/testing/builders.ts'
import { sessionFrames } from '../../daemon/sessions/session-frames.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import type { RuntimeContainer } from '../runtime/runtime.ts'
import { noBackups, noCopies } from '../testing/no-copies.ts'
import type { EngineStreams } from './engine-streams.ts'
import { servePodSession } from './pod-sessions.ts'

const wanted: SessionRequest = { namespace: 'default', pod: 'web', uid: 'uid-web', logs: { container: 'main' } }

test('the log of a pod of this node is sent to its end', async (t) => {
  const { answers, received } = served(t, wanted)
  t.same(await answers(), [{ state: 'started' }, { state: 'ended' }])
  t.equal(received(), 'one\ntwo\n')
})

test('no other pod can be named, and no container that is not the pod’s', async (t) => {
  const refused = async (request: Partial<SessionRequest>, containers?: readonly RuntimeContainer[]) => {
    const [only] = await served(t, { ...wanted, ...request }, containers).answers()
    return only
  }
  const absent = { state: 'refused', reason: 'NotFound', message: /does not exist on this node/ }
  t.match(await refused({ pod: 'other' }), absent)
  t.match(await refused({ namespace: 'kube-system' }), absent)
  t.match(await refused({ uid: 'of an earlier one' }), absent)
  t.match(await refused({}, [containerOf('aaa', 'beside')]), { state: 'refused', reason: 'BadRequest' })
  t.match(await refused({}, []), { state: 'refused', reason: 'BadRequest', message: /was removed/ })
})

test('what is not a request is refused', async (t) => {
  for (const [channel, text] of [
    [sessionChannels.input, 'hello'],
    [sessionChannels.request, 'no json'],
    [sessionChannels.request, '{"namespace":7}'],
    [sessionChannels.request, JSON.stringify({ ...wanted, logs: undefined })],
  ] as const) {
    t.match((await served(t, text, undefined, channel).answers())[0], { state: 'refused', reason: 'BadRequest' }, text)
  }
})

test('a reader that stops costs no memory: the container is read no further', async (t) => {
  let taken = 0
  async function* endless() {
    for (; ; taken++) yield Buffer.alloc(longestFrame.data, 'y')
  }
  const { end, stop } = served(
    t,
    { ...wanted, logs: { container: 'main', follow: true } },
    undefined,
    undefined,
    endless,
  )
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
  t.ok(taken < 5, `${taken} pieces taken`)
  stop()
  await end
})

test('a session with the node itself carries what the node answers', async (t) => {
  const { answers, received } = served(t, { node: {} })
  t.same(await answers(), [{ state: 'started' }, { state: 'ended' }])
  t.equal(received(), 'hello\n')
  const refused = await served(t, { node: { port: 9100 } }).answers()
  t.match(refused[0], { state: 'refused', reason: 'ServiceUnavailable', message: 'the node has no address' })
})

test('a session is pinged, so that its end is seen where nothing is read of it', async (t) => {
  const { clock, near, stop } = served(t, { ...wanted, logs: { container: 'main' } }, undefined, undefined, quiet)
  const pieces: Buffer[] = []
  near.on('data', (piece: Buffer) => void pieces.push(piece))
  await clock.settle()
  const bytes = () => Buffer.concat(pieces)
  const before = bytes().length
  const ping = Buffer.of(sessionChannels.ping, 0, 0, 0)
  for (const expected of [0, 1, 2]) {
    t.same(bytes().subarray(before), Buffer.concat(Array(expected).fill(ping)))
    await clock.advance(15_000)
  }
  stop()
})

function echo(stream: Duplex): void {
  stream.end('hello\n')
}

test('a session of which nothing is taken is pinged more often', async (t) => {
  const { clock, near, stop } = served(t, { ...wanted, logs: { container: 'main' } }, undefined, undefined, quiet)
  const pieces: Buffer[] = []
  near.on('data', (piece: Buffer) => void pieces.push(piece))
  await clock.settle()
  const before = Buffer.concat(pieces).length
  const head = Buffer.alloc(4)
  head.writeUInt32BE(longestFrame.data)
  for (let i = 0; i < 8; i++) near.write(Buffer.concat([head, Buffer.alloc(longestFrame.data)]))
  await clock.settle()
  await clock.advance(6_000)
  t.equal(Buffer.concat(pieces).length - before, 3 * 4, 'three pings of four bytes')
  stop()
})

async function* quiet() {
  await new Promise(() => undefined)
  yield Buffer.alloc(0)
}

async function* twoLines() {
  yield Buffer.from('one\n')
  yield Buffer.from('two\n')
}

function served(
  t: Test,
  request: SessionRequest | string,
  containers: readonly RuntimeContainer[] = [containerOf('aaa', 'main')],
  channel: number = sessionChannels.request,
  log: () => AsyncIterable<Uint8Array> = twoLines,
) {
  const [there, back] = [new PassThrough(), new PassThrough()]
  const near = Duplex.from({ writable: there, readable: back })
  const far = Duplex.from({ writable: back, readable: there })
  const stopping = new AbortController()
  const none = async () => Promise.reject(new Error('No command is run'))
  const engine: EngineStreams = { log: async () => log(), exec: none, attach: none, processOf: none }
  const clock = fakeClock()
  const node = { serve: echo, address: () => undefined }
  const needs = {
    engine,
    pods: () => [aRunningPod()],
    containersOf: async () => containers,
    node,
    copies: noCopies,
    backups: noBackups,
    loopback: { connect: none },
    clock,
  }
  const end = servePodSession(far, stopping.signal, needs).catch(() => undefined)
  const frames = sessionFrames(near)
  const output: Buffer[] = []
  const sending = frames.sendText(channel, typeof request === 'string' ? request : JSON.stringify(request))
  const answers = async () => {
    await sending
    const states: unknown[] = []
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      if (frame.channel === sessionChannels.output) output.push(frame.payload)
      if (frame.channel !== sessionChannels.status) continue
      states.push(JSON.parse(frame.payload.toString()))
      if (states.length === 2) break
    }
    far.destroy()
    await end
    return states
  }
  const stop = () => {
    stopping.abort('ended')
    far.destroy()
    near.destroy()
  }
  t.teardown(stop)
  return { clock, near, answers, received: () => Buffer.concat(output).toString(), end, stop }
}

function aRunningPod(): Pod {
  const pod = aPod({ name: 'web', uid: 'uid-web' })
  const state = { running: { startedAt: '2026-01-01T00:00:00Z' } }
  const container = {
    name: 'main',
    image: 'x',
    imageID: 'x',
    ready: true,
    restartCount: 0,
    state,
    containerID: 'docker://aaa',
  }
  return { ...pod, status: { ...pod.status, containerStatuses: [container] } }
}

function containerOf(id: string, containerName: string): RuntimeContainer {
  return {
    id,
    identity: {
      kind: 'container',
      podNamespace: 'default',
      podName: 'web',
      podUID: 'uid-web',
      containerName,
      attempt: 0,
      specHash: '',
      gracePeriodSeconds: 1,
    },
    sandboxID: 'sandbox',
    image: 'x',
    imageID: 'x',
    state: 'running',
    exitCode: 0,
    oomKilled: false,
    error: '',
    createdAt: '2026-01-01T00:00:00Z',
    startedAt: '2026-01-01T00:00:00Z',
    finishedAt: undefined,
    ip: undefined,
  }
}
