/** Images in Docker: inspects, pulls, lists and removes them, and imports the sandbox image. */
import { Readable } from 'node:stream'
import type Dockerode from 'dockerode'
import { parseImageName } from '../../pods/images/image-decision.ts'
import { isSandboxArchitecture, sandboxImage, sandboxLayer } from '../../pods/images/sandbox-image.ts'
import { type ContainerRuntime, type ImageReference, RuntimeError } from '../../pods/runtime/runtime.ts'
import { actMs, askMs, call, messages } from './call.ts'
import { pull } from './pull.ts'

export interface DockerImages
  extends Pick<ContainerRuntime, 'findImage' | 'imageUser' | 'pullImage' | 'listImages' | 'removeImage'> {
  /** The image ID in statuses: the digest if it has one. */
  imageIDOf(id: string): Promise<string>
  makeSandboxImage(): Promise<void>
}

export function dockerImages(docker: Dockerode): DockerImages {
  const names = new Map<string, string>()
  const makeSandboxImage = async () => {
    const version = await call('Cannot ask Docker for its version', askMs, () => docker.version())
    const architecture = version.Arch
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
    for await (const progress of messages(stream)) {
      if (typeof progress['error'] === 'string') {
        throw new RuntimeError('Failed', `Cannot make ${sandboxImage}`, { cause: new Error(progress['error']) })
      }
    }
  }
  let making: Promise<void> | undefined
  const made = () => {
    making = undefined
  }

  return {
    async findImage(image) {
      const found = await call(`Cannot look for image ${image}`, askMs, () => docker.getImage(image).inspect(), 404)
      if (found === undefined) return undefined
      const { Id, Size, Os, Architecture, Variant = '' } = found as typeof found & { readonly Variant?: string }
      return { id: Id, sizeBytes: Size, platform: { os: Os, architecture: Architecture, variant: Variant } }
    },

    async imageUser(image) {
      const found = await call(`Cannot look at image ${image}`, askMs, () => docker.getImage(image).inspect())
      return found.Config.User ?? ''
    },

    async pullImage(image, options) {
      const name = parseImageName(image)
      if (name === undefined) throw new RuntimeError('InvalidImageName', `Not an image name: ${image}`)
      await pull(docker, image, { fromImage: name.repository, tag: name.digest ?? name.tag ?? 'latest' }, options)
    },

    async listImages() {
      const images = await call('Cannot list images', askMs, (abortSignal) => docker.listImages({ abortSignal }))
      return images.map(
        ({ Id, RepoDigests, RepoTags, Size }): ImageReference => ({
          id: Id,
          digests: RepoDigests ?? [],
          tags: (RepoTags ?? []).filter((tag) => tag !== '<none>:<none>'),
          sizeBytes: Size,
        }),
      )
    },

    async removeImage({ id, tags, digests }) {
      // Docker does not remove an image with several names by its id. The digests are removed with the last tag; without tags
      // they are the names.
      const all = tags.length > 0 ? tags : digests.length > 1 ? digests : [id]
      for (const name of all) {
        await call(`Cannot remove image ${name}`, actMs, () => docker.getImage(name).remove(), 404)
      }
      names.delete(id)
    },

    async imageIDOf(id) {
      const known = names.get(id)
      if (known !== undefined) return known
      const image = await call(`Cannot look at image ${id}`, askMs, () => docker.getImage(id).inspect(), 404)
      const [digest] = image?.RepoDigests ?? []
      const name = digest === undefined ? `docker://${id}` : `docker-pullable://${digest}`
      names.set(id, name)
      return name
    },

    // Pods that start at once share one import: with its images in containerd, as by default from Docker 29 on, Docker refuses one of two
    // of the same name (containerd_import.go: AlreadyExists).
    makeSandboxImage: () => (making ??= makeSandboxImage().finally(made)),
  }
}
