import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { dockerEngine } from './engine.ts'
import { partialImage } from './partial-images.ts'

test('a hung Docker does not hold up callers that wait for layers to be kept', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-partial-'))
  const socketPath = join(folder, 'docker.sock')
  const server = createServer(() => undefined).listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true })
  })
  const partial = partialImage(dockerEngine(socketPath), 'web:1', 50)
  await t.rejects(partial.keep(['0123456789ab']), /were not kept within/)
  await t.rejects(partial.drop(), /were not released within/)
})

test('the layers of a pull are kept by an image of them, which replaces the one of fewer layers', async (t) => {
  const docker = await imagesOf(t, { aaaa11: 'sha256:d1\n', bbbb22: 'sha256:d2\n', cccc33: 'sha256:d3\n' })
  const partial = partialImage(docker.client, 'web:1')
  await partial.keep(['aaaa'])
  const [first = ''] = docker.tags
  t.match(first, /^bramble\.dev\/partial:[0-9a-f]{16}-1$/)
  await partial.keep(['bbbb', 'aaaa'])
  t.same(docker.tags, [first.replace(/1$/, '2')])
  t.match(docker.loaded.at(-1), {
    'config.json': { os: 'linux', rootfs: { type: 'layers', diff_ids: ['sha256:d2', 'sha256:d1'] } },
    'manifest.json': [{ Config: 'config.json', RepoTags: [first.replace(/1$/, '2')], Layers: ['d2.tar', 'd1.tar'] }],
  })
  await partial.drop()
  t.same(docker.tags, [])
})

test('partial images of other images stay', async (t) => {
  const docker = await imagesOf(t, { aaaa11: 'sha256:d1' })
  await partialImage(docker.client, 'web:1').keep(['aaaa'])
  await partialImage(docker.client, 'web:2').keep(['aaaa'])
  t.equal(docker.tags.length, 2)
  const [, ofSecond = ''] = docker.tags
  await partialImage(docker.client, 'web:1').drop()
  t.same(docker.tags, [ofSecond])
  t.same(
    docker.filters,
    docker.filters.map(() => ({ reference: ['bramble.dev/partial'] })),
    'only ours are listed',
  )
})

test('nothing is kept without layers, with a layer that Docker has no digest of, or where it records none', async (t) => {
  const docker = await imagesOf(t, { aaaa11: 'sha256:d1' })
  const partial = partialImage(docker.client, 'web:1')
  await partial.keep([])
  await partial.keep(['aaaa', 'bbbb'])
  await partial.keep(['aa11'])
  t.same(docker.tags, [])
  const containerd = await imagesOf(t, undefined)
  await partialImage(containerd.client, 'web:1').keep(['aaaa'])
  t.same(containerd.loaded, [])
})

test('an error of Docker while it loads is the error, and the earlier image stays', async (t) => {
  const docker = await imagesOf(t, { aaaa11: 'sha256:d1', bbbb22: 'sha256:d2' })
  const partial = partialImage(docker.client, 'web:1')
  await partial.keep(['aaaa'])
  const kept = [...docker.tags]
  docker.answer = { error: 'no space left on device' }
  await t.rejects(partial.keep(['aaaa', 'bbbb']), { message: 'no space left on device' })
  t.same(docker.tags, kept)
})

/** Docker's API of images, and its records of layers: digest → the digest of the unpacked layer. */
async function imagesOf(t: Test, records: { readonly [digest: string]: string } | undefined) {
  const root = testFolder(
    t,
    records === undefined ? {} : { image: { overlay2: { distribution: { 'diffid-by-digest': { sha256: records } } } } },
  )
  const engine = {
    tags: [] as string[],
    loaded: [] as { readonly [path: string]: unknown }[],
    filters: [] as unknown[],
    answer: { status: 'Loaded' } as { readonly [name: string]: unknown },
  }
  const serve = async (request: IncomingMessage): Promise<unknown> => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://docker')
    if (pathname === '/info') return { DockerRootDir: root, Driver: 'overlay2' }
    if (pathname === '/images/json') {
      engine.filters.push(JSON.parse(searchParams.get('filters') ?? ''))
      return [{ RepoTags: null }, ...engine.tags.map((tag) => ({ RepoTags: [tag] }))]
    }
    if (pathname === '/images/load') {
      const files = filesOf(await bodyOf(request))
      engine.loaded.push(files)
      if (!('error' in engine.answer))
        engine.tags.push((files['manifest.json'] as [{ RepoTags: [string] }])[0].RepoTags[0])
      return engine.answer
    }
    engine.tags.splice(engine.tags.indexOf(decodeURIComponent(pathname.replace('/images/', ''))), 1)
    return []
  }
  const folder = await mkdtemp(join(tmpdir(), 'bramble-partial-'))
  const socketPath = join(folder, 'docker.sock')
  const server = createServer(async (request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(await serve(request))}\n`)
  }).listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true })
  })
  return Object.assign(engine, { client: dockerEngine(socketPath) })
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The files of a tar archive, each of which is JSON. */
function filesOf(archive: Buffer): { readonly [path: string]: unknown } {
  const files: { [path: string]: unknown } = {}
  for (let at = 0; archive[at] !== undefined && archive[at] !== 0; ) {
    const path = archive.toString('utf8', at, at + 100).replace(/\0.*$/s, '')
    const size = Number.parseInt(archive.toString('utf8', at + 124, at + 135), 8)
    files[path] = JSON.parse(archive.toString('utf8', at + 512, at + 512 + size))
    at += 512 + Math.ceil(size / 512) * 512
  }
  return files
}
