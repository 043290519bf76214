/** The images of one pod: inspects them in the engine, and starts pulls. */
import type { ConfigMap } from '../../../api/config-map.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Platform } from '../../runtime/platforms.ts'
import type { ContainerRuntime } from '../../runtime/runtime.ts'
import { containersOf } from '../record/pod-containers.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { onImageFound, onPullStarted, type PodRecord } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import { damagedImages } from './damaged-images.ts'
import { unusableMessage } from './image-damage.ts'
import type { ImageFacts } from './image-decision.ts'
import { type ImagePuller, pulledMessage, pullingMessage } from './image-puller.ts'
import { credentialsFor } from './registry-credentials.ts'

export type PodImagesNeeds = {
  readonly records: PodRecords
  readonly runtime: Pick<ContainerRuntime, 'findImage' | 'imageDamage'>
  readonly puller: ImagePuller
  /** Why an image of this platform does not run on this machine. */
  readonly platformProblem: (image: string, platform: Platform) => Promise<string | undefined>
  readonly sources: () => { readonly configMaps: readonly ConfigMap[]; readonly secrets: readonly Secret[] }
  readonly clock: Clock
  readonly log: Log
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  /** A pull has ended: sync the pod again. */
  readonly again: (uid: string) => void
}

export interface PodImages {
  /** By container name; only the images in the record. */
  factsOf(uid: string, pod: Pod, record: PodRecord): ReadonlyMap<string, ImageFacts>
  lookFor(uid: string, image: string): Promise<void>
  /** Starts a pull, or waits for the one under way. */
  pull(uid: string, pod: Pod, image: string, containerName: string): void
  /** A container of the image failed as those of a damaged one do: has its files checked. */
  suspect(uid: string, image: string): void
  /** Why no container is started of the image that is present: its files are damaged, as a check found. */
  damageOf(uid: string, image: string): string | undefined
  /** Message of the Event `Pulled`. `pulled`: it was pulled for this container. */
  pulledMessage(pod: Pod, record: PodRecord, image: string, pulled: boolean): string
}

export function podImages(needs: PodImagesNeeds): PodImages {
  const { records, runtime, puller, clock, recordEvent } = needs

  const damaged = damagedImages(needs)
  const idOf = (uid: string, image: string) => records.of(uid).images.get(image)?.image?.id

  const pullOf = (pod: Pod, image: string) => ({
    image,
    credentials: credentialsFor(pod, image, needs.sources()).credentials,
  })

  return {
    factsOf(uid, pod, { images, pullsRequestedAtMs }) {
      const facts = containersOf(pod).flatMap(({ name, image = '' }): [string, ImageFacts][] => {
        const found = images.get(image)
        if (found === undefined) return []
        const sinceMs = pullsRequestedAtMs.get(image) ?? Number.POSITIVE_INFINITY
        const pull = puller.stateOf(pullOf(pod, image), { uid, sinceMs })
        const unfit = found.unfit === undefined ? {} : { unfit: found.unfit }
        const refused = found.image?.refused === undefined ? {} : { refused: found.image.refused }
        const damage = found.image?.damage
        const damaged = damage === undefined ? {} : { damaged: unusableMessage(image, damage) }
        return [[name, { present: found.image !== undefined, ...damaged, ...unfit, ...refused, pull }]]
      })
      return new Map(facts)
    },
    async lookFor(uid, name) {
      const image = await runtime.findImage(name)
      const isUsable = image !== undefined && image.damage === undefined
      const unfit = isUsable ? await needs.platformProblem(name, image.platform) : undefined
      records.update(uid, (record) => onImageFound(record, name, { image, unfit }))
    },
    pull(uid, pod, image, containerName) {
      records.update(uid, (record) => onPullStarted(record, pod, image, clock.monotonicMs()))
      recordEvent(pod, { type: 'Normal', reason: 'Pulling', message: `Pulling image "${image}"`, containerName })
      const { credentials, missing } = credentialsFor(pod, image, needs.sources())
      if (missing.length > 0) {
        const message = `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`
        recordEvent(pod, { type: 'Warning', reason: 'FailedToRetrieveImagePullSecret', message })
      }
      puller.pull(
        { image, credentials },
        {
          uid,
          ended: () => needs.again(uid),
          goesOn(progress) {
            const message = pullingMessage(image, progress)
            recordEvent(pod, { type: 'Normal', reason: 'Pulling', message, containerName })
          },
        },
      )
    },
    suspect(uid, image) {
      const id = idOf(uid, image)
      if (id !== undefined) damaged.suspect(image, id, () => needs.again(uid))
    },
    damageOf(uid, image) {
      const id = idOf(uid, image)
      return id === undefined ? undefined : damaged.messageOf(image, id)
    },
    pulledMessage(pod, { images }, image, pulled) {
      const times = pulled ? puller.timesOf(pullOf(pod, image)) : undefined
      return pulledMessage(image, times, images.get(image)?.image?.sizeBytes ?? 0)
    },
  }
}
