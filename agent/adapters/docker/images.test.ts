import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { dockerEngine } from './engine.ts'
import { dockerImages } from './images.ts'

/** It imports an image only when asked to by `answer`. */
async function engine(t: Test) {
  const imports: string[] = []
  let [fails, answer]: [boolean, () => void] = [false, () => undefined]
  let answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  const server = createServer(async (request, response) => {
    const { pathname, search } = new URL(request.url ?? '', 'http://docker')
    for await (const _ of request);
    if (pathname === '/version') return void response.end(JSON.stringify({ Arch: 'amd64' }))
    imports.push(search)
    await answered
    if (fails) response.writeHead(500)
    response.end(JSON.stringify(fails ? { message: 'no space left on device' } : { status: 'sha256:1' }))
  })
  const socketPath = join(await mkdtemp(join(tmpdir(), 'bramble-docker-')), 's')
  server.listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(dirname(socketPath), { recursive: true, force: true })
  })
  const images = dockerImages(dockerEngine(socketPath))
  return {
    images,
    imports,
    answer: (withFailure: boolean) => {
      fails = withFailure
      answer()
      answered = Promise.resolve()
    },
  }
}

test('pods that start at once share one import of the image of sandboxes', async (t) => {
  const { images, imports, answer } = await engine(t)
  const all = [images.makeSandboxImage(), images.makeSandboxImage()]
  answer(false)
  await Promise.all(all)
  t.equal(imports.length, 1)
  t.match(imports[0], /repo=bramble\.dev%2Fpause&tag=/)
  await images.makeSandboxImage()
  t.equal(imports.length, 2, 'an image that was removed is imported again')
})

test('an import that failed is tried again', async (t) => {
  const { images, imports, answer } = await engine(t)
  const all = [images.makeSandboxImage(), images.makeSandboxImage()]
  answer(true)
  for (const one of all) await t.rejects(one, { cause: { message: 'no space left on device' } })
  answer(false)
  await images.makeSandboxImage()
  t.equal(imports.length, 2)
})
