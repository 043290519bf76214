/** Seeded fuzzing of what a controller sends on a session: its request, and the messages of an exec. */
import { Duplex, PassThrough } from 'node:stream'
import { test } from 'tap'
import { sessionChannels } from '../../api/sessions.ts'
import { aPod } from '../../api/testing/builders.ts'
import { sessionFrames } from '../../daemon/sessions/session-frames.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import {
  fuzzSeed,
  mutatedBytes,
  mutatedValue,
  type RandomNumbers,
  randomNumbers,
  randomPieces,
} from '../../daemon/testing/fuzz.ts'
import type { VolumeBackups } from '../pods/volumes/volume-backups.ts'
import type { RuntimeContainer } from '../runtime/runtime.ts'
import { noCopies } from '../testing/no-copies.ts'
import type { EngineProcess } from './engine-streams.ts'
import { servePodSession } from './pod-sessions.ts'

const rounds = 600
const pod = { ...aPod({ name: 'web', uid: 'uid-web' }) }

const share = { kind: 'smb', server: 'nas', path: '/b', mountOptions: ['vers=3.1.1'] }
const nas = { share, secret: { username: 'YQ==', password: 'eA==' } }
const place = { uid: 'u', pool: 'p', folder: 'f', claim: 'default/db', id: '1a2b3c4d' }
/** What a controller asks about backups. */
const backups = [
  { read: { ...place, since: '00000001', held: '1a2b3c4d' } },
  { store: { path: '/mnt', mark: 'm', uid: 'u', id: '1a2b3c4d', name: 'n', base: 'b', keep: 'last=3' } },
  { store: { path: 'pv/nas', nas, uid: 'u', id: '1a2b3c4d', name: 'n' } },
  { list: { path: 'pv/nas', nas } },
  { fetch: { path: '/mnt', name: 'n' } },
  { restore: { ...place, archives: 2, contentBytes: 2 ** 40 } },
  {},
]

/** Reads what comes as the real one does, and keeps nothing. */
const takingBackups: VolumeBackups = {
  read: async (_, send) => {
    await send(Buffer.from('archive'))
    return 7
  },
  async store(_, { opened, next, manifest }) {
    await opened('m', undefined)
    while ((await next()) !== undefined);
    await manifest()
    return []
  },
  list: (_, send) => send(Buffer.from('{}\n')),
  fetch: (_, send) => send(Buffer.from('archive')),
  async restore({ archives }, next) {
    for (let archive = 0; archive < Math.min(archives, 3); archive++) while ((await next()) !== undefined);
  },
}

test('no bytes of a controller crash a session, or reach another container', async (t) => {
  const random = randomNumbers()
  const answers = new Map<string, number>()
  for (let round = 0; round < rounds; round++) {
    const [there, back] = [new PassThrough(), new PassThrough()]
    const stream = Duplex.from({ readable: there, writable: back })
    for (const one of [there, back, stream]) one.on('error', () => undefined)
    const reached: string[] = []
    const over = new AbortController()
    const serving = servePodSession(stream, over.signal, needs(reached)).catch((error: unknown) => {
      if (!/frame|stream|closed|premature/i.test(String(error))) t.fail(`seed ${fuzzSeed}, round ${round}: ${error}`)
    })
    const bytes = Buffer.concat([requestOf(random), ...inputs(random)])
    for (const piece of randomPieces(random() % 2 === 0 ? mutatedBytes(bytes, random) : bytes, 700, random)) {
      there.write(piece)
    }
    there.end()
    const first = await sessionFrames(Duplex.from({ readable: back }))
      .next()
      .catch(() => undefined)
    const state = first === undefined ? 'none' : String(JSON.parse(first.payload.toString()).state)
    answers.set(state, (answers.get(state) ?? 0) + 1)
    over.abort('ended')
    stream.destroy()
    await serving
    if (reached.some((id) => id !== 'own')) t.fail(`seed ${fuzzSeed}, round ${round}: ${reached.join()}`)
  }
  t.comment([...answers].map(([state, count]) => `${count} ${state}`).join(', '))
  t.ok((answers.get('started') ?? 0) > 10 && (answers.get('refused') ?? 0) > 10, 'both happen')
})

function frame(channel: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(payload.length)
  head.writeUInt8(channel)
  return Buffer.concat([head, payload])
}

function requestOf(random: RandomNumbers): Buffer {
  const streams = { container: 'main', stdin: true, stdout: true, stderr: true, tty: random() % 2 === 0 }
  const wanted = [
    { logs: { container: 'main', follow: true, tailLines: 3, sinceTime: '2026-01-02T03:04:05Z' } },
    { exec: { ...streams, command: ['sh', '-c', 'x'] } },
    { attach: streams },
    { portForward: { port: 1 } },
    { proxy: { port: 70_000 } },
    { node: {} },
    { backup: backups[random() % backups.length] },
  ][random() % 7]
  const request = { namespace: 'default', pod: 'web', uid: 'uid-web', ...wanted }
  const sent = random() % 2 === 0 ? request : mutatedValue(request, random)
  return frame(sessionChannels.request, Buffer.from(JSON.stringify(sent) ?? ''))
}

function inputs(random: RandomNumbers): readonly Buffer[] {
  const channels = Object.values(sessionChannels)
  const sizes = ['{"Width":80,"Height":25}', '{"Width":-1,"Height":1e99}', '{', '[]', '{"Width":"8"}']
  return Array.from({ length: random() % 8 }, () => {
    const channel = channels[random() % channels.length] ?? 0
    const text =
      channel === sessionChannels.resize ? (sizes[random() % sizes.length] ?? '') : 'x'.repeat(random() % 900)
    return frame(channel, channel === sessionChannels.end ? Buffer.of(random() % 8) : Buffer.from(text))
  })
}

function needs(reached: string[]): Parameters<typeof servePodSession>[2] {
  const reach = async <T>(id: string, result: T) => {
    reached.push(id)
    return result
  }
  const sizes: number[] = []
  const running: EngineProcess = {
    write: async () => undefined,
    endInput: () => undefined,
    output: (async function* () {
      yield { stream: 'stdout' as const, bytes: Buffer.from('out') }
    })(),
    resize: async (width, height) => void sizes.push(width, height),
    exitCode: async () => 0,
    stopped: async () => undefined,
  }
  const lines = (async function* () {
    yield Buffer.from('line\n')
  })()
  return {
    engine: {
      log: (id) => reach(id, lines),
      exec: (id) => reach(id, running),
      attach: (id) => reach(id, running),
      processOf: (id) => reach(id, 1),
    },
    pods: () => [
      {
        ...pod,
        status: {
          containerStatuses: [{ name: 'main', containerID: 'docker://own', state: { running: {} } }],
        } as unknown as NonNullable<typeof pod.status>,
      },
    ],
    containersOf: async (uid) => (uid === 'uid-web' ? [own] : [{ ...own, id: 'of another pod' }]),
    node: { serve: (stream) => void stream.end('HTTP/1.1 200 OK\r\n\r\n'), address: () => undefined },
    copies: noCopies,
    backups: takingBackups,
    loopback: { connect: async () => Promise.reject(new Error('nothing listens')) },
    clock: fakeClock(),
  }
}

const own: RuntimeContainer = {
  id: 'own',
  identity: {
    kind: 'container',
    podNamespace: 'default',
    podName: 'web',
    podUID: 'uid-web',
    containerName: 'main',
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
  ip: '127.0.0.1',
}
