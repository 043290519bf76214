/**
 * Removes unneeded data: dead containers every minute; images every five minutes, if the disk is above its high threshold.
 * Eviction triggers the same on demand. Running containers are never stopped.
 */
import { unlessAborted } from '../../../daemon/aborted.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { within } from '../../../daemon/deadline.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import { mutex } from '../../../daemon/mutex.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { NodeReclaim } from '../../eviction/node-reclaim.ts'
import type { SignalSource } from '../../eviction/observations.ts'
import type { NodeEvent } from '../../node/status/node-event.ts'
import { type ContainerRuntime, type ImageReference, isUnreachable } from '../../runtime/runtime.ts'
import { type DeadContainerPolicy, deadContainers, type PodNeed } from './dead-containers.ts'
import {
  bytesToFree,
  type Disk,
  type ImagePolicy,
  type ImageRecord,
  type ImageRecords,
  isOnlyHere,
  outlivedImages,
  remember,
  removableImages,
  usedPercent,
} from './unused-images.ts'

type GarbageRuntime = Pick<
  ContainerRuntime,
  'listContainers' | 'removeContainer' | 'listImages' | 'imagesInUse' | 'removeImage'
>

export type PodGarbageCollectorNeeds = {
  readonly runtime: GarbageRuntime
  readonly pods: { needOf(podUID: string): PodNeed }
  /** Reads the usage of the disk with the images. */
  readonly signals: SignalSource
  readonly event: (event: NodeEvent) => void
  readonly clock: Clock
  readonly log: Log
}

export type GarbagePolicy = { readonly containers: DeadContainerPolicy; readonly images: ImagePolicy }

export interface GarbageCollector extends Loop, NodeReclaim {}

const containersPeriodMs = 60_000 // both as pkg/kubelet/kubelet.go (ContainerGCPeriod, ImageGCPeriod)
const imagesEvery = 5

/** Longer than the deadlines of an adapter's own calls, whose errors have the better reason (two minutes for each name of an image). */
const callMs = 10 * 60_000

/** One collection at a time. A call that never ends holds the next ones up for `callMs` at most. */
export function podGarbageCollector(given: PodGarbageCollectorNeeds, policy: GarbagePolicy): GarbageCollector {
  const needs = withDeadlines(given)
  const { runtime, clock, log } = needs
  let records: ImageRecords = new Map()
  let sinceMs: number | undefined
  let imagesFailed = false
  const exclusively = mutex()

  /** Records the images that are present; returns those that no container uses. */
  const lookAtImages = async () => {
    const nowMs = clock.monotonicMs()
    const first = sinceMs === undefined
    const inUse = await runtime.imagesInUse()
    const images = await runtime.listImages()
    sinceMs ??= nowMs
    records = remember(records, images, inUse, { nowMs, atMs: first ? Number.NEGATIVE_INFINITY : nowMs })
    return removableImages(records, inUse, policy.images.minAgeMs, nowMs)
  }

  const collectImages = async (signal: AbortSignal) => {
    const removable = await lookAtImages()
    const { maxAgeMs, highPercent } = policy.images
    const nowMs = clock.monotonicMs()
    const outlived = outlivedImages(removable, maxAgeMs, { nowMs, sinceMs: sinceMs ?? nowMs })
    await removeImages(needs, outlived, Number.POSITIVE_INFINITY, signal)
    if (highPercent === 100) return
    const disk = await imageDisk(needs.signals)
    const wantedBytes = bytesToFree(disk, policy.images)
    if (wantedBytes === 0) return
    log.info('Disk of the images is filling up', { usedPercent: usedPercent(disk), highPercent, wantedBytes })
    const rest = removable.filter((record) => !outlived.includes(record))
    const freedBytes = await removeImages(needs, rest, wantedBytes, signal)
    if (freedBytes >= wantedBytes || signal.aborted) return
    const message = `Failed to garbage collect required amount of images. Attempted to free ${wantedBytes} bytes, but only found ${freedBytes} bytes eligible to free.`
    needs.event({ type: 'Warning', reason: 'FreeDiskSpaceFailed', message })
    throw new Error(message)
  }

  const passContainers = async (signal: AbortSignal) => {
    try {
      await exclusively(() => collectContainers(needs, policy.containers, false, signal))
    } catch (error) {
      if (isUnreachable(error)) return log.debug('Cannot list dead containers', { error })
      needs.event({ type: 'Warning', reason: 'ContainerGCFailed', message: storyOf(error) })
      log.warn('Dead containers not removed', { error })
    }
  }

  /** The first failure is not logged: shortly after a start the disk of the engine may be unknown. */
  const passImages = async (signal: AbortSignal) => {
    try {
      await exclusively(() => collectImages(signal))
      imagesFailed = false
    } catch (error) {
      if (isUnreachable(error)) return log.debug('Cannot list images', { error })
      if (imagesFailed) needs.event({ type: 'Warning', reason: 'ImageGCFailed', message: storyOf(error) })
      log.warn('Unused images not removed', { error })
      imagesFailed = true
    }
  }

  return {
    name: 'garbage',
    async run(signal) {
      // Images older than this process have no age limit: they may be removed at once.
      const listing = exclusively(lookAtImages).catch((error) => log.debug('Cannot list images', { error }))
      await unlessAborted(listing, signal)
      for (let turn = 1; !signal.aborted; turn++) {
        await clock.sleep(containersPeriodMs, signal)
        // A stop waits for no removal: Docker finishes it, or the next start repeats it.
        if (!signal.aborted) await unlessAborted(passContainers(signal), signal)
        if (!signal.aborted && turn % imagesEvery === 0) await unlessAborted(passImages(signal), signal)
      }
    },
    deleteUnusedContainers: (signal) => exclusively(() => collectContainers(needs, policy.containers, true, signal)),
    deleteUnusedImages: (signal, isEnough) =>
      exclusively(async () => {
        const removable = await lookAtImages()
        const onlyHere = removable.filter(({ image }) => isOnlyHere(image))
        const others = removable.filter((record) => !onlyHere.includes(record))
        const freedBytes = await removeImages(needs, others, Number.POSITIVE_INFINITY, signal)
        if (onlyHere.length === 0 || (await isEnough())) return { freedBytes }
        return { freedBytes: freedBytes + (await removeImages(needs, onlyHere, Number.POSITIVE_INFINITY, signal)) }
      }),
  }
}

/** The calls that wait for the engine or for a disk, each with a deadline. A call that misses it fails as any other. */
function withDeadlines(needs: PodGarbageCollectorNeeds): PodGarbageCollectorNeeds {
  const { runtime, signals, clock } = needs
  const timed = <T>(what: string, work: Promise<T>) => within(callMs, what, work, clock)
  return {
    ...needs,
    runtime: {
      listContainers: (podUID) => timed('Containers not listed', runtime.listContainers(podUID)),
      removeContainer: (id) => timed(`Container ${id} not removed`, runtime.removeContainer(id)),
      listImages: () => timed('Images not listed', runtime.listImages()),
      imagesInUse: () => timed('Images in use not listed', runtime.imagesInUse()),
      removeImage: (image) => timed(`Image ${image.tags[0] ?? image.id} not removed`, runtime.removeImage(image)),
    },
    signals: { ...signals, observe: () => timed('Disk of the images not read', signals.observe()) },
  }
}

/** `short`: containers of pods that have ended go as well. */
async function collectContainers(
  { runtime, pods, clock, log }: PodGarbageCollectorNeeds,
  policy: DeadContainerPolicy,
  short: boolean,
  signal: AbortSignal,
): Promise<void> {
  const containers = await runtime.listContainers()
  const dead = deadContainers(policy, {
    containers,
    needOf: pods.needOf,
    nowWallMs: clock.wallMs(),
    short,
  })
  const failures: unknown[] = []
  for (const { id } of dead) {
    if (signal.aborted) return
    await runtime.removeContainer(id).catch((error) => failures.push(error))
  }
  if (dead.length > failures.length) log.info('Dead containers removed', { removed: dead.length - failures.length })
  if (failures.length > 0) throw severalErrors('Some dead containers were not removed', failures)
}

/** Removes images one by one until enough is free. An image that cannot be removed does not block the next. */
async function removeImages(
  { runtime, event, log }: PodGarbageCollectorNeeds,
  images: readonly ImageRecord[],
  wantedBytes: number,
  signal: AbortSignal,
): Promise<number> {
  const removed: ImageRecord[] = []
  const failures: unknown[] = []
  const freedBytes = () => removed.reduce((sum, { image }) => sum + image.sizeBytes, 0)
  for (const record of images) {
    if (signal.aborted || freedBytes() >= wantedBytes) break
    if (isOnlyHere(record.image)) event(removalOf(record.image))
    try {
      await runtime.removeImage(record.image)
      removed.push(record)
    } catch (error) {
      failures.push(error)
    }
  }
  if (removed.length > 0) {
    const names = removed.map(({ image: { id, tags } }) => tags[0] ?? id)
    log.info('Unused images removed', { freedBytes: freedBytes(), images: names })
  }
  if (failures.length > 0) {
    const wanted = Number.isFinite(wantedBytes) ? wantedBytes : 'all'
    const story = `wanted to free ${wanted} bytes, but freed ${freedBytes()} bytes space with errors in image deletion`
    throw severalErrors(story, failures)
  }
  return freedBytes()
}

/** Recorded before the removal: the image must be imported again, and only its name shows which. */
function removalOf({ tags, sizeBytes }: ImageReference): NodeEvent {
  const message = `Removing unused image ${tags.slice(0, 3).join(', ')} (${sizeBytes} bytes), which no registry is known to have: import it again for pods that need it`
  return { type: 'Warning', reason: 'ImportedImageRemoved', message }
}

async function imageDisk(signals: SignalSource): Promise<Disk> {
  const { observed, unread } = await signals.observe()
  const found = observed.find(({ signal }) => signal === 'imagefs.available')
  if (found === undefined) {
    const because = unread.find(({ signal }) => signal === 'imagefs.available')?.because
    throw new Error(
      `The disk of the images is not known: ${because ?? 'Docker has not reported its root directory yet'}`,
    )
  }
  const { available, capacity } = found
  if (capacity === 0) throw new Error('invalid capacity 0 on image filesystem')
  return { availableBytes: available, capacityBytes: capacity }
}

function severalErrors(story: string, failures: readonly unknown[]): Error {
  return new Error(`${story}: ${failures.map(storyOf).join('; ')}`)
}
