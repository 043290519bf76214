/**
 * The loop that makes the machine run what is wanted of it. Woken by news of what is wanted, by the engine's events and
 * by time; each pod is visited by itself, a few at once, and nothing slow is waited for in a visit.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Pod, PodStatus } from '../../api/pod.ts'
import type { DesiredMessage } from '../../api/topics.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import type { ControlPlane, ControlPlaneListener } from '../node/control-plane.ts'
import { type Allocatable, admit } from './admission.ts'
import { changedPods, isNews, podsByUID } from './desired-pods.ts'
import { engineWatch } from './engine-watch.ts'
import { type ImagePuller, imagePuller } from './image-puller.ts'
import type { ImageFacts } from './images.ts'
import { type PodNews, podEvent } from './pod-events.ts'
import { type PodPlan, planEnding, planPod, planRemoval } from './pod-plan.ts'
import { endedStatus, isFinal, podStatus, refusedStatus } from './pod-status.ts'
import { isUnreachable, type PodWorker, pathOf, podWorker } from './pod-worker.ts'
import { keeper, type PodCheckpoint, type Remembered } from './remembered.ts'
import type { ContainerRuntime, RuntimeContainer } from './runtime.ts'

export type PodManagerNeeds = {
  readonly runtime: ContainerRuntime
  readonly controlPlane: Pick<ControlPlane, 'reportPod' | 'reportPodGone' | 'reportEvent'>
  readonly checkpoint: PodCheckpoint
  /** This machine, as it is now. */
  readonly node: {
    hostIP(): string | undefined
    allocatable(): Allocatable
    memoryCapacityBytes(): number
  }
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export type PodManagerSettings = {
  readonly nodeName: string
  /** How often everything is looked at without being told. */
  readonly resyncMs: number
  /** Visits at once, and pulls at once. */
  readonly parallelPods: number
  readonly parallelPulls: number
}

/** The kubelet's minute; the rest for a small machine. */
export const defaultPodManagerSettings: Omit<PodManagerSettings, 'nodeName'> = {
  resyncMs: 60_000,
  parallelPods: 4,
  parallelPulls: 2,
}

/** A decision that a pod is over: an eviction, a shutdown. */
export type Ending = {
  readonly reason: string
  readonly message: string
  /** In place of the pod's own. */
  readonly gracePeriodSeconds?: number
}

export interface PodManager extends Loop, ControlPlaneListener {
  /** The pods wanted here, with the status last found. */
  pods(): readonly Pod[]
  /** Stops the pod for good: Failed, with this reason. Nothing happens when it is not here. */
  endPod(uid: string, ending: Ending): void
}

/** What is known of a pod between two visits. */
type Known = {
  readonly worker: PodWorker
  /** As last wanted. */
  readonly pod?: Pod
  /** What the last look found. */
  readonly seen: string
  readonly status?: PodStatus
  readonly reported?: string
  readonly admitted: boolean
  /** Set once the pod is over. */
  readonly ended?: PodStatus
  readonly graceSeconds?: number
}

/** A pod that does not settle is left alone this long. */
const unsettledMs = 30_000
const lastVisitsMs = 2_000
/** A plan is followed this many rounds in one visit: more than any pod needs. */
const maxRounds = 12

export function podManager(needs: PodManagerNeeds, settings: PodManagerSettings): PodManager {
  const { runtime, controlPlane, checkpoint, clock, random, log } = needs
  const queue = workQueue(clock, random)
  const known = new Map<string, Known>()
  const goneTold = new Set<string>()
  let desired: DesiredMessage | undefined
  let wanted: ReadonlyMap<string, Pod> = new Map()
  let early: DesiredMessage | undefined
  let loaded = false
  let puller: ImagePuller | undefined
  let events = 0
  /** Until everything was looked at once, nobody knows what is here already: nothing is decided. */
  let surveyed = false

  const event = (pod: Pod, news: PodNews) => {
    controlPlane.reportEvent(podEvent(pod, news, settings.nodeName, clock.wallMs(), events++))
  }

  const newWorker = (images: ImagePuller) =>
    podWorker({
      runtime,
      puller: images,
      clock,
      log,
      event,
      again: (uid, afterMs = 0) => queue.addAfter(uid, afterMs),
      sources: () => ({
        hostIP: needs.node.hostIP(),
        memoryCapacityBytes: needs.node.memoryCapacityBytes(),
        configMaps: desired?.configMaps ?? [],
        secrets: desired?.secrets ?? [],
      }),
    })

  const knownOf = (uid: string): Known | undefined => {
    const found = known.get(uid)
    if (found !== undefined || puller === undefined) return found
    return { worker: newWorker(puller), seen: '', admitted: false }
  }

  const change = (uid: string, changes: Partial<Known>) => {
    const now = knownOf(uid)
    if (now !== undefined) known.set(uid, { ...now, ...changes })
  }

  const keeping = keeper(needs, () => (desired === undefined ? undefined : { desired, endings: endingsOf(known) }))

  const take = (message: DesiredMessage) => {
    if (!isNews(desired, message))
      return log.debug('Old news ignored', { epoch: message.epoch, version: message.version })
    const changed = changedPods(desired, message)
    // Until now nobody knew what to do with what is here.
    if (desired === undefined) engine.wake()
    desired = message
    wanted = podsByUID(message)
    for (const uid of changed) known.get(uid)?.worker.forgetTroubles()
    const leaving = [...wanted].filter(([, pod]) => isLeaving(pod)).map(([uid]) => uid)
    // Whoever still names a pod that is gone has not heard of it.
    for (const uid of leaving) goneTold.delete(uid)
    if (surveyed) admitNew()
    visit([...changed, ...leaving])
    keeping.wake()
  }

  const visit = (uids: readonly string[]) => {
    for (const uid of oldestFirst([...new Set(uids)])) queue.add(uid)
  }

  /** Where not all fit, the older ones have the older right. */
  const oldestFirst = (uids: readonly string[]) => {
    const born = (uid: string) => wanted.get(uid)?.metadata.creationTimestamp ?? ''
    return [...uids].sort((a, b) => born(a).localeCompare(born(b)))
  }

  const end = (uid: string, status: PodStatus) => {
    change(uid, { ended: status })
    keeping.wake()
  }

  const report = (uid: string, pod: Pod, status: PodStatus) => {
    const { name = '', namespace = 'default', resourceVersion = '' } = pod.metadata
    const message = { namespace, name, uid, observedResourceVersion: resourceVersion, status }
    const text = JSON.stringify(message)
    const before = known.get(uid)
    if (before?.reported === text) return
    if (before?.status?.phase !== status.phase) {
      log.info('Pod changed', {
        pod: pathOf(pod),
        phase: status.phase,
        ...(status.reason ? { reason: status.reason } : {}),
      })
    }
    before?.worker.reported(status)
    change(uid, { status, reported: text })
    controlPlane.reportPod(message)
  }

  const gone = (uid: string, { pod, reported }: Known) => {
    const news = known.delete(uid)
    if (!news && (!wanted.has(uid) || goneTold.has(uid))) return
    goneTold.add(uid)
    controlPlane.reportPodGone(uid)
    if (news && pod !== undefined) log.info('Pod gone', { pod: pathOf(pod) })
    if (reported !== undefined) keeping.wake()
  }

  /** Who comes new is let in, the oldest first, or refused: over before it began. */
  const admitNew = () => {
    for (const uid of oldestFirst([...wanted.keys()])) {
      const pod = wanted.get(uid)
      const here = knownOf(uid)
      if (pod === undefined || here === undefined || here.admitted || isLeaving(pod) || isOver(pod, here)) continue
      const others = [...known]
        .filter(([other, { admitted, ended }]) => other !== uid && admitted && ended === undefined)
        .flatMap(([other, { pod: last }]) => wanted.get(other) ?? last ?? [])
      const answer = admit(pod, others, needs.node.allocatable())
      if (answer.admit) change(uid, { admitted: true })
      else refuse(uid, pod, answer)
    }
  }

  const refuse = (
    uid: string,
    pod: Pod,
    { reason, message }: { readonly reason: string; readonly message: string },
  ) => {
    event(pod, { type: 'Warning', reason, message })
    const status = refusedStatus(pod, { reason, message }, clock.wallMs())
    report(uid, pod, status)
    end(uid, status)
  }

  const planFor = (pod: Pod | undefined, here: Known, containers: readonly RuntimeContainer[]): PodPlan => {
    const { worker } = here
    const images = pod === undefined ? new Map<string, ImageFacts>() : worker.images(pod)
    const facts = { containers, images, memory: worker.memory, nowMs: clock.monotonicMs() }
    if (pod === undefined) return planRemoval(here.pod, facts)
    if (isLeaving(pod)) return planRemoval(pod, facts)
    if (isOver(pod, here)) return planEnding(pod, facts, here.graceSeconds)
    return planPod(pod, facts)
  }

  const tellStatus = (uid: string, pod: Pod, here: Known, containers: readonly RuntimeContainer[], plan: PodPlan) => {
    const over = isOver(pod, here)
    const last = here.ended ?? here.status ?? (over ? pod.status : undefined)
    if (over && containers.length === 0) {
      if (here.ended !== undefined) report(uid, pod, here.ended)
      return
    }
    const { waiting } = plan
    const found = podStatus(pod, { containers, waiting, last, hostIP: needs.node.hostIP(), nowWallMs: clock.wallMs() })
    const status = over ? endedStatus(found, last ?? {}) : found
    report(uid, pod, status)
    if (isFinal(status.phase) && !isDeepStrictEqual(status, here.ended)) end(uid, status)
  }

  /** Looks, plans, acts, and looks again until the plan is empty. Gives when time will change it. */
  const reconcile = async (uid: string, signal: AbortSignal): Promise<number | undefined> => {
    if (desired === undefined || !surveyed) return undefined
    knownOf(uid)?.worker.forgetImages()
    for (let round = 0; round < maxRounds && !signal.aborted; round++) {
      const containers = await runtime.listContainers(uid)
      const pod = wanted.get(uid)
      const here = knownOf(uid)
      if (here === undefined) return undefined
      here.worker.observe(containers)
      const leaving = pod === undefined || isLeaving(pod)
      if (leaving && containers.length === 0) {
        gone(uid, { ...here, ...(pod === undefined ? {} : { pod }) })
        return undefined
      }
      change(uid, { seen: fingerprint(containers), ...(pod === undefined ? {} : { pod }) })
      const plan = planFor(pod, here, containers)
      if (pod !== undefined) {
        here.worker.tellWaiting(pod, plan)
        tellStatus(uid, pod, known.get(uid) ?? here, containers, plan)
      }
      if (plan.steps.length === 0) return plan.againInMs
      for (const step of plan.steps) {
        if (!signal.aborted) await here.worker.execute(uid, pod ?? here.pod, step)
      }
    }
    if (!signal.aborted) log.warn('Pod does not settle', { podUID: uid, rounds: maxRounds })
    return unsettledMs
  }

  const visitOne = async (uid: string, signal: AbortSignal) => {
    try {
      queue.done(uid, await reconcile(uid, signal))
    } catch (error) {
      const retryInMs = queue.failed(uid)
      // That the engine is away is told once, by who watches it.
      if (isUnreachable(error)) log.debug('Pod not visited', { podUID: uid, retryInMs, error })
      else log.warn('Pod not brought to its state', { podUID: uid, retryInMs, error })
    }
  }

  const work = async (signal: AbortSignal) => {
    const visits = new Set<Promise<void>>()
    for await (const uid of queue.keys(signal)) {
      const one: Promise<void> = visitOne(uid, signal).finally(() => visits.delete(one))
      visits.add(one)
      if (visits.size >= settings.parallelPods) await Promise.race(visits)
    }
    // The engine may take long over a call; the next agent takes up whatever is half done.
    await Promise.race([Promise.all(visits), clock.sleep(lastVisitsMs)])
  }

  /** Everything of ours at one look: what differs from what was last seen is visited. */
  const survey = async () => {
    const byPod = new Map<string, RuntimeContainer[]>()
    for (const container of await runtime.listContainers()) {
      const { podUID } = container.identity
      byPod.set(podUID, [...(byPod.get(podUID) ?? []), container])
    }
    if (!surveyed) for (const uid of byPod.keys()) change(uid, { admitted: true })
    const uids = [...new Set([...byPod.keys(), ...wanted.keys(), ...known.keys()])]
    const differs = (uid: string) => known.get(uid)?.seen !== fingerprint(byPod.get(uid) ?? [])
    goneTold.clear()
    const first = !surveyed
    surveyed = true
    if (first) admitNew()
    visit(first ? uids : uids.filter(differs))
  }

  const engine = engineWatch(
    { runtime, clock, random, log, resyncMs: settings.resyncMs },
    {
      survey,
      changed: (podUID) => queue.add(podUID),
      // What failed while it was away need not wait any longer.
      opened: () => visit([...wanted.keys(), ...known.keys()]),
    },
  )

  const load = async () => {
    const remembered = await checkpoint.load()
    loaded = true
    if (remembered !== undefined) {
      desired = remembered.desired
      wanted = podsByUID(remembered.desired)
      for (const [uid, status] of Object.entries(remembered.endings)) change(uid, { ended: status, status })
      log.info('Wanted pods known from before', { pods: wanted.size })
    }
    if (early !== undefined) take(early)
  }

  return {
    name: 'pods',
    async run(signal) {
      puller = imagePuller({ runtime, clock, log }, settings.parallelPulls, signal)
      await load()
      await Promise.all([work(signal), engine.run(signal), keeping.run(signal)])
    },
    desired(message) {
      if (loaded) take(message)
      else if (isNews(early, message)) early = message
    },
    pods: () =>
      [...wanted].map(([uid, pod]) => {
        const status = known.get(uid)?.status ?? pod.status
        return status === undefined ? pod : { ...pod, status }
      }),
    endPod(uid, { reason, message, gracePeriodSeconds }) {
      const pod = wanted.get(uid)
      const here = knownOf(uid)
      if (pod === undefined || here === undefined || isOver(pod, here)) return
      if (gracePeriodSeconds !== undefined) change(uid, { graceSeconds: gracePeriodSeconds })
      end(uid, { ...here.status, phase: 'Failed', reason, message })
      queue.add(uid)
    },
  }
}

function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

function isOver(pod: Pod, { ended }: Known): boolean {
  return ended !== undefined || isFinal(pod.status?.phase)
}

/** Equal as long as nothing happened to the containers. */
function fingerprint(containers: readonly RuntimeContainer[]): string {
  return containers
    .map(({ id, state, startedAt }) => `${id} ${state} ${startedAt}`)
    .sort()
    .join('\n')
}

function endingsOf(known: ReadonlyMap<string, Known>): Remembered['endings'] {
  return Object.fromEntries([...known].flatMap(([uid, { ended }]) => (ended === undefined ? [] : [[uid, ended]])))
}
