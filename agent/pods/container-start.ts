/** Makes one container of a pod and starts it; what is in its way is noted, and told with the pod. */
import type { ConfigMap } from '../../api/config-map.ts'
import type { Container, Pod } from '../../api/pod.ts'
import type { Secret } from '../../api/secret.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { containerOptions } from './container-options.ts'
import { pathOf } from './desired-pods.ts'
import type { DeviceAllocator } from './devices.ts'
import { asksOfNode } from './downward.ts'
import { hasHostsFile, hostsFileText, hostsMount } from './hosts-file.ts'
import { appArmorRefusal, enforceable, unenforcedNews } from './kernel-limits.ts'
import type { MessageReader } from './message-reader.ts'
import type { PodNews } from './pod-events.ts'
import type { PodImages } from './pod-images.ts'
import { onCreated, onNotCreated, type Waiting } from './pod-record.ts'
import type { PodRecords } from './pod-records.ts'
import type { StepOf } from './pod-steps.ts'
import { type PostStartNeeds, startPostStart } from './post-start.ts'
import { type ContainerRuntime, isUnreachable, type KernelLimits, RuntimeError } from './runtime.ts'
import { asksForImageUser } from './security.ts'
import type { ToldWaiting } from './told-waiting.ts'
import { containerMounts, type Mounts } from './volumes/container-mounts.ts'
import type { VolumeStore } from './volumes/volume-store.ts'

/** What options are made of, as it is now. */
export type OptionSources = {
  /** What is not known of the node is not there. */
  readonly isNodeKnown: boolean
  readonly hostIP: string | undefined
  readonly memoryCapacityBytes: number
  readonly allocatable: { readonly [resource: string]: string | number }
  readonly podCIDR: string | undefined
  /** undefined: nobody knows yet. */
  readonly kernelLimits: KernelLimits | undefined
  readonly podPidsLimit: number
  readonly configMaps: readonly ConfigMap[]
  readonly secrets: readonly Secret[]
}

export type ContainerStartNeeds = PostStartNeeds & {
  readonly runtime: Pick<ContainerRuntime, 'createContainer' | 'startContainer' | 'imageUser' | 'exec'>
  readonly volumes: VolumeStore
  readonly devices: DeviceAllocator
  readonly sources: () => OptionSources
  readonly images: Pick<PodImages, 'pulledMessage' | 'forget'>
  readonly lastWords: Pick<MessageReader, 'mountFor'>
  readonly records: PodRecords
  readonly clock: Clock
  readonly told: ToldWaiting
  readonly log: Log
  readonly event: (pod: Pod, news: PodNews) => void
}

type StartStep = StepOf<'startContainer'>

/** As the kubelet tries again what could not be made. */
const troubleMs = 10_000
/** What the node is gets known within moments of the agent's start. */
const nodeKnownMs = 500

export function containerStart(needs: ContainerStartNeeds): (uid: string, pod: Pod, step: StartStep) => Promise<void> {
  const { runtime, images, records, told, clock, log } = needs
  /** By reason: that a limit is not enforced is told once for the pod. */
  const toldUnenforced = new Set<string>()

  const notCreated = (pod: Pod, name: string, why: Waiting, forMs: number) =>
    records.update(pod.metadata.uid ?? '', (record) => onNotCreated(record, name, why, forMs, clock.monotonicMs()))

  const trouble = (pod: Pod, { name }: Container, reason: string, message: string) => {
    notCreated(pod, name, { reason, message }, troubleMs)
    told.forget(name)
    log.warn('Container not started', { pod: pathOf(pod), container: name, reason, message })
  }

  const notPlaced = (pod: Pod, container: Container, { volume, message }: Mounts & { readonly ok: false }) => {
    if (volume === undefined) return trouble(pod, container, 'CreateContainerConfigError', message)
    const failed = `MountVolume.SetUp failed for volume "${volume}" : ${message}`
    if (records.get(pod.metadata.uid ?? '')?.startProblems.get(container.name)?.message !== failed) {
      needs.event(pod, { type: 'Warning', reason: 'FailedMount', message: failed })
    }
    trouble(pod, container, 'ContainerCreating', failed)
  }

  const create = async (
    pod: Pod,
    container: Container,
    options: Parameters<ContainerRuntime['createContainer']>[0],
  ) => {
    try {
      return await runtime.createContainer(options)
    } catch (error) {
      if (isUnreachable(error)) throw error
      // The image was removed since we looked; or the sandbox: the next look tells.
      if (error instanceof RuntimeError && error.reason === 'ImageNotFound') images.forget()
      else trouble(pod, container, 'CreateContainerError', storyOf(error))
      return undefined
    }
  }

  /** Without a file of its own the container has the engine's, with the same names. */
  const hostsMounts = async (
    pod: Pod,
    { name }: Container,
    podIP: string | undefined,
    mounts: Parameters<typeof hasHostsFile>[1],
  ) => {
    if (podIP === undefined || !hasHostsFile(pod, mounts)) return []
    try {
      return [hostsMount(await needs.volumes.hostsFile(pod.metadata.uid ?? '', hostsFileText(pod, podIP)))]
    } catch (error) {
      log.warn("Container has the engine's /etc/hosts", { pod: pathOf(pod), container: name, error })
      return []
    }
  }

  /** Gives its id; undefined when something was in its way. */
  const make = async (pod: Pod, step: StartStep): Promise<string | undefined> => {
    const { container, attempt, sandbox } = step
    const { name, image = '' } = container
    const sources = { ...needs.sources(), podIP: sandbox.ip }
    if (!sources.isNodeKnown && asksOfNode(pod, container)) {
      return void notCreated(pod, name, { reason: 'ContainerCreating', message: '' }, nodeKnownMs)
    }
    const unguarded = appArmorRefusal(pod, sources.kernelLimits)
    if (unguarded !== undefined) return void trouble(pod, container, 'CreateContainerError', unguarded.message)
    const placed = await containerMounts(pod, container, sources, needs.volumes)
    if (!placed.ok) return void notPlaced(pod, container, placed)
    const imageUser = asksForImageUser(pod, container) ? await runtime.imageUser(image) : undefined
    const message = await needs.lastWords.mountFor(pod, container, attempt, placed.mounts)
    const hosts = await hostsMounts(pod, container, sandbox.ip, [...placed.mounts, ...message])
    // Last: from here on they are held, and nothing may be thrown until they are let go.
    const who = { podUID: pod.metadata.uid ?? '', containerName: name }
    const given = await needs.devices.allocate(who, container)
    if (!given.ok) return void trouble(pod, container, 'CreateContainerConfigError', given.message)
    const made = containerOptions(pod, container, {
      ...sources,
      sandboxID: sandbox.id,
      attempt,
      processesOf: step.processesOf,
      mounts: [...placed.mounts, ...message, ...hosts],
      devices: given.paths,
      imageUser,
    })
    if (!made.ok) {
      needs.devices.release(who)
      return void trouble(pod, container, 'CreateContainerConfigError', made.message)
    }
    const pulled = images.pulledMessage(pod, image, step.imagePulled)
    needs.event(pod, { type: 'Normal', reason: 'Pulled', message: pulled, containerName: name })
    const { limits } = made.options
    for (const news of unenforcedNews(limits, sources.kernelLimits)) {
      if (!toldUnenforced.has(news.reason)) needs.event(pod, { ...news, containerName: name })
      toldUnenforced.add(news.reason)
    }
    const options = { ...made.options, limits: enforceable(limits, sources.kernelLimits) }
    return await create(pod, container, options).finally(() => needs.devices.release(who))
  }

  return async (uid, pod, step) => {
    const { container, attempt } = step
    const { name } = container
    const id = await make(pod, step)
    if (id === undefined) return
    const tell = (type: PodNews['type'], reason: string, message: string) =>
      needs.event(pod, { type, reason, message, containerName: name })
    tell('Normal', 'Created', `Created container: ${name}`)
    records.update(uid, (record) => onCreated(record, container, step.previous, clock.monotonicMs()))
    told.forget(name)
    try {
      await runtime.startContainer(id)
      tell('Normal', 'Started', `Started container ${name}`)
      startPostStart(needs, pod, container, id)
      log.info('Container started', { pod: pathOf(pod), container: name, attempt, id: id.slice(0, 12) })
    } catch (error) {
      if (isUnreachable(error)) throw error
      // It stays as it is, with the reason on it: to the next plan it is a container that ended.
      tell('Warning', 'Failed', `Error: failed to start container "${name}": ${reasonOf(error)}`)
      log.warn('Container not started', { pod: pathOf(pod), container: name, error })
    }
  }
}

/** Without which container it was: that its event says, and events with the same words are counted together. */
function reasonOf(error: unknown): string {
  return storyOf(error instanceof RuntimeError && error.cause !== undefined ? error.cause : error)
}
