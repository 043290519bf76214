/** Carries out one pod's plan, step by step, and remembers what the engine does not. */
import type { ConfigMap } from '../../api/config-map.ts'
import type { Container, Pod, PodStatus } from '../../api/pod.ts'
import type { Secret } from '../../api/secret.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { containerOptions, sandboxOptions } from './container-options.ts'
import { pathOf } from './desired-pods.ts'
import type { DeviceAllocator } from './devices.ts'
import type { ImagePuller } from './image-puller.ts'
import type { ImageFacts } from './images.ts'
import { appArmorRefusal, enforceable, unenforcedNews } from './kernel-limits.ts'
import { lifecycle } from './lifecycle.ts'
import { messageReader } from './message-reader.ts'
import type { Platform } from './platforms.ts'
import { containersOf, hasEnded } from './pod-containers.ts'
import { asksForHostResolver, type Resolver } from './pod-dns.ts'
import { newsOfWaiting, type PodNews } from './pod-events.ts'
import { podImages } from './pod-images.ts'
import { backoffKey, nothingRemembered, type PodMemory, type PodPlan, type PodStep, type Vitals } from './pod-steps.ts'
import type { Prober } from './probes/prober.ts'
import type { NetworkProbes } from './probes/targets.ts'
import { afterRestart } from './restarts.ts'
import {
  type ContainerRuntime,
  isUnreachable,
  type KernelLimits,
  type RuntimeContainer,
  RuntimeError,
} from './runtime.ts'
import { asksForImageUser } from './security.ts'
import { containerMounts, type Mounts, refreshFiles } from './volumes/container-mounts.ts'
import type { VolumeStore } from './volumes/volume-store.ts'

export type PodWorkerNeeds = {
  readonly runtime: ContainerRuntime
  readonly volumes: VolumeStore
  readonly devices: DeviceAllocator
  /** How this machine looks up names. */
  readonly hostResolver: () => Promise<Resolver>
  readonly puller: ImagePuller
  /** Why an image of this platform does not run here. */
  readonly platformProblem: (image: string, platform: Platform) => Promise<string | undefined>
  readonly prober: Pick<Prober, 'vitals'>
  readonly network: NetworkProbes
  readonly clock: Clock
  readonly log: Log
  readonly event: (pod: Pod, news: PodNews) => void
  /** Something began elsewhere has ended: visit the pod again, at once or after this long. */
  readonly again: (uid: string, afterMs?: number) => void
  /** What options are made of, as it is now. */
  readonly sources: () => {
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
}

/** One pod's steps and memory, from when it is first seen until nothing of it is left. */
export interface PodWorker {
  readonly memory: PodMemory
  /** Drops what was found out about images: the next look starts anew. */
  forgetImages(): void
  /** Of those looked for and still true. */
  images(pod: Pod): ReadonlyMap<string, ImageFacts>
  /** What probes and hooks say now. */
  vitals(uid: string): Vitals
  /** Notes what ended, before a plan is made. */
  observe(containers: readonly RuntimeContainer[]): void
  /** What containers left to be read, by id. */
  readonly messages: ReadonlyMap<string, string>
  /** Reads it of those that ended since. */
  readMessages(pod: Pod, containers: readonly RuntimeContainer[]): Promise<void>
  /** Notes what was reported, for what only the report remembers. */
  reported(status: PodStatus): void
  /** The end that its time ran for is called off. */
  stays(): void
  /** What was in the way may have changed: try again. */
  forgetTroubles(): void
  /** Brings the files of its volumes to what the pod's ConfigMaps and Secrets say now. */
  refreshVolumes(pod: Pod): Promise<void>
  /** Tells what containers newly wait for. */
  tellWaiting(pod: Pod, plan: PodPlan): void
  execute(uid: string, pod: Pod | undefined, step: PodStep): Promise<void>
}

/** As the kubelet tries again what could not be made. */
const troubleMs = 10_000
/** What the engine cannot remove stands in nobody's way meanwhile. */
const stuckMs = 30_000
const sandboxRetry = { firstMs: 1_000, maxMs: 30_000 }

export function podWorker(needs: PodWorkerNeeds): PodWorker {
  const { runtime, clock, log } = needs
  const images = podImages(needs)
  const life = lifecycle({ ...needs, hostIP: () => needs.sources().hostIP })
  const lastWords = messageReader(needs)
  const backoffs = new Map(nothingRemembered.backoffs)
  const exits = new Map(nothingRemembered.exits)
  const troubles = new Map(nothingRemembered.troubles)
  const restartCounts = new Map(nothingRemembered.restartCounts)
  const toldWaiting = new Map<string, string>()
  const stuck = new Map(nothingRemembered.stuck)
  /** By reason: that a limit is not enforced is told once for the pod. */
  const toldUnenforced = new Set<string>()
  let refreshed: readonly unknown[] = []
  let sandboxFailures = 0
  let sandboxRetryAtMs: number | undefined
  let sandboxTrouble = ''

  const trouble = (pod: Pod, { name }: Container, reason: string, message: string) => {
    troubles.set(name, { reason, message, retryAtMs: clock.monotonicMs() + troubleMs })
    toldWaiting.delete(name)
    log.warn('Container not started', { pod: pathOf(pod), container: name, reason, message })
  }

  const runSandbox = async (pod: Pod, step: PodStep & { step: 'runSandbox' }) => {
    if (step.lost && sandboxFailures === 0) {
      needs.event(pod, { type: 'Normal', reason: 'SandboxChanged', message: sandboxChanged })
    }
    try {
      const resolver = asksForHostResolver(pod.spec) ? await needs.hostResolver() : undefined
      await runtime.runSandbox(sandboxOptions(pod, step.attempt, { resolver, podCIDR: needs.sources().podCIDR }))
      sandboxFailures = 0
      sandboxTrouble = ''
    } catch (error) {
      if (isUnreachable(error)) throw error
      const waitMs = backoffMs(sandboxFailures++, sandboxRetry, () => 1)
      sandboxRetryAtMs = clock.monotonicMs() + waitMs
      const message = `Failed to create pod sandbox: ${storyOf(error)}`
      sandboxTrouble = message
      needs.event(pod, { type: 'Warning', reason: 'FailedCreatePodSandBox', message })
      log.warn('Sandbox not started', { pod: pathOf(pod), retryInMs: waitMs, error })
    }
  }

  const startContainer = async (pod: Pod, step: PodStep & { step: 'startContainer' }) => {
    const { container, attempt, sandbox, imagePulled, previous } = step
    const { name, image = '' } = container
    const tell = (type: PodNews['type'], reason: string, message: string) =>
      needs.event(pod, { type, reason, message, containerName: name })
    const sources = { ...needs.sources(), podIP: sandbox.ip }
    const unguarded = appArmorRefusal(pod, sources.kernelLimits)
    if (unguarded !== undefined) return trouble(pod, container, 'CreateContainerError', unguarded.message)
    const placed = await containerMounts(pod, container, sources, needs.volumes)
    if (!placed.ok) return notPlaced(pod, container, placed)
    const imageUser = asksForImageUser(pod, container) ? await runtime.imageUser(image) : undefined
    const message = await lastWords.mountFor(pod, container, attempt, placed.mounts)
    // Last: from here on they are held, and nothing may be thrown until they are let go.
    const who = { podUID: pod.metadata.uid ?? '', containerName: name }
    const given = await needs.devices.allocate(who, container)
    if (!given.ok) return trouble(pod, container, 'CreateContainerConfigError', given.message)
    const made = containerOptions(pod, container, {
      ...sources,
      sandboxID: sandbox.id,
      attempt,
      processesOf: step.processesOf,
      mounts: [...placed.mounts, ...message],
      devices: given.paths,
      imageUser,
    })
    if (!made.ok) {
      needs.devices.release(who)
      return trouble(pod, container, 'CreateContainerConfigError', made.message)
    }
    tell('Normal', 'Pulled', images.pulledMessage(pod, image, imagePulled))
    const { limits } = made.options
    for (const news of unenforcedNews(limits, sources.kernelLimits)) {
      if (!toldUnenforced.has(news.reason)) needs.event(pod, { ...news, containerName: name })
      toldUnenforced.add(news.reason)
    }
    const options = { ...made.options, limits: enforceable(limits, sources.kernelLimits) }
    const id = await create(pod, container, options).finally(() => needs.devices.release(who))
    if (id === undefined) return
    tell('Normal', 'Created', `Created container: ${name}`)
    troubles.delete(name)
    toldWaiting.delete(name)
    if (previous !== undefined) {
      const nowMs = clock.monotonicMs()
      const key = backoffKey(container)
      backoffs.set(key, afterRestart(backoffs.get(key), exits.get(previous.id) ?? nowMs, nowMs))
    }
    try {
      await runtime.startContainer(id)
      tell('Normal', 'Started', `Started container ${name}`)
      life.started(pod, container, id)
      log.info('Container started', { pod: pathOf(pod), container: name, attempt, id: id.slice(0, 12) })
    } catch (error) {
      if (isUnreachable(error)) throw error
      // It stays as it is, with the reason on it: to the next plan it is a container that ended.
      tell('Warning', 'Failed', `Error: failed to start container "${name}": ${reasonOf(error)}`)
      log.warn('Container not started', { pod: pathOf(pod), container: name, error })
    }
  }

  const notPlaced = (pod: Pod, container: Container, { volume, message }: Mounts & { readonly ok: false }) => {
    if (volume === undefined) return trouble(pod, container, 'CreateContainerConfigError', message)
    const told = `MountVolume.SetUp failed for volume "${volume}" : ${message}`
    if (troubles.get(container.name)?.message !== told) {
      needs.event(pod, { type: 'Warning', reason: 'FailedMount', message: told })
    }
    trouble(pod, container, 'ContainerCreating', told)
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

  const remove = async (uid: string, { id, identity }: RuntimeContainer) => {
    try {
      await runtime.removeContainer(id)
      stuck.delete(id)
    } catch (error) {
      if (isUnreachable(error)) throw error
      stuck.set(id, clock.monotonicMs() + stuckMs)
      log.warn('Container not removed', { podUID: uid, container: identity.containerName, id: id.slice(0, 12), error })
    }
  }

  return {
    get memory() {
      return { backoffs, exits, troubles, sandboxRetryAtMs, sandboxTrouble, stuck, restartCounts, ...life.memory() }
    },
    forgetImages: images.forget,
    images: images.factsOf,
    vitals: (uid) => new Map([...needs.prober.vitals(uid), ...life.vitals()]),
    observe(containers) {
      const ids = new Set(containers.map(({ id }) => id))
      for (const map of [exits, stuck]) for (const id of [...map.keys()]) if (!ids.has(id)) map.delete(id)
      lastWords.present(ids)
      life.observe(containers)
      for (const container of containers) {
        if (!hasEnded(container) || exits.has(container.id)) continue
        const agoMs = clock.wallMs() - Date.parse(container.finishedAt ?? container.createdAt)
        // The date may have jumped since: it ended now at the latest.
        exits.set(container.id, clock.monotonicMs() - Math.max(0, Number.isNaN(agoMs) ? 0 : agoMs))
        images.ended(container.image)
      }
    },
    messages: lastWords.messages,
    readMessages: lastWords.read,
    reported({ containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] }) {
      const all = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
      for (const { name, containerID, restartCount } of all) {
        if (containerID !== undefined) restartCounts.set(name, restartCount)
      }
    },
    stays: life.stays,
    forgetTroubles() {
      troubles.clear()
      sandboxRetryAtMs = undefined
    },
    async refreshVolumes(pod) {
      const sources = needs.sources()
      if (isSame(refreshed, [pod, sources.configMaps, sources.secrets])) return
      try {
        await refreshFiles(pod, { ...sources, podIP: undefined }, needs.volumes)
        refreshed = [pod, sources.configMaps, sources.secrets]
      } catch (error) {
        log.warn('Files of a volume not renewed', { pod: pathOf(pod), error })
      }
    },
    tellWaiting(pod, { waiting }) {
      for (const { name, image = '' } of containersOf(pod)) {
        const wait = waiting.get(name)
        if (wait === undefined || wait.reason === toldWaiting.get(name)) continue
        const news = newsOfWaiting(pod, name, image, wait)
        // Nothing to tell while it is looked into: what comes of it may be what was told before.
        if (news.length === 0) continue
        toldWaiting.set(name, wait.reason)
        for (const one of news) needs.event(pod, one)
      }
    },
    async execute(uid, pod, step) {
      if (step.step === 'stop') return life.stop(uid, pod, step)
      if (step.step === 'remove') return await remove(uid, step.target)
      if (step.step === 'lookForImage') return await images.lookFor(step.image)
      if (pod === undefined) return
      switch (step.step) {
        case 'pullImage':
          for (const { name, image } of pod.spec.containers) if (image === step.image) toldWaiting.delete(name)
          return images.pull(pod, step.image, step.container.name)
        case 'runSandbox':
          return await runSandbox(pod, step)
        case 'startContainer':
          return await startContainer(pod, step)
      }
    },
  }
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index])
}

const sandboxChanged = 'Pod sandbox changed, it will be killed and re-created.'

/** Without which container it was: that its event says, and events with the same words are counted together. */
function reasonOf(error: unknown): string {
  return storyOf(error instanceof RuntimeError && error.cause !== undefined ? error.cause : error)
}
