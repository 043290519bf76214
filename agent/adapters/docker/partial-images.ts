/**
 * Keeps the finished layers of an unfinished pull. Docker's own image store drops them when the pull ends without an image.
 * Therefore an image that refers to the layers so far is created, without a copy, and the next pull reuses them.
 *
 * An image that consists of present layers may be loaded without them. Docker records the layers' digests on the disk below its
 * folder. Where it does not (its containerd store keeps unfinished layers itself), nothing is kept, and a pull starts over.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { withOwnSignal } from '../../../daemon/aborted.ts'
import { within } from '../../../daemon/deadline.ts'
import { tarOf } from '../../pods/images/tar.ts'
import { progressMessages } from './call.ts'
import type { Engine } from './engine.ts'
import type { JsonShape } from './json-reader.ts'

const repository = 'bramble.dev/partial'

export interface PartialImage {
  /** `layers`: the short digests that Docker reports, in the image's order; all of them are present. */
  keep(layers: readonly string[]): Promise<void>
  /** The pull has completed: the partial image is removed. */
  drop(): Promise<void>
}

const deadlineMs = 30_000
const tagsShape = { list: { fields: { RepoTags: { list: 'text' } } } } as const satisfies JsonShape
const folderShape = { fields: { DockerRootDir: 'text', Driver: 'text' } } as const satisfies JsonShape

/** Each call ends within `withinMs`: a hung Docker must not delay the cancellation of a pull. */
export function partialImage(engine: Engine, image: string, withinMs = deadlineMs): PartialImage {
  const { docker, answers } = engine
  const hash = createHash('sha256').update(image).digest('hex').slice(0, 16)
  const nameOf = (layers: number) => `${repository}:${hash}-${layers}`

  const others = async (kept: string | undefined, signal: AbortSignal) => {
    const filters = JSON.stringify({ reference: [repository] })
    const path = `/images/json?${new URLSearchParams({ filters })}`
    const found = await answers.read(path, tagsShape, signal)
    return found.flatMap(({ RepoTags }) => RepoTags ?? []).filter((tag) => tag !== kept && tag.includes(`:${hash}-`))
  }

  const remove = async (kept: string | undefined, signal: AbortSignal) => {
    for (const tag of await others(kept, signal)) await docker.getImage(tag).remove()
  }

  const keep = async (layers: readonly string[], signal: AbortSignal) => {
    const diffIDs = await diffIDsOf(engine, layers, signal)
    if (diffIDs === undefined) return
    const name = nameOf(layers.length)
    const stream = await docker.loadImage(Readable.from([archiveOf(name, diffIDs)]), { quiet: true })
    for await (const { error } of progressMessages(stream)) if (error !== undefined) throw new Error(error)
    await remove(name, signal)
  }

  const limited = (failure: string, work: (signal: AbortSignal) => Promise<void>) =>
    withOwnSignal(undefined, async (own) => {
      try {
        await within(withinMs, failure, work(own.signal))
      } finally {
        own.abort()
      }
    })

  return {
    keep: (layers) => limited(`Layers of image ${image} were not kept`, (signal) => keep(layers, signal)),
    drop: () => limited(`Layers of image ${image} were not released`, (signal) => remove(undefined, signal)),
  }
}

async function diffIDsOf(
  { answers }: Engine,
  layers: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const { DockerRootDir = '', Driver = '' } = await answers.read('/info', folderShape, signal)
  const folder = join(DockerRootDir, 'image', Driver, 'distribution/diffid-by-digest/sha256')
  const digests = await readdir(folder).catch(() => [])
  const files = layers.map((layer) => digests.find((digest) => digest.startsWith(layer)))
  if (files.length === 0 || files.includes(undefined)) return undefined
  return await Promise.all(files.map(async (file) => (await readFile(join(folder, file ?? ''), 'utf8')).trim()))
}

function archiveOf(name: string, diffIDs: readonly string[]): Buffer {
  const config = { architecture: 'unknown', os: 'linux', config: {}, rootfs: { type: 'layers', diff_ids: diffIDs } }
  const layers = diffIDs.map((diffID) => `${diffID.slice('sha256:'.length)}.tar`)
  const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: layers }]
  const file = (path: string, content: unknown) => ({
    path,
    content: Buffer.from(JSON.stringify(content)),
    mode: 0o644,
  })
  return tarOf([file('config.json', config), file('manifest.json', manifest)])
}
