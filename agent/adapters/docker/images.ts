/** Images in Docker: inspects, pulls, lists and removes them, and imports the sandbox image. */

import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { configurationProblem, parseImageName } from '../../pods/images/image-decision.ts'
import { isSandboxArchitecture, sandboxImage, sandboxLayer } from '../../pods/images/sandbox-image.ts'
import { type ContainerRuntime, type ImageReference, type LocalImage, RuntimeError } from '../../runtime/runtime.ts'
import { actMs, askMs, call, progressMessages } from './call.ts'
import { type EngineReader, imagePath } from './connection.ts'
import type { Engine } from './engine.ts'
import type { JsonShape } from './json-reader.ts'
import { pull } from './pull.ts'
import { imageDamage } from './store/image-files.ts'

export interface DockerImages
  extends Pick<
    ContainerRuntime,
    'findImage' | 'imageDamage' | 'imageUser' | 'pullImage' | 'listImages' | 'imagesInUse' | 'removeImage'
  > {
  /** The image ID in statuses: the digest if it has one. */
  imageIDOf(id: string): Promise<string>
  makeSandboxImage(): Promise<void>
}

/** Who pulls by tag can give an image any number of them. The others are removed with the next collection. */
const names = { list: 'text', most: 100 } as const
const identifying = { Id: 'text', RepoTags: names, RepoDigests: names, Size: 'number' } as const
const imagesShape = { list: { fields: identifying } } as const satisfies JsonShape
const imageShape = {
  fields: {
    ...identifying,
    Os: 'text',
    Architecture: 'text',
    Variant: 'text',
    Config: { fields: { User: 'text' } },
  },
} as const satisfies JsonShape
/** The folder of its highest layer: `/var/lib/docker/overlay2/ID/diff`. */
const storageShape = {
  fields: { GraphDriver: { fields: { Name: 'text', Data: { fields: { UpperDir: 'text' } } } } },
} as const satisfies JsonShape
/** Limit of one check of the files of an image. */
const checkMs = 60_000
const usersShape = { list: { fields: { ImageID: 'text' } } } as const satisfies JsonShape
const versionShape = { fields: { Arch: 'text' } } as const satisfies JsonShape

export function dockerImages(engine: Engine): DockerImages {
  const { docker, answers } = engine
  const imageIDs = new Map<string, string>()
  let making: Promise<void> | undefined
  const made = () => {
    making = undefined
  }

  const inspected = (image: string, ms = askMs) => inspectImage(answers, image, ms)

  const removeImage = async ({ id, tags, digests }: Omit<ImageReference, 'sizeBytes'>) => {
    // Docker does not remove an image with several names by its id. The digests are removed with the last tag; without tags
    // they are the names.
    const all = tags.length > 0 ? tags : digests.length > 1 ? digests : [id]
    for (const name of all) {
      await call(`Cannot remove image ${name}`, actMs, () => docker.getImage(name).remove(), 404)
    }
    imageIDs.delete(id)
  }

  /** Looks at an image, and removes it if no container may be made of it and none was. */
  const admitted = async (image: string, ms?: number) => {
    const found = await inspected(image, ms)
    if (found === undefined) return undefined
    const { value, bytes } = found
    const refused = configurationProblem(image, bytes)
    if (refused === undefined) return { value }
    const { Id: id = '', RepoTags: tags = [], RepoDigests: digests = [] } = value
    try {
      if (!(await imagesInUse(answers)).has(id)) await removeImage({ id, tags, digests })
    } catch {
      // It is refused anyway. The garbage collector removes it later.
    }
    return { value, refused }
  }

  return {
    async findImage(image) {
      const found = await admitted(image).catch(withoutLayer)
      if (found === 'damaged') return unusable
      if (found === undefined) return undefined
      const { value, refused } = found
      const { Id: id = '', Size: sizeBytes = 0, Os: os = '', Architecture: architecture = '', Variant = '' } = value
      const platform = { os, architecture, variant: Variant }
      return { id, sizeBytes, platform, ...(refused !== undefined && { refused }) }
    },

    imageDamage: (id) => damageOf(answers, id),

    async imageUser(image) {
      const found = await inspected(image)
      if (found === undefined)
        throw new RuntimeError('ImageNotFound', `Cannot inspect image ${image}: it is not present`)
      return found.value.Config?.User ?? ''
    },

    async pullImage(image, options) {
      const name = parseImageName(image)
      if (name === undefined) throw new RuntimeError('InvalidImageName', `Not an image name: ${image}`)
      await pull(engine, image, { fromImage: name.repository, tag: name.digest ?? name.tag ?? 'latest' }, options)
      const refused = (await admitted(image, actMs))?.refused
      if (refused !== undefined) throw new RuntimeError('ImagePull', refused)
    },

    async listImages() {
      const images = await call('Cannot list images', askMs, (signal) =>
        answers.read('/images/json', imagesShape, signal),
      )
      return images.map(
        ({ Id: id = '', RepoDigests, RepoTags = [], Size: sizeBytes = 0 }): ImageReference => ({
          id,
          digests: RepoDigests ?? [],
          tags: RepoTags.filter((tag) => tag !== '<none>:<none>'),
          sizeBytes,
        }),
      )
    },

    imagesInUse: () => imagesInUse(answers),

    removeImage,

    async imageIDOf(id) {
      const known = imageIDs.get(id)
      if (known !== undefined) return known
      const image = await inspected(id)
      const [digest] = image?.value.RepoDigests ?? []
      const name = digest === undefined ? `docker://${id}` : `docker-pullable://${digest}`
      imageIDs.set(id, name)
      return name
    },

    // Pods that start at once share one import: with its images in containerd, as by default from Docker 29 on, Docker refuses one of two
    // of the same name (containerd_import.go: AlreadyExists).
    makeSandboxImage: () => (making ??= importSandboxImage(engine).finally(made)),
  }
}

async function importSandboxImage({ docker, answers }: Engine): Promise<void> {
  const { Arch: architecture = '' } = await call('Cannot ask Docker for its version', askMs, (signal) =>
    answers.read('/version', versionShape, signal),
  )
  if (!isSandboxArchitecture(architecture)) throw new RuntimeError('Failed', `No sandbox image for ${architecture}`)
  const colon = sandboxImage.lastIndexOf(':')
  const stream = await call(`Cannot make ${sandboxImage}`, actMs, (abortSignal) =>
    docker.importImage(Readable.from([sandboxLayer(architecture)]), {
      repo: sandboxImage.slice(0, colon),
      tag: sandboxImage.slice(colon + 1),
      changes: ['ENTRYPOINT ["/pause"]'],
      abortSignal,
    }),
  )
  for await (const { error } of progressMessages(stream)) {
    if (error !== undefined) {
      throw new RuntimeError('Failed', `Cannot make ${sandboxImage}`, { cause: new Error(error) })
    }
  }
}

async function imagesInUse(answers: EngineReader): Promise<ReadonlySet<string>> {
  const tried = 'Cannot list all containers'
  const rows = await call(tried, askMs, (signal) => answers.read('/containers/json?all=true', usersShape, signal))
  return new Set(rows.flatMap(({ ImageID }) => ImageID ?? []))
}

/** Its properties, and the length of all that Docker reports of it; undefined: it is not present. */
function inspectImage(answers: EngineReader, image: string, ms: number) {
  const request = { path: `${imagePath(image)}/json` }
  return call(`Cannot inspect image ${image}`, ms, (signal) => answers.measured(request, imageShape, signal), 404)
}

/** After a power cut Docker may have lost its record of a layer (moby's layer/layer.go, ErrLayerDoesNotExist). */
function withoutLayer(error: unknown): 'damaged' {
  if (isLayerLost(error)) return 'damaged'
  throw error
}

function isLayerLost(error: unknown): boolean {
  return (
    error instanceof RuntimeError && error.cause instanceof Error && /layer does not exist/.test(error.cause.message)
  )
}

/** Docker then reports nothing else of the image. */
const unusable: LocalImage = {
  id: '',
  sizeBytes: 0,
  platform: { os: '', architecture: '', variant: '' },
  damage: "Docker's record of a layer is lost",
}

async function damageOf(answers: EngineReader, id: string): Promise<string | undefined> {
  const tried = `Cannot check the files of image ${id}`
  const path = `${imagePath(id)}/json`
  const { GraphDriver } = await call(tried, askMs, (signal) => answers.read(path, storageShape, signal))
  const folder = GraphDriver?.Data?.UpperDir
  if (GraphDriver?.Name !== 'overlay2' || folder === undefined) return undefined
  return await call(tried, checkMs, (signal) => imageDamage(dirname(dirname(dirname(folder))), id, signal))
}
