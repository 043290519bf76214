/** What is known of the images of one pod, and what is asked for. */
import type { ConfigMap } from '../../api/config-map.ts'
import type { Pod } from '../../api/pod.ts'
import type { Secret } from '../../api/secret.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type ImagePuller, pulledMessage, pullingMessage } from './image-puller.ts'
import type { ImageFacts } from './images.ts'
import type { Platform } from './platforms.ts'
import { containersOf } from './pod-containers.ts'
import type { PodNews } from './pod-events.ts'
import { credentialsFor } from './registry-credentials.ts'
import type { ContainerRuntime, LocalImage } from './runtime.ts'

export type PodImagesNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'findImage'>
  readonly puller: ImagePuller
  /** Why an image of this platform does not run here. */
  readonly platformProblem: (image: string, platform: Platform) => Promise<string | undefined>
  readonly sources: () => { readonly configMaps: readonly ConfigMap[]; readonly secrets: readonly Secret[] }
  readonly clock: Clock
  readonly event: (pod: Pod, news: PodNews) => void
  /** A pull has ended: visit the pod again. */
  readonly again: (uid: string) => void
}

export interface PodImages {
  /** By container name, of the images looked for and still true. */
  factsOf(pod: Pod): ReadonlyMap<string, ImageFacts>
  lookFor(image: string): Promise<void>
  /** Begins, unless it is going on. */
  pull(pod: Pod, image: string, containerName: string): void
  /** As Kubernetes says that the image is there; `pulled`: for this container. */
  pulledMessage(pod: Pod, image: string, pulled: boolean): string
  /** Drops what was found out: the next look starts anew. */
  forget(): void
  /** A container of it has ended: what it shall run next is pulled anew where the policy says so. */
  ended(image: string): void
}

type Found = { readonly image: LocalImage | undefined; readonly unfit: string | undefined }

export function podImages(needs: PodImagesNeeds): PodImages {
  const { runtime, puller, clock, event } = needs
  const found = new Map<string, Found>()
  const pullsAskedAtMs = new Map<string, number>()

  const wanted = (pod: Pod, image: string) => ({
    image,
    credentials: credentialsFor(pod, image, needs.sources()).credentials,
  })

  return {
    factsOf(pod) {
      const facts = containersOf(pod).flatMap(({ name, image = '' }): [string, ImageFacts][] => {
        const here = found.get(image)
        if (here === undefined) return []
        const pull = puller.stateOf(wanted(pod, image), pullsAskedAtMs.get(image) ?? Number.POSITIVE_INFINITY)
        const unfit = here.unfit === undefined ? {} : { unfit: here.unfit }
        return [[name, { present: here.image !== undefined, ...unfit, pull }]]
      })
      return new Map(facts)
    },
    async lookFor(image) {
      const here = await runtime.findImage(image)
      const unfit = here && (await needs.platformProblem(image, here.platform))
      found.set(image, { image: here, unfit })
    },
    pull(pod, image, containerName) {
      pullsAskedAtMs.set(image, pullsAskedAtMs.get(image) ?? clock.monotonicMs())
      event(pod, { type: 'Normal', reason: 'Pulling', message: `Pulling image "${image}"`, containerName })
      found.delete(image)
      const { credentials, missing } = credentialsFor(pod, image, needs.sources())
      if (missing.length > 0) {
        const message = `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`
        event(pod, { type: 'Warning', reason: 'FailedToRetrieveImagePullSecret', message })
      }
      puller.pull(
        { image, credentials },
        {
          ended: () => needs.again(pod.metadata.uid ?? ''),
          goesOn(progress) {
            const message = pullingMessage(image, progress)
            event(pod, { type: 'Normal', reason: 'Pulling', message, containerName })
          },
        },
      )
    },
    pulledMessage(pod, image, pulled) {
      const times = pulled ? puller.timesOf(wanted(pod, image)) : undefined
      return pulledMessage(image, times, found.get(image)?.image?.sizeBytes ?? 0)
    },
    forget: () => found.clear(),
    ended: (image) => void pullsAskedAtMs.delete(image),
  }
}
