/**
 * A registry of a test's own: serves images from memory as the distribution API specifies, writes down what it was asked
 * for, and is as slow, broken or suspicious as the test wants. On 127.0.0.1, where Docker accepts plain HTTP.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { type TarEntry, tarOf } from '../../agent/pods/images/tar.ts'
import type { Ending } from './dockerd.ts'

export type Asked = { readonly method: string; readonly path: string; readonly range: string | undefined }

export type TestRegistry = {
  /** `127.0.0.1:PORT`: the first part of its images' names. */
  readonly host: string
  readonly asked: readonly Asked[]
  /** Digests of the blobs that were asked for, in order, since the beginning or the last `forget`. */
  blobsAsked(): readonly string[]
  forget(): void
  /** Gives the digests of the layers. */
  add(repository: string, tag: string, image: RegistryImage): readonly string[]
  /** One name for several platforms. */
  addIndex(repository: string, tag: string, images: readonly RegistryImage[]): void
  /** The blob's answer stops after this many bytes: the connection stays open and silent. Undone by `repair`. */
  stall(digest: string, afterBytes: number): void
  /** The blob's next answer breaks off after this many bytes. */
  cut(digest: string, afterBytes: number): void
  /** Blobs wait before the first byte until this resolves. */
  holdBlobs(): () => void
  repair(): void
  /** From here on, requests without these credentials are refused. */
  demand(username: string, password: string): void
  /** Most repositories whose blobs were fetched at one moment so far. */
  readonly mostAtOnce: number
}

export type RegistryImage = {
  readonly architecture?: string
  readonly variant?: string
  /** Each a tar archive. */
  readonly layers: readonly Buffer[]
  readonly command?: readonly string[]
  readonly labels?: { readonly [name: string]: string }
}

type Fault = { readonly afterBytes: number; readonly and: 'stall' | 'cut' }
type Stored = { readonly type: string; readonly content: Buffer }

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'
const indexType = 'application/vnd.docker.distribution.manifest.list.v2+json'
const configType = 'application/vnd.docker.container.image.v1+json'
const layerType = 'application/vnd.docker.image.rootfs.diff.tar.gzip'

export async function startRegistry(t: Ending): Promise<TestRegistry> {
  const manifests = new Map<string, Stored>()
  const blobs = new Map<string, Stored>()
  const faults = new Map<string, Fault>()
  const asked: Asked[] = []
  const fetching = new Map<string, number>()
  let begin = 0
  let mostAtOnce = 0
  let credentials: string | undefined
  let gate: Promise<void> = Promise.resolve()

  const store = (type: string, content: Buffer, into: Map<string, Stored> = blobs) => {
    const digest = digestOf(content)
    into.set(digest, { type, content })
    return { mediaType: type, size: content.length, digest }
  }
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))

  const manifestOf = ({
    architecture = hostArchitecture(),
    variant,
    layers,
    labels,
    command = ['sh'],
  }: RegistryImage) => {
    const config = json({
      architecture,
      ...(variant === undefined ? {} : { variant }),
      os: 'linux',
      config: { Cmd: command, Env: ['PATH=/bin'], ...(labels && { Labels: labels }) },
      rootfs: { type: 'layers', diff_ids: layers.map(digestOf) },
      history: layers.map(() => ({ created: '2026-01-01T00:00:00Z' })),
    })
    const stored = layers.map((layer) => store(layerType, gzipSync(layer, { level: 1 })))
    const content = json({
      schemaVersion: 2,
      mediaType: manifestType,
      config: store(configType, config),
      layers: stored,
    })
    const platform = { os: 'linux', architecture, ...(variant === undefined ? {} : { variant }) }
    return { content, platform, digests: stored.map(({ digest }) => digest) }
  }

  const sendBlob = async (repository: string, digest: string, request: IncomingMessage, response: ServerResponse) => {
    const { content } = blobs.get(digest) ?? { content: undefined }
    if (content === undefined) return respond(response, 404, 'BLOB_UNKNOWN')
    fetching.set(repository, (fetching.get(repository) ?? 0) + 1)
    mostAtOnce = Math.max(mostAtOnce, [...fetching.values()].filter((count) => count > 0).length)
    response.once('close', () => fetching.set(repository, (fetching.get(repository) ?? 1) - 1))
    await gate
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0)
    const fault = faults.get(digest)
    response.writeHead(from > 0 ? 206 : 200, {
      'Content-Type': 'application/octet-stream',
      'Content-Length': content.length - from,
      ...(from > 0 ? { 'Content-Range': `bytes ${from}-${content.length - 1}/${content.length}` } : {}),
      'Docker-Content-Digest': digest,
    })
    if (fault === undefined) return response.end(content.subarray(from))
    const cut = () => {
      if (fault.and !== 'cut') return
      faults.delete(digest)
      response.destroy()
    }
    response.write(content.subarray(from, Math.max(from + 1, fault.afterBytes)), cut)
  }

  const server = createServer((request, response) => {
    const { method = 'GET', url = '/' } = request
    const wanted = credentials
    if (wanted !== undefined && request.headers.authorization !== wanted) {
      response.setHeader('WWW-Authenticate', 'Basic realm="test"')
      return respond(response, 401, 'UNAUTHORIZED')
    }
    const [, repository = '', kind, reference = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/?]+)/.exec(url) ?? []
    if (kind === undefined) return respond(response, url === '/v2/' ? 200 : 404, '')
    asked.push({ method, path: url, range: request.headers.range })
    if (kind === 'blobs') return void sendBlob(repository, reference, request, response)
    const found = manifests.get(reference) ?? manifests.get(`${repository}:${reference}`)
    if (found === undefined) return respond(response, 404, 'MANIFEST_UNKNOWN')
    response.writeHead(200, {
      'Content-Type': found.type,
      'Content-Length': found.content.length,
      'Docker-Content-Digest': digestOf(found.content),
    })
    response.end(method === 'HEAD' ? undefined : found.content)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0

  return {
    host: `127.0.0.1:${port}`,
    get asked() {
      return asked.slice(begin)
    },
    blobsAsked: () => asked.slice(begin).flatMap(({ path }) => /\/blobs\/(.+)/.exec(path)?.[1] ?? []),
    forget() {
      begin = asked.length
    },
    add(repository, tag, image) {
      const { content, digests } = manifestOf(image)
      store(manifestType, content, manifests)
      manifests.set(`${repository}:${tag}`, { type: manifestType, content })
      return digests
    },
    addIndex(repository, tag, images) {
      const entries = images.map((image) => {
        const { content, platform } = manifestOf(image)
        return { ...store(manifestType, content, manifests), platform }
      })
      const content = json({ schemaVersion: 2, mediaType: indexType, manifests: entries })
      store(indexType, content, manifests)
      manifests.set(`${repository}:${tag}`, { type: indexType, content })
    },
    stall: (digest, afterBytes) => faults.set(digest, { afterBytes, and: 'stall' }),
    cut: (digest, afterBytes) => faults.set(digest, { afterBytes, and: 'cut' }),
    holdBlobs() {
      let release: () => void = () => undefined
      gate = new Promise((resolve) => {
        release = resolve
      })
      return release
    },
    repair: () => faults.clear(),
    demand(username, password) {
      credentials = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    },
    get mostAtOnce() {
      return mostAtOnce
    },
  }
}

/** The static busybox with a shell and what a script needs. */
export async function busyboxLayer(): Promise<Buffer> {
  const applets = ['sh', 'sleep', 'cat', 'echo', 'true', 'ls']
  return tarOf([
    ...['bin/', 'etc/', 'proc/', 'sys/', 'dev/', 'tmp/'].map((path) => ({ path, folder: true, mode: 0o755 }) as const),
    { path: 'bin/busybox', content: await readFile('/bin/busybox'), mode: 0o755 },
    ...applets.map((applet) => ({ path: `bin/${applet}`, linkTo: 'busybox' })),
  ])
}

/** One file that cannot be made smaller, never the same. */
export function fillerLayer(bytes: number): Buffer {
  const entry: TarEntry = { path: `filler-${randomBytes(4).toString('hex')}`, content: randomBytes(bytes), mode: 0o644 }
  return tarOf([entry])
}

/** In Docker's words. */
export function hostArchitecture(): string {
  return process.arch === 'x64' ? 'amd64' : process.arch
}

function respond(response: ServerResponse, status: number, code: string): void {
  const body = JSON.stringify({ errors: code === '' ? [] : [{ code, message: code.toLowerCase() }] })
  response.writeHead(status, { 'Content-Type': 'application/json', 'Docker-Distribution-API-Version': 'registry/2.0' })
  response.end(body)
}

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}
