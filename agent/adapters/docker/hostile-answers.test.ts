/** Images and registries choose how long Docker's answers are. The memory that the agent takes for them must not depend on it. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Test, test } from 'tap'
import { dockerRuntime } from './docker-runtime.ts'
import { labelsOf } from './labels.ts'

const hostileBytes = 60 * 1024 * 1024
/** What is kept of an answer, and what else the process makes meanwhile. An answer that is held whole takes more than its 60 MiB. */
const allowedBytes = 48 * 1024 * 1024
const never = new AbortController().signal

type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void

/** An engine that answers by path, and the most memory that this process had while `work` ran, more than before. */
async function engine(t: Test, answers: { readonly [path: string]: Answer }) {
  const requests: string[] = []
  let most = 0
  const look = () => {
    most = Math.max(most, heldBytes())
  }
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://docker')
    requests.push(`${request.method} ${decodeURIComponent(pathname)}`)
    const answer = answers[decodeURIComponent(pathname)]
    if (answer !== undefined) return await answer(request, response)
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"no such thing"}')
  })
  const folder = await mkdtemp(join(tmpdir(), 'bramble-hostile-'))
  const socketPath = join(folder, 's')
  server.listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true, force: true })
  })
  looks.add(look)
  t.teardown(() => looks.delete(look))
  return {
    runtime: dockerRuntime({ socketPath, nodeName: 'pi-01' }),
    requests,
    async memoryOf<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly bytes: number }> {
      const before = heldBytes()
      most = before
      const result = await work()
      look()
      return { result, bytes: most - before }
    },
  }
}

/** Called while a hostile answer is written. */
const looks = new Set<() => void>()

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function heldBytes(): number {
  collectGarbage()
  collectGarbage() // of buffers the first one counts those that the one before found
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Labels that are together 60 MiB long: some long ones, and many short ones. */
async function writeLabels(response: ServerResponse): Promise<void> {
  const long = Buffer.from(`"org.example.long":"${'x'.repeat(1024 * 1024)}",`)
  const short = Buffer.from(Array.from({ length: 2_000 }, (_, i) => `"org.example.${i}":"value \\"${i}\\"",`).join(''))
  for (let written = 0, turn = 0; written < hostileBytes; written += long.length + short.length, turn++) {
    for (const piece of [long, short]) if (!response.write(piece)) await once(response, 'drain')
    if (turn % 12 === 0) for (const look of looks) look()
  }
}

/** `before`, labels without end, and `after`. */
function withLabels(before: string, after: string): Answer {
  return async (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write(before)
    await writeLabels(response)
    response.end(after)
  }
}

const plain =
  (value: unknown): Answer =>
  (_, response) =>
    void response.end(JSON.stringify(value))

const identityOf = (podName: string) =>
  ({
    kind: 'container',
    podNamespace: 'default',
    podName,
    podUID: `uid-${podName}`,
    containerName: 'main',
    attempt: 0,
    specHash: 'h',
    gracePeriodSeconds: 30,
  }) as const

const ownLabelsText = (podName: string) => JSON.stringify(labelsOf('pi-01', identityOf(podName), 's')).slice(1, -1)

const inspection = (podName: string) => ({
  Id: podName,
  Created: '2026-01-01T00:00:00Z',
  Image: 'sha256:1',
  State: { Status: 'running', Error: '', StartedAt: '', FinishedAt: '', Pid: 7 },
  Config: { Image: 'web:1', Labels: labelsOf('pi-01', identityOf(podName), 's') },
  NetworkSettings: { Networks: {} },
  HostConfig: { Devices: [] },
})

test('containers are listed beside one whose image has 60 MiB of labels, and it is known, too', async (t) => {
  const hostile = `{"Id":"hostile","Command":"x","State":"running","Labels":{`
  const { runtime, memoryOf } = await engine(t, {
    '/containers/json': withLabels(
      `[{"Id":"first","State":"running","Labels":{${ownLabelsText('first')}}},${hostile}`,
      `${ownLabelsText('hostile')}}},{"Id":"last","State":"running","Labels":{${ownLabelsText('last')}}}]`,
    ),
    '/containers/first/json': plain(inspection('first')),
    '/containers/last/json': plain(inspection('last')),
    '/containers/hostile/json': withLabels(
      '{"Id":"hostile","Image":"sha256:1","State":{"Status":"running","Error":"","StartedAt":"","FinishedAt":"","Pid":9},"Config":{"Labels":{',
      `${ownLabelsText('hostile')}}},"NetworkSettings":{"Networks":{}},"HostConfig":{}}`,
    ),
    '/images/sha256:1/json': withLabels('{"Id":"sha256:1","Config":{"Labels":{', '"a":"b"}}}'),
  })
  const { result, bytes } = await memoryOf(() => runtime.listContainers())
  t.match(
    result.map(({ id, identity, state }) => [id, identity.podName, state]),
    ['first', 'hostile', 'last'].map((name) => [name, name, 'running']),
  )
  t.ok(bytes < allowedBytes, `${bytes} bytes more for a time`)
})

test('images, their users, events and errors of registries are read without what others made long', async (t) => {
  const { runtime, memoryOf } = await engine(t, {
    '/images/json': withLabels(
      '[{"Id":"sha256:1","RepoTags":["web:1"],"Size":5,"Labels":{',
      '"a":"b"}},{"Id":"sha256:2","RepoTags":["web:2"],"Size":6,"Labels":null}]',
    ),
    '/containers/json': withLabels('[{"ImageID":"sha256:1","Labels":{', '"a":"b"}},{"ImageID":"sha256:2"}]'),
    '/events': withLabels(
      '{"Actor":{"ID":"c1","Attributes":{',
      `${ownLabelsText('web')}}}}\n{"Actor":{"ID":"c2","Attributes":{${ownLabelsText('db')}}}}\n`,
    ),
    '/images/create': withLabels('{"status":"Pulling"}\n{"errorDetail":{', '"a":"b"},"error":"denied: no access"}\n'),
    '/info': withLabels('{"Labels":{', '"a":"b"},"ServerVersion":"20.10.24","DockerRootDir":"/var/lib/docker"}'),
  })
  const changed: string[] = []
  const { result, bytes } = await memoryOf(async () => ({
    images: await runtime.listImages(),
    inUse: await runtime.imagesInUse(),
    info: await runtime.info(),
    pull: await runtime.pullImage('web:1', { signal: never, stallMs: 60_000 }).catch((error: unknown) => error),
    watch: await runtime
      .watch({ opened: () => undefined, changed: (uid) => changed.push(uid) }, never)
      .catch((error: unknown) => error),
  }))
  t.same(
    result.images.map(({ tags }) => tags),
    [['web:1'], ['web:2']],
  )
  t.same([...result.inUse], ['sha256:1', 'sha256:2'])
  t.match(result.info, { version: 'docker://20.10.24', rootDirectory: '/var/lib/docker' })
  t.match(result.pull, { reason: 'ImagePull', cause: { message: 'denied: no access' } })
  t.same(changed, ['uid-web', 'uid-db'])
  t.match(result.watch, { cause: { message: 'The stream of events ended' } })
  t.ok(bytes < allowedBytes, `${bytes} bytes more for a time`)
})

test('the refusal of a registry without end becomes a short message', async (t) => {
  const { runtime, memoryOf } = await engine(t, {
    '/images/create': async (_, response) => {
      response.writeHead(500, { 'content-type': 'application/json' })
      response.write('{"message":"')
      await writeLabels(response).catch(() => undefined)
    },
  })
  const pulling = () => runtime.pullImage('web:1', { signal: never, stallMs: 60_000 }).catch((error: unknown) => error)
  const { result, bytes } = await memoryOf(pulling)
  t.match(result, { reason: 'ImagePull' })
  t.ok(String((result as Error).cause).length < 4_096)
  t.ok(bytes < allowedBytes, `${bytes} bytes more for a time`)
})

/** An engine that pulls `web:1`, whose description is this long. */
async function engineWithImage(t: Test, descriptionBytes: number, isUsed = false) {
  const description = (padding: number) =>
    JSON.stringify({ Id: 'sha256:1', RepoTags: ['web:1'], Os: 'linux', Config: { Env: ['x'.repeat(padding)] } })
  const text = description(descriptionBytes - description(0).length)
  const removed: string[] = []
  const present = new Set(['web:1'])
  const { runtime } = await engine(t, {
    '/images/create': plain({ status: 'Downloaded' }),
    '/images/web:1/json': (_, response) => {
      if (present.has('web:1')) return void response.end(text)
      response.writeHead(404).end('{"message":"No such image: web:1"}')
    },
    '/images/json': plain([]),
    '/containers/json': plain(isUsed ? [{ ImageID: 'sha256:1' }] : []),
    '/images/web:1': (request, response) => {
      removed.push(request.method ?? '')
      present.delete('web:1')
      response.end('[]')
    },
  })
  return { runtime, removed, pull: () => runtime.pullImage('web:1', { signal: never, stallMs: 60_000 }) }
}

const tooLarge = 'image web:1: its configuration is too large (257 KiB, at most 256 KiB)'

test('an image with a configuration of more than 256 KiB is refused once it is pulled, and removed', async (t) => {
  const fits = await engineWithImage(t, 256 * 1024)
  await fits.pull()
  t.match(await fits.runtime.findImage('web:1'), { id: 'sha256:1', refused: undefined })
  t.same(fits.removed, [])
  const large = await engineWithImage(t, 256 * 1024 + 1)
  await t.rejects(large.pull(), { reason: 'ImagePull', message: tooLarge, cause: undefined })
  t.same(large.removed, ['DELETE'])
  t.equal(await large.runtime.findImage('web:1'), undefined)
})

test('one that is present is refused and removed, unless a container uses it', async (t) => {
  const unused = await engineWithImage(t, 256 * 1024 + 1)
  t.match(await unused.runtime.findImage('web:1'), { refused: tooLarge })
  t.same(unused.removed, ['DELETE'])
  const used = await engineWithImage(t, 256 * 1024 + 1, true)
  t.match(await used.runtime.findImage('web:1'), { refused: tooLarge })
  await t.rejects(used.pull(), { message: tooLarge })
  t.same(used.removed, [])
})
