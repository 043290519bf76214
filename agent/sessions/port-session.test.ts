import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import { type Test, test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { sessionFrames } from '../../daemon/sessions/session-frames.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import type { RuntimeContainer } from '../runtime/runtime.ts'
import { noBackups, noCopies } from '../testing/no-copies.ts'
import { forwardPort, forwardProxy } from './port-session.ts'
import type { PodSession } from './session-types.ts'

/** All of these are on this machine; the server listens on the first only. */
const [listening, nodeAddress, podAddress] = ['127.0.0.1', '127.0.0.2', '127.0.0.3']

test('the proxy reaches no loopback address, port-forward does', async (t) => {
  const port = await serverOn(t, listening)
  const forwarded = (pod: Partial<Parameters<typeof sessionWith>[1]>, forward = forwardPort) => {
    const { session, connected } = sessionWith(t, { isOnHost: false, ...pod })
    return forward({ port }, session).then(
      () => ['reached', ...connected],
      (error: Error) => [/ECONNREFUSED/.test(error.message) ? 'refused' : error.message, ...connected],
    )
  }
  t.same(await forwarded({ isOnHost: true }), ['reached'])
  t.same(await forwarded({ isOnHost: true }, forwardProxy), ['refused'], 'it goes to the address of the node')
  t.same(await forwarded({ isOnHost: true, address: listening }, forwardProxy), ['reached'])
  t.same(await forwarded({ isOnHost: true, address: undefined }, forwardProxy), ['pod "default/web" is not running'])
  t.same(await forwarded({}), ['refused', 'loopback'])
  t.same(await forwarded({}, forwardProxy), ['refused'])
})

test('a pod that resets a connection ends it, and is an error for the proxy only', async (t) => {
  const reset = (socket: Socket) => void socket.on('error', () => undefined).resetAndDestroy()
  for (const serve of [reset, (socket: Socket) => void socket.write('hello', () => reset(socket))]) {
    const port = await serverOn(t, listening, serve)
    const { session } = sessionWith(t, { isOnHost: true, address: listening })
    t.same(await forwardPort({ port }, session), {})
    const proxied = sessionWith(t, { isOnHost: true, address: listening })
    await t.rejects(forwardProxy({ port }, proxied.session), { message: /ECONNRESET/ })
  }
  const refused = sessionWith(t, { isOnHost: true })
  await t.rejects(forwardPort({ port: 1 }, refused.session), { name: 'SessionRefusal', message: /ECONNREFUSED/ })
})

/** Closes each connection, if nothing else is given. Resolves with its port. */
async function serverOn(
  t: Test,
  host: string,
  serve: (socket: Socket) => void = (socket) => void socket.end(),
): Promise<number> {
  const server = createServer(serve)
  t.teardown(() => void server.close())
  await once(server.listen(0, host), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port')
  return address.port
}

function sessionWith(
  t: Test,
  { isOnHost, ...node }: { readonly isOnHost: boolean; readonly address?: string | undefined },
): { readonly session: PodSession; readonly connected: readonly string[] } {
  const connected: string[] = []
  const stream = Duplex.from({ writable: new PassThrough().resume(), readable: new PassThrough() })
  t.teardown(() => void stream.destroy())
  const none = async () => Promise.reject(new Error('No command is run'))
  const pod = aPod({ name: 'web', uid: 'uid-web' })
  const session: PodSession = {
    engine: { log: none, exec: none, attach: none, processOf: none },
    pods: () => [],
    containersOf: async () => [sandbox],
    node: { serve: () => undefined, address: () => ('address' in node ? node.address : nodeAddress) },
    copies: noCopies,
    backups: noBackups,
    loopback: {
      async connect(): Promise<Socket> {
        connected.push('loopback')
        throw new Error('nothing listens')
      },
    },
    clock: fakeClock(),
    frames: sessionFrames(stream),
    signal: new AbortController().signal,
    started: async () => undefined,
    pod: { ...pod, spec: { ...pod.spec, hostNetwork: isOnHost } },
  }
  return { session, connected }
}

const sandbox: RuntimeContainer = {
  id: 'sandbox',
  identity: {
    kind: 'sandbox',
    podNamespace: 'default',
    podName: 'web',
    podUID: 'uid-web',
    containerName: '',
    attempt: 0,
    specHash: '',
    gracePeriodSeconds: 1,
  },
  sandboxID: undefined,
  image: 'x',
  imageID: 'x',
  state: 'running',
  exitCode: 0,
  oomKilled: false,
  error: '',
  createdAt: '2026-01-01T00:00:00Z',
  startedAt: '2026-01-01T00:00:00Z',
  finishedAt: undefined,
  ip: podAddress,
}
