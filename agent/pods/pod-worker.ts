/** Carries out one pod's plan, step by step, and keeps what is known of it between two plans. */
import type { Pod } from '../../api/pod.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { sandboxOptions } from './container-options.ts'
import { containerStart, type OptionSources } from './container-start.ts'
import { containerStop } from './container-stop.ts'
import { pathOf } from './desired-pods.ts'
import type { DeviceAllocator } from './devices.ts'
import type { ImagePuller } from './image-puller.ts'
import type { ImageFacts } from './images.ts'
import { messageReader } from './message-reader.ts'
import type { Platform } from './platforms.ts'
import { asksForHostResolver, type Resolver } from './pod-dns.ts'
import type { PodNews } from './pod-events.ts'
import { podImages } from './pod-images.ts'
import { onNotRemoved, onRemoved, onSandboxFailed, onSandboxStarted, type PodRecord } from './pod-record.ts'
import type { PodRecords } from './pod-records.ts'
import type { PodPlan, PodStep, StepName, StepOf, Vital, Vitals } from './pod-steps.ts'
import type { Prober } from './probes/prober.ts'
import type { NetworkProbes } from './probes/targets.ts'
import { type ContainerRuntime, isUnreachable, type RuntimeContainer } from './runtime.ts'
import { toldWaiting } from './told-waiting.ts'
import { refreshFiles } from './volumes/container-mounts.ts'
import type { VolumeStore } from './volumes/volume-store.ts'

export type PodWorkerNeeds = {
  readonly records: PodRecords
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
  readonly sources: () => OptionSources
}

/** One pod's steps and memory, from when it is first seen until nothing of it is left. */
export interface PodWorker {
  /** Drops what was found out about images: the next look starts anew. */
  forgetImages(): void
  /** Of those looked for and still true. */
  images(pod: Pod): ReadonlyMap<string, ImageFacts>
  /** What probes and hooks say now. */
  vitals(uid: string): Vitals
  /** Before a plan is made. `ended`: since the last observation. */
  observe(containers: readonly RuntimeContainer[], ended: readonly RuntimeContainer[]): void
  /** What containers left to be read, by id. */
  readonly messages: ReadonlyMap<string, string>
  /** Reads it of those that ended since. */
  readMessages(pod: Pod, containers: readonly RuntimeContainer[]): Promise<void>
  /** Brings the files of its volumes to what the pod's ConfigMaps and Secrets say now. */
  refreshVolumes(pod: Pod): Promise<void>
  /** Tells what containers newly wait for. */
  tellWaiting(pod: Pod, plan: PodPlan): void
  execute(uid: string, pod: Pod | undefined, step: PodStep): Promise<void>
}

export interface PodWorkers {
  of(uid: string): PodWorker
  delete(uid: string): void
}

/** One worker for each pod. */
export function podWorkers(needs: PodWorkerNeeds): PodWorkers {
  const workers = new Map<string, PodWorker>()
  return {
    of(uid) {
      const worker = workers.get(uid) ?? podWorker(needs)
      workers.set(uid, worker)
      return worker
    },
    delete: (uid) => void workers.delete(uid),
  }
}

function podWorker(needs: PodWorkerNeeds): PodWorker {
  const { records, runtime, clock, log } = needs
  const told = toldWaiting(needs.event)
  const images = podImages(needs)
  const hostIP = () => needs.sources().hostIP
  const stopContainer = containerStop({ ...needs, hostIP })
  const lastWords = messageReader(needs)
  const startContainer = containerStart({ ...needs, images, hostIP, lastWords, told })
  /** The pod and the data that its files were made of. */
  let refreshed: readonly unknown[] = []

  const runSandbox = async (uid: string, pod: Pod, step: StepOf<'runSandbox'>) => {
    if (step.lost && records.get(uid)?.sandboxFailures === 0) {
      needs.event(pod, { type: 'Normal', reason: 'SandboxChanged', message: sandboxChanged })
    }
    try {
      const resolver = asksForHostResolver(pod.spec) ? await needs.hostResolver() : undefined
      await runtime.runSandbox(sandboxOptions(pod, step.attempt, { resolver, podCIDR: needs.sources().podCIDR }))
      records.update(uid, onSandboxStarted)
    } catch (error) {
      if (isUnreachable(error)) throw error
      const message = `Failed to create pod sandbox: ${storyOf(error)}`
      const nowMs = clock.monotonicMs()
      const failed = records.update(uid, (record) => onSandboxFailed(record, message, nowMs))
      const retryInMs = (failed?.sandboxRetryAtMs ?? nowMs) - nowMs
      needs.event(pod, { type: 'Warning', reason: 'FailedCreatePodSandBox', message })
      log.warn('Sandbox not started', { pod: pathOf(pod), retryInMs, error })
    }
  }

  const remove = async (uid: string, { id, identity }: RuntimeContainer) => {
    try {
      await runtime.removeContainer(id)
      records.update(uid, (record) => onRemoved(record, id))
    } catch (error) {
      if (isUnreachable(error)) throw error
      records.update(uid, (record) => onNotRemoved(record, id, clock.monotonicMs()))
      log.warn('Container not removed', { podUID: uid, container: identity.containerName, id: id.slice(0, 12), error })
    }
  }

  const executors: Executors = {
    lookForImage: (_uid, _pod, { image }) => images.lookFor(image),
    pullImage: ofDesired(async (_uid, pod, { image, container }) => {
      for (const one of pod.spec.containers) if (one.image === image) told.forget(one.name)
      images.pull(pod, image, container.name)
    }),
    runSandbox: ofDesired(runSandbox),
    startContainer: ofDesired(startContainer),
    stop: async (uid, pod, step) => stopContainer(uid, pod, step),
    remove: (uid, _pod, { target }) => remove(uid, target),
  }

  return {
    forgetImages: images.forget,
    images: images.factsOf,
    vitals: (uid) => new Map([...needs.prober.vitals(uid), ...hookVitals(records.get(uid))]),
    observe(containers, ended) {
      lastWords.present(new Set(containers.map(({ id }) => id)))
      for (const { image } of ended) images.ended(image)
    },
    messages: lastWords.messages,
    readMessages: lastWords.read,
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
    tellWaiting: told.tell,
    async execute(uid, pod, step) {
      await executeStep(executors, uid, pod, step)
    },
  }
}

/** Carries out one step. `pod`: undefined when its specification is not known. */
type Executor<S extends StepName> = (uid: string, pod: Pod | undefined, step: StepOf<S>) => Promise<void>
/** Total: a step without an executor does not compile. */
type Executors = { readonly [S in StepName]: Executor<S> }

function executeStep<S extends StepName>(
  executors: { readonly [Name in S]: Executor<Name> },
  uid: string,
  pod: Pod | undefined,
  step: StepOf<S>,
): Promise<void> {
  const executor: Executor<S> = executors[step.step]
  return executor(uid, pod, step)
}

/** A step that needs the specification of its pod. */
function ofDesired<S extends StepName>(
  execute: (uid: string, pod: Pod, step: StepOf<S>) => Promise<void>,
): Executor<S> {
  return async (uid, pod, step) => (pod === undefined ? undefined : await execute(uid, pod, step))
}

/** Containers whose postStart hook is running or has failed. */
function hookVitals(record: PodRecord | undefined): Vitals {
  const vitals = new Map<string, Vital>()
  for (const id of record?.postStarts ?? []) vitals.set(id, { started: false, ready: false })
  for (const id of record?.failedPostStarts ?? []) {
    vitals.set(id, { started: false, ready: false, failed: { why: 'FailedPostStartHook' } })
  }
  return vitals
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index])
}

const sandboxChanged = 'Pod sandbox changed, it will be killed and re-created.'
