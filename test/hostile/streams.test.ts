/** Streams that are attacked: by a node that claims those of another, by what nodes and clients send on them, and by their number. */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { TLSSocket } from 'node:tls'
import { test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { eventually } from '../support/wait.ts'
import { attackedFleet, honest, mallory, malloryOf, settled } from './support/attacked-fleet.ts'
import {
  adminOf,
  type ClientIdentity,
  connectPacket,
  nodeOfFolder,
  openTls,
  retainedPacket,
  stillOpen,
  subscribePacket,
} from './support/clients.ts'

test('streams under attack', async (t) => {
  const fleet = await attackedFleet(t)
  const { controller } = fleet
  const { api, identity } = await malloryOf(fleet)
  t.teardown(async () => api.close())
  const honestIdentity = await nodeOfFolder(fleet.dataDir(honest))
  const admin = adminOf(await readFile(controller.kubeconfig, 'utf8'))
  await api.sendJson('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: mallory } })
  await controller.kubectlWith(podManifest({ name: 'web', image, spec: { nodeName: honest } }), 'apply', '-f', '-')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  await controller.kubectl('create', 'clusterrolebinding', 'jane', '--clusterrole=edit', '--user=jane')
  const baseMiB = await fleet.controllerMiB()

  const links: TLSSocket[] = []
  t.teardown(() => links.map((one) => one.destroy()))
  const upgrade = async (who: ClientIdentity, path: string, protocol: string, ...more: readonly string[]) => {
    const socket = await openTls(fleet.api, who)
    if (socket === undefined) throw new Error('The API accepts no connection')
    links.push(socket.on('error', () => undefined))
    const lines = [`GET ${path} HTTP/1.1`, 'Host: x', 'Connection: Upgrade', `Upgrade: ${protocol}`, ...more]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    const head = await new Promise<string>((resolve) => {
      socket.once('data', (piece: Buffer) => resolve(piece.toString('latin1')))
      socket.once('close', () => resolve(''))
    })
    return { socket, status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]) }
  }
  const claim = (who: ClientIdentity, id: string) => upgrade(who, `/bramble/v1/sessions/${id}`, 'bramble-session')
  const statusOfClaim = async (who: ClientIdentity, id: string) => {
    const { socket, status } = await claim(who, id)
    if (status !== 101) socket.destroy()
    return status
  }

  // The attacker's node is connected to the broker, and receives what is requested of it.
  const link = await openTls(fleet.mqtt, identity)
  if (link === undefined) throw new Error('The broker accepts no connection')
  links.push(link)
  const online = JSON.stringify({ state: 'online', bootID: 'x', agentVersion: 'v1' })
  const calls = `bramble/v1/nodes/${mallory}/calls`
  let received = ''
  link.on('data', (piece: Buffer) => {
    received += piece.toString('latin1')
  })
  link.write(
    Buffer.concat([
      connectPacket(mallory, 1_000),
      retainedPacket(`bramble/v1/nodes/${mallory}/connection`, online),
      subscribePacket({ qos: 1 }, calls),
    ]),
  )
  /** A request for the attacker's node: its id, and its answer. */
  const requested = async () => {
    const before = received.length
    const answer = fleet.admin.send('GET', `/api/v1/nodes/${mallory}/proxy/healthz`)
    const id = await eventually(
      'a session is requested',
      () => /"session":"([\w-]+)"/.exec(received.slice(before))?.[1],
    )
    return { id, answer }
  }
  await eventually('its node is connected', async () => {
    const answer = await fleet.admin.send('GET', `/api/v1/nodes/${mallory}/proxy/healthz`)
    return !/has no connection/.test(answer.text)
  })

  await t.test('a session is connected once, by its node, while it waits', async (t) => {
    const { id, answer } = await requested()
    t.equal(await statusOfClaim(honestIdentity, id), 404, 'not by another node')
    t.equal(await statusOfClaim(admin, id), 403, 'not by a person')
    t.equal(await statusOfClaim(identity, `${id.slice(0, -1)}x`), 404, 'not under another id')
    const own = await claim(identity, id)
    t.equal(own.status, 101)
    t.equal(await statusOfClaim(identity, id), 404, 'not twice')
    t.equal(await statusOfClaim(honestIdentity, id), 404)
    own.socket.destroy()
    t.equal((await answer).status, 503)
    t.equal(await statusOfClaim(identity, id), 404, 'not after its end')
    const late = await requested()
    t.equal((await late.answer).status, 503)
    t.equal(await statusOfClaim(identity, late.id), 404, 'not when it has waited for too long')
  })

  await t.test('what a node sends ends its own stream only', (t) =>
    fleet.unnoticed(t, async () => {
      const frame = (channel: number, payload: string | Buffer) => {
        const head = Buffer.alloc(4)
        head.writeUInt32BE(payload.length)
        head.writeUInt8(channel)
        return Buffer.concat([head, Buffer.from(payload)])
      }
      const started = frame(3, '{"state":"started"}')
      const answers = {
        'no frames': Buffer.from('HTTP/1.1 200 OK\r\n\r\n'),
        'random bytes': randomBytes(100_000),
        'a frame that is too long': Buffer.from([1, 255, 255, 255]),
        'an invalid status': frame(3, '{"state":'),
        'a status of many levels': frame(3, '['.repeat(60_000)),
        'output before the status': frame(1, 'x'),
        'an answer that is not HTTP': Buffer.concat([started, frame(1, randomBytes(50_000))]),
        'headers without an end': Buffer.concat([
          started,
          ...Array.from({ length: 40 }, () => frame(1, 'x'.repeat(60_000))),
        ]),
        'a refusal': frame(3, '{"state":"refused","reason":"Forbidden","message":"x"}'),
      }
      for (const [what, bytes] of Object.entries(answers)) {
        const { id, answer } = await requested()
        const { socket } = await claim(identity, id)
        socket.end(bytes)
        const { status } = await answer
        t.ok(status >= 500, `${what}: ${status}`)
      }
    }),
  )

  await t.test('one user has a part of the streams of a node, and others go on', async (t) => {
    const attach = '/api/v1/namespaces/default/pods/web/attach?stdout=true'
    const key = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==']
    const asJane = () => upgrade(admin, attach, 'websocket', ...key, 'Impersonate-User: jane')
    const opened: Awaited<ReturnType<typeof asJane>>[] = []
    // One after the other: this many requests at once are too many by themselves.
    for (let i = 0; i < 40; i++) opened.push(await asJane())
    const count = (wanted: number) => opened.filter(({ status }) => status === wanted).length
    t.comment(`${count(101)} of ${opened.length} are open`)
    t.ok(count(101) >= 1 && count(101) <= 32)
    t.equal(count(101) + count(429), opened.length, 'the others are refused with 429')
    t.equal((await controller.kubectl('exec', 'web', '--', 'echo', 'here')).trim(), 'here')
    for (const { socket } of opened) socket.destroy()
    await eventually('her streams have ended', async () => {
      const { status, socket } = await asJane()
      socket.destroy()
      return status === 101
    })
  })

  await t.test('no bytes of a client keep a stream, crash the controller, or cost memory', (t) =>
    fleet.unnoticed(t, async () => {
      const exec = '/api/v1/namespaces/default/pods/web/exec?command=cat&stdin=true&stdout=true'
      const forward = '/api/v1/namespaces/default/pods/web/portforward'
      const key = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==']
      const longest = Buffer.from([0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4])
      const sent = [
        [exec, 'websocket', [...key, 'Sec-WebSocket-Protocol: v5.channel.k8s.io'], longest],
        [exec, 'websocket', [...key, 'Sec-WebSocket-Protocol: v5.channel.k8s.io'], randomBytes(200_000)],
        [exec, 'websocket', [...key, 'Sec-WebSocket-Protocol: v5.channel.k8s.io'], Buffer.from([0x82, 2, 0, 97])],
        [
          exec,
          'SPDY/3.1',
          ['X-Stream-Protocol-Version: v4.channel.k8s.io'],
          Buffer.concat([Buffer.from([0x80, 3, 0, 1, 0, 0, 255, 255]), randomBytes(200_000)]),
        ],
        [
          exec,
          'SPDY/3.1',
          ['X-Stream-Protocol-Version: v4.channel.k8s.io'],
          Buffer.from([0x80, 3, 0, 1, 0, 255, 255, 255]),
        ],
        [
          forward,
          'SPDY/3.1',
          ['X-Stream-Protocol-Version: portforward.k8s.io'],
          Buffer.from([0x80, 3, 0, 1, 0, 255, 255, 255]),
        ],
        [forward, 'websocket', [...key, 'Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io'], longest],
      ] as const
      for (const [path, protocol, headers, bytes] of sent) {
        const { socket, status } = await upgrade(admin, path, protocol, ...headers)
        t.equal(status, 101, `${protocol}, ${path}`)
        socket.resume().write(bytes)
        await eventually('the controller closes it', () => stillOpen([socket]) === 0)
      }
    }),
  )

  const mib = await settled(fleet, baseMiB + 150)
  t.comment(`controller: ${Math.round(baseMiB)} MiB before, ${Math.round(mib)} MiB after`)
  t.equal((await controller.kubectl('exec', 'web', '--', 'echo', 'here')).trim(), 'here')
})
