/** Carries out one pod's plan, step by step, and remembers what the engine does not. The only file here that acts. */
import type { ConfigMap } from '../../api/config-map.ts'
import type { Container, Pod, PodStatus } from '../../api/pod.ts'
import type { Secret } from '../../api/secret.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { containerOptions, sandboxOptions } from './container-options.ts'
import { pathOf } from './desired-pods.ts'
import type { DeviceAllocator } from './devices.ts'
import { containerNamed, runHook } from './hooks.ts'
import { type ImagePuller, pulledMessage, pullingMessage } from './image-puller.ts'
import type { ImageFacts } from './images.ts'
import { appArmorRefusal, enforceable, unenforcedNews } from './kernel-limits.ts'
import type { Platform } from './platforms.ts'
import { containersOf, hasEnded, isRunning, leastGraceSeconds } from './pod-containers.ts'
import { asksForHostResolver, type Resolver } from './pod-dns.ts'
import { newsOfWaiting, type PodNews } from './pod-events.ts'
import { backoffKey, nothingRemembered, type PodMemory, type PodPlan, type PodStep, type Vitals } from './pod-steps.ts'
import type { Prober } from './probes/prober.ts'
import type { NetworkProbes } from './probes/targets.ts'
import { credentialsFor } from './registry-credentials.ts'
import { afterRestart } from './restarts.ts'
import {
  type ContainerMount,
  type ContainerRuntime,
  type KernelLimits,
  type LocalImage,
  type RuntimeContainer,
  RuntimeError,
} from './runtime.ts'
import { asksForImageUser } from './security.ts'
import {
  asksForLog,
  lastBytes,
  messageMount,
  mostLogBytes,
  mostLogLines,
  mostMessageBytes,
} from './termination-messages.ts'
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
  /** What was found out about images, and drops it: the next look starts anew. */
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
/** A hook after the start may take this long; Kubernetes sets no end. */
const longestHookMs = 600_000
const neverAborted = new AbortController().signal
const sandboxRetry = { firstMs: 1_000, maxMs: 30_000 }

export function podWorker(needs: PodWorkerNeeds): PodWorker {
  const { runtime, puller, clock, log } = needs
  const backoffs = new Map(nothingRemembered.backoffs)
  const exits = new Map(nothingRemembered.exits)
  const troubles = new Map(nothingRemembered.troubles)
  const stopping = new Map(nothingRemembered.stopping)
  const replacing = new Set(nothingRemembered.replacing)
  const restartCounts = new Map(nothingRemembered.restartCounts)
  const found = new Map<string, { readonly image: LocalImage | undefined; readonly unfit: string | undefined }>()
  const pullsAskedAtMs = new Map<string, number>()
  const toldWaiting = new Map<string, string>()
  const stuck = new Map(nothingRemembered.stuck)
  const postStarts = new Set<string>()
  const failedPostStarts = new Set<string>()
  /** By reason: that a limit is not enforced is told once for the pod. */
  const toldUnenforced = new Set<string>()
  /** By container id: its preStop hook was begun. */
  const preStops = new Map<string, AbortController>()
  const messages = new Map<string, string>()
  let podIP: string | undefined
  let leavingUntilMs: number | undefined
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
    const who = { podUID: pod.metadata.uid ?? '', containerName: name }
    const given = await needs.devices.allocate(who, container)
    if (!given.ok) return trouble(pod, container, 'CreateContainerConfigError', given.message)
    const message = await messageFile(pod, container, attempt, placed.mounts)
    const made = containerOptions(pod, container, {
      ...sources,
      sandboxID: sandbox.id,
      attempt,
      processesOf: step.processesOf,
      mounts: [...placed.mounts, ...message],
      devices: given.paths,
      imageUser: asksForImageUser(pod, container) ? await runtime.imageUser(image) : undefined,
    })
    if (!made.ok) {
      needs.devices.release(who)
      return trouble(pod, container, 'CreateContainerConfigError', made.message)
    }
    const times = imagePulled ? puller.timesOf(wantedImage(pod, image)) : undefined
    tell('Normal', 'Pulled', pulledMessage(image, times, found.get(image)?.image?.sizeBytes ?? 0))
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
      postStart(pod, container, id)
      log.info('Container started', { pod: pathOf(pod), container: name, attempt, id: id.slice(0, 12) })
    } catch (error) {
      if (isUnreachable(error)) throw error
      // It stays as it is, with the reason on it: to the next plan it is a container that ended.
      tell('Warning', 'Failed', `Error: failed to start container "${name}": ${reasonOf(error)}`)
      log.warn('Container not started', { pod: pathOf(pod), container: name, error })
    }
  }

  /** One that cannot be had is missed by nobody but a reader: the container runs without. */
  const messageFile = async (pod: Pod, container: Container, attempt: number, mounts: readonly ContainerMount[]) => {
    try {
      const file = await needs.volumes.messageFile(pod.metadata.uid ?? '', container.name, attempt)
      return messageMount(container, mounts, file)
    } catch (error) {
      log.warn('Container has no termination message', { pod: pathOf(pod), container: container.name, error })
      return []
    }
  }

  const messageOf = async (container: Container, { id, identity, exitCode }: RuntimeContainer) => {
    const { podUID, attempt } = identity
    const written = await needs.volumes.message(podUID, container.name, attempt, mostMessageBytes)
    if (written.length > 0 || !asksForLog(container, exitCode)) return lastBytes(written, mostMessageBytes)
    try {
      return lastBytes(await runtime.logTail(id, mostLogLines, mostLogBytes), mostLogBytes)
    } catch (error) {
      if (isUnreachable(error)) throw error
      return `Error on reading termination message from logs: ${storyOf(error)}`
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
      if (error instanceof RuntimeError && error.reason === 'ImageNotFound') found.clear()
      else trouble(pod, container, 'CreateContainerError', storyOf(error))
      return undefined
    }
  }

  /** Beside the entrypoint, without waiting for it; while it goes on the container counts as not started. */
  const postStart = (pod: Pod, container: Container, id: string) => {
    const hook = container.lifecycle?.postStart
    if (hook === undefined) return
    postStarts.add(id)
    const call = { hook, container, id, podIP: ownIP(pod), timeoutMs: longestHookMs, signal: neverAborted }
    void runHook(needs, call).then(({ result, message }) => {
      postStarts.delete(id)
      if (result !== 'success') {
        failedPostStarts.add(id)
        tellHook(pod, container, 'PostStartHook', message)
      }
      needs.again(pod.metadata.uid ?? '')
    })
  }

  const tellHook = (pod: Pod, { name }: Container, hook: 'PostStartHook' | 'PreStopHook', message: string) => {
    const news = { reason: `Failed${hook}`, message: `${hook} failed: ${message}`, containerName: name }
    needs.event(pod, { type: 'Warning', ...news })
    log.warn('Hook failed', { pod: pathOf(pod), container: name, hook, message })
  }

  const ownIP = ({ spec }: Pod) => (spec.hostNetwork ? needs.sources().hostIP : podIP)

  /** The hook first, on the container's time; then the signal, with what is left of it. */
  const endContainer = async (
    pod: Pod | undefined,
    { target, graceSeconds }: PodStep & { step: 'stop' },
    untilMs: number,
  ) => {
    const container = pod && containerNamed(pod, target.identity.containerName)
    const hook = container?.lifecycle?.preStop
    const begun = preStops.get(target.id)
    begun?.abort()
    if (
      pod === undefined ||
      container === undefined ||
      hook === undefined ||
      begun !== undefined ||
      graceSeconds === 0
    ) {
      return await runtime.stopContainer(target.id, graceSeconds)
    }
    const calledOff = new AbortController()
    preStops.set(target.id, calledOff)
    const timeoutMs = graceSeconds * 1000
    const call = { hook, container, id: target.id, podIP: ownIP(pod), timeoutMs, signal: calledOff.signal }
    const { result, message } = await runHook(needs, call)
    if (calledOff.signal.aborted) return
    if (result !== 'success') tellHook(pod, container, 'PreStopHook', message)
    const leftSeconds = Math.max(leastGraceSeconds, Math.ceil((untilMs - clock.monotonicMs()) / 1000))
    await runtime.stopContainer(target.id, leftSeconds)
  }

  const stop = (uid: string, pod: Pod | undefined, step: PodStep & { step: 'stop' }) => {
    const { target, graceSeconds, why } = step
    const untilMs = clock.monotonicMs() + graceSeconds * 1000
    if (step.leaving) leavingUntilMs = Math.min(leavingUntilMs ?? untilMs, untilMs)
    const { containerName } = target.identity
    stopping.set(target.id, untilMs)
    if (step.replace) replacing.add(target.id)
    if (pod !== undefined && why !== '') {
      needs.event(pod, { type: 'Normal', reason: 'Killing', message: why, containerName })
    }
    if (containerName !== '') log.info('Container stopping', { podUID: uid, container: containerName, graceSeconds })
    const ended = (afterMs?: number) => {
      if (stopping.get(target.id) === untilMs) stopping.delete(target.id)
      needs.again(uid, afterMs)
    }
    endContainer(pod, step, untilMs).then(
      () => ended(),
      (error) => {
        log.warn('Container not stopped', { podUID: uid, container: containerName, error })
        ended(troubleMs / 10)
      },
    )
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

  const wantedImage = (pod: Pod, image: string) => ({
    image,
    credentials: credentialsFor(pod, image, needs.sources()).credentials,
  })

  const pull = (uid: string, pod: Pod, image: string, containerName: string) => {
    needs.event(pod, { type: 'Normal', reason: 'Pulling', message: `Pulling image "${image}"`, containerName })
    found.delete(image)
    for (const one of pod.spec.containers) if (one.image === image) toldWaiting.delete(one.name)
    const { credentials, missing } = credentialsFor(pod, image, needs.sources())
    if (missing.length > 0) {
      const message = `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`
      needs.event(pod, { type: 'Warning', reason: 'FailedToRetrieveImagePullSecret', message })
    }
    puller.pull(
      { image, credentials },
      {
        ended: () => needs.again(uid),
        goesOn: (progress) =>
          needs.event(pod, {
            type: 'Normal',
            reason: 'Pulling',
            message: pullingMessage(image, progress),
            containerName,
          }),
      },
    )
  }

  return {
    get memory() {
      return {
        backoffs,
        exits,
        troubles,
        sandboxRetryAtMs,
        sandboxTrouble,
        postStarts,
        leavingUntilMs,
        stopping,
        replacing,
        stuck,
        restartCounts,
      }
    },
    forgetImages() {
      found.clear()
    },
    images(pod) {
      const facts = containersOf(pod).flatMap(({ name, image = '' }): [string, ImageFacts][] => {
        const here = found.get(image)
        const pulled = puller.stateOf(wantedImage(pod, image), pullsAskedAtMs.get(image) ?? Number.POSITIVE_INFINITY)
        if (here === undefined) return []
        const unfit = here.unfit === undefined ? {} : { unfit: here.unfit }
        return [[name, { present: here.image !== undefined, ...unfit, pull: pulled }]]
      })
      return new Map(facts)
    },
    vitals(uid) {
      const vitals = new Map(needs.prober.vitals(uid))
      for (const id of postStarts) vitals.set(id, { started: false, ready: false })
      for (const id of failedPostStarts) {
        vitals.set(id, { started: false, ready: false, failed: { why: 'FailedPostStartHook' } })
      }
      return vitals
    },
    observe(containers) {
      const ids = new Set(containers.map(({ id }) => id))
      podIP = containers.find(({ identity, ip }) => identity.kind === 'sandbox' && ip !== undefined)?.ip
      for (const known of [preStops, failedPostStarts, replacing])
        for (const id of [...known.keys()]) if (!ids.has(id)) known.delete(id)
      for (const map of [exits, stuck, messages]) for (const id of [...map.keys()]) if (!ids.has(id)) map.delete(id)
      for (const container of containers) {
        if (!hasEnded(container) || exits.has(container.id)) continue
        const agoMs = clock.wallMs() - Date.parse(container.finishedAt ?? container.createdAt)
        // The date may have jumped since: it ended now at the latest.
        exits.set(container.id, clock.monotonicMs() - Math.max(0, Number.isNaN(agoMs) ? 0 : agoMs))
        // What it shall run next is to be pulled anew where the policy says so.
        pullsAskedAtMs.delete(container.image)
      }
    },
    messages,
    async readMessages(pod, containers) {
      for (const one of containers) {
        const container = containerNamed(pod, one.identity.containerName)
        if (container === undefined || messages.has(one.id) || isRunning(one) || one.state === 'created') continue
        messages.set(one.id, await messageOf(container, one))
      }
    },
    reported({ containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] }) {
      const all = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
      for (const { name, containerID, restartCount } of all) {
        if (containerID !== undefined) restartCounts.set(name, restartCount)
      }
    },
    stays() {
      leavingUntilMs = undefined
    },
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
      if (step.step === 'stop') return stop(uid, pod, step)
      if (step.step === 'remove') return await remove(uid, step.target)
      if (step.step === 'lookForImage') {
        const here = await runtime.findImage(step.image)
        const unfit = here && (await needs.platformProblem(step.image, here.platform))
        found.set(step.image, { image: here, unfit })
        return
      }
      if (pod === undefined) return
      switch (step.step) {
        case 'pullImage':
          pullsAskedAtMs.set(step.image, pullsAskedAtMs.get(step.image) ?? clock.monotonicMs())
          return pull(uid, pod, step.image, step.container.name)
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

export function isUnreachable(error: unknown): boolean {
  return error instanceof RuntimeError && error.reason === 'Unreachable'
}

/** Without which container it was: that its event says, and events with the same words are counted together. */
function reasonOf(error: unknown): string {
  return storyOf(error instanceof RuntimeError && error.cause !== undefined ? error.cause : error)
}
