/**
 * The loop that makes the machine run what is wanted of it. Woken by news of what is wanted, by the engine's events and
 * by time; each pod is visited by itself, a few at once, and nothing slow is waited for in a visit.
 */
import type { PressureType } from '../../api/node.ts'
import { comesBack, shutdownRefusal } from '../../api/node-shutdown.ts'
import type { Pod } from '../../api/pod.ts'
import type { DesiredMessage } from '../../api/topics.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import type { Ending, EvictablePods } from '../eviction/evictable-pods.ts'
import type { ControlPlane, ControlPlaneListener } from '../node/control-plane.ts'
import { type Allocatable, admit } from './admission.ts'
import { type DateSource, dateOf } from './date-source.ts'
import type { PodNeed } from './dead-containers.ts'
import { changedPods, isNews, mirrorsIn, pathOf, wantedHere } from './desired-pods.ts'
import { deviceAllocator, type MachineDevices } from './devices.ts'
import { engineWatch } from './engine-watch.ts'
import { type ImagePullerSettings, imagePuller } from './image-puller.ts'
import { appArmorRefusal } from './kernel-limits.ts'
import { mirrorReports } from './mirror-reports.ts'
import type { Platform } from './platforms.ts'
import type { Resolver } from './pod-dns.ts'
import { type PodNews, podEvent } from './pod-events.ts'
import { isEnd, isLeaving, isOver, podLedger } from './pod-ledger.ts'
import { refusedStatus, withDisruption } from './pod-status.ts'
import { fingerprint, visitPod } from './pod-visit.ts'
import { podWorker } from './pod-worker.ts'
import { prober } from './probes/prober.ts'
import type { NetworkProbes } from './probes/targets.ts'
import { keeper, type PodCheckpoint } from './remembered.ts'
import { type ContainerRuntime, isUnreachable, type KernelLimits, type RuntimeContainer } from './runtime.ts'
import type { StartGate } from './start-gate.ts'
import type { VolumeStore } from './volumes/volume-store.ts'

export type PodManagerNeeds = {
  readonly runtime: ContainerRuntime
  readonly volumes: VolumeStore
  readonly hostResolver: () => Promise<Resolver>
  /** Declared in the configuration, as they are plugged in now. */
  readonly devices: () => Promise<MachineDevices>
  readonly controlPlane: Pick<ControlPlane, 'reportPod' | 'reportPodGone' | 'reportEvent'>
  readonly checkpoint: PodCheckpoint
  readonly network: NetworkProbes
  /** Left out: the clock is right. */
  readonly date?: DateSource
  /** Left out: every pod may start. */
  readonly gate?: StartGate
  /** Why an image of this platform does not run here. */
  readonly platformProblem: (image: string, platform: Platform) => Promise<string | undefined>
  /** This machine, as it is now. */
  readonly node: {
    hostIP(): string | undefined
    allocatable(): Allocatable
    memoryCapacityBytes(): number
    /** What it is short of. */
    pressures(): readonly PressureType[]
    /** It takes no new pods. */
    isShuttingDown(): boolean
    /** What its kernel can hold containers to; undefined until the engine said so. */
    kernelLimits(): KernelLimits | undefined
  }
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export type PodManagerSettings = {
  readonly nodeName: string
  /** How often everything is looked at without being told. */
  readonly resyncMs: number
  /** Visits at once. */
  readonly parallelPods: number
  readonly pulls: ImagePullerSettings
  /** Processes and threads of one container; 0: no limit. */
  readonly podPidsLimit: number
  /** Of each container of a pod, beside the newest. */
  readonly keptDead: number
}

/** The kubelet's minute; the rest for a small machine. */
export const defaultPodManagerSettings: Omit<PodManagerSettings, 'nodeName'> = {
  resyncMs: 60_000,
  parallelPods: 4,
  pulls: { parallel: 2, stallMs: 60_000 },
  podPidsLimit: 0,
  keptDead: 1,
}

export interface PodManager extends Loop, ControlPlaneListener, EvictablePods {
  /** What was last wanted here, in this life or the one before; undefined: nothing was. */
  remembered(): Promise<DesiredMessage | undefined>
  /** The pods wanted here, with the status last found. */
  pods(): readonly Pod[]
  /** What this machine runs of its own accord; undefined while that is not known: then nothing unknown is removed. */
  staticPods(pods: readonly Pod[] | undefined): void
  /** Is something of this pod on the machine, or about to be? */
  isHere(uid: string): boolean
  /** The shutdown is called off: what it ended, or refused, is to run again. */
  goOn(): void
  /** Whether what has ended of a pod may be removed. */
  needOf(uid: string): PodNeed
}

const nothing: readonly never[] = []
const unknownPod = { spec: { containers: nothing } }
/** As the kubelet makes room for a pod the machine needs. */
const preempted: Ending = {
  reason: 'Preempting',
  message: 'Preempted in order to admit critical pod',
  event: 'Warning',
  disruption: 'Pod was preempted by Kubelet to accommodate a critical pod.',
}
const openGate: StartGate = { hold: () => undefined, starting: async () => undefined }
/** The engine may take long over a call; the next agent takes up whatever is half done. */
const lastVisitsMs = 2_000

export function podManager(needs: PodManagerNeeds, settings: PodManagerSettings): PodManager {
  const { runtime, controlPlane, checkpoint, clock, random, log } = needs
  const date = needs.date ?? dateOf(clock)
  const queue = workQueue(clock, random)
  const devices = deviceAllocator({ runtime, devices: needs.devices })
  const puller = imagePuller({ runtime, clock, log }, settings.pulls)
  let desired: DesiredMessage | undefined
  let own: readonly Pod[] | undefined = nothing
  const ownUIDs = new Set<string>()
  let wanted: ReadonlyMap<string, Pod> = new Map()
  /** What came before the checkpoint was read. */
  let early: DesiredMessage | undefined
  let loaded = false
  let haveLoaded: () => void = () => undefined
  const loading = new Promise<void>((resolve) => {
    haveLoaded = resolve
  })
  /** Until everything was looked at once, nobody knows what is here already: nothing is decided. */
  let surveyed = false
  let events = 0
  const reports = mirrorReports(controlPlane)

  const event = (pod: Pod, news: PodNews) => {
    reports.reportEvent(podEvent(pod, news, settings.nodeName, clock.wallMs(), events++))
  }
  const sources = () => ({
    hostIP: needs.node.hostIP(),
    memoryCapacityBytes: needs.node.memoryCapacityBytes(),
    allocatable: needs.node.allocatable(),
    kernelLimits: needs.node.kernelLimits(),
    podPidsLimit: settings.podPidsLimit,
    podCIDR: desired?.podCIDR,
    configMaps: desired?.configMaps ?? nothing,
    secrets: desired?.secrets ?? nothing,
  })
  const again = (uid: string, afterMs = 0) => queue.addAfter(uid, afterMs)
  const probes = prober({ ...needs, date, event, changed: (uid) => again(uid) })
  const newWorker = () =>
    podWorker({
      runtime,
      volumes: needs.volumes,
      hostResolver: needs.hostResolver,
      devices,
      puller,
      platformProblem: needs.platformProblem,
      prober: probes,
      network: needs.network,
      clock,
      log,
      event,
      again,
      sources,
    })
  const ledger = podLedger({ controlPlane: reports, newWorker, log })
  const keeping = keeper(needs, () => (desired === undefined ? undefined : { desired, endings: endings() }))

  /**
   * A static pod that was refused is judged again by the next agent, as the kubelet does: nobody else can replace it. So is
   * who was refused because the machine went down.
   */
  const endings = () =>
    Object.fromEntries(
      Object.entries(ledger.endings()).filter(
        ([uid, { containerStatuses, reason }]) =>
          reason !== shutdownRefusal.reason && (containerStatuses || !ownUIDs.has(uid)),
      ),
    )

  const take = (message: DesiredMessage) => {
    if (!isNews(desired, message)) {
      log.debug('Old news ignored', { epoch: message.epoch, version: message.version })
      return
    }
    const changed = changedPods(desired, message)
    // Until now nobody knew what to do with what is here.
    if (desired === undefined) engine.wake()
    desired = message
    reports.mirrors(mirrorsIn(message))
    const before = wanted
    wanted = wantedHere(desired, own ?? nothing, ledger.paths())
    const ownChanged = [...ownUIDs].filter((uid) => before.get(uid) !== wanted.get(uid))
    const leaving = [...wanted].filter(([, pod]) => isLeaving(pod)).map(([uid]) => uid)
    ledger.forgetGone(leaving)
    for (const uid of changed) ledger.get(uid)?.worker.forgetTroubles()
    if (surveyed) admitNew()
    visit([...changed, ...leaving, ...ownChanged])
    keeping.wake()
  }

  const takeOwn = (pods: readonly Pod[] | undefined) => {
    // Until now nobody knew what to do with what is here.
    if (own === undefined) engine.wake()
    own = pods
    for (const { metadata } of own ?? nothing) {
      ownUIDs.add(metadata.uid ?? '')
      reports.own(metadata.uid ?? '')
    }
    takeTurns()
  }

  /** What static pods waited for may be gone. */
  const takeTurns = () => {
    const before = wanted
    wanted = wantedHere(desired, own ?? nothing, ledger.paths())
    if (surveyed) admitNew()
    visit([...before.keys(), ...wanted.keys()].filter((uid) => before.get(uid) !== wanted.get(uid) && ownUIDs.has(uid)))
  }

  /** What nobody wants is removed only once all who may want it were heard. */
  const mayVisit = (uid: string) => {
    if (!surveyed) return false
    if (wanted.has(uid) || ownUIDs.has(uid) || (desired !== undefined && own !== undefined)) return true
    const path = ledger.paths().get(uid)
    return (own ?? nothing).some((pod) => pathOf(pod) === path)
  }

  const visit = (uids: Iterable<string>) => {
    for (const uid of oldestFirst(uids)) queue.add(uid)
  }

  /** Where not all fit, the older ones have the older right. */
  const oldestFirst = (uids: Iterable<string>) => {
    const born = (uid: string) => wanted.get(uid)?.metadata.creationTimestamp ?? ''
    return [...new Set(uids)].sort((a, b) => born(a).localeCompare(born(b)))
  }

  /** Who comes new is let in, or refused: over before it began. */
  const admitNew = () => {
    for (const uid of oldestFirst(wanted.keys())) {
      const pod = wanted.get(uid)
      const known = ledger.of(uid)
      if (pod === undefined || known.admitted || isLeaving(pod) || isOver(pod, known)) continue
      const others = [...ledger.entries]
        .filter(([, other]) => other.admitted && other.ended === undefined)
        .flatMap(([other, { pod: last }]) => wanted.get(other) ?? last ?? [])
      const unguarded = appArmorRefusal(pod, needs.node.kernelLimits())
      if (unguarded !== undefined) {
        refuse(uid, pod, unguarded)
        continue
      }
      const answer = admit(pod, others, needs.node.allocatable(), needs.node.pressures(), needs.node.isShuttingDown())
      if (!answer.admit) {
        refuse(uid, pod, answer)
        continue
      }
      ledger.change(uid, { admitted: true })
      for (const other of answer.preempt ?? []) endPod(other.metadata.uid ?? '', preempted)
    }
  }

  const endPod: PodManager['endPod'] = (uid, ending) => {
    const pod = wanted.get(uid)
    if (pod === undefined) return
    const known = ledger.of(uid)
    if (isOver(pod, known)) return
    const { reason, message, gracePeriodSeconds, event: type } = ending
    if (type !== undefined) event(pod, { type, reason, message })
    const conditions = withDisruption(known.status?.conditions ?? [], ending.disruption, clock.wallMs())
    const ended = { ...known.status, phase: 'Failed', reason, message, conditions } as const
    ledger.change(uid, { ended, ...(gracePeriodSeconds === undefined ? {} : { graceSeconds: gracePeriodSeconds }) })
    keeping.wake()
    queue.add(uid)
  }

  const goOn = () => {
    for (const [uid, { ended, pod: last }] of ledger.entries) {
      const pod = wanted.get(uid) ?? last
      if (pod !== undefined && ended !== undefined && comesBack(pod, ended)) ledger.goesOn(uid, ended)
    }
    if (surveyed) admitNew()
    keeping.wake()
    visit([...wanted.keys(), ...ledger.entries.keys()])
  }

  const refuse = (
    uid: string,
    pod: Pod,
    { reason, message }: { readonly reason: string; readonly message: string },
  ) => {
    event(pod, { type: 'Warning', reason, message })
    const status = refusedStatus(pod, { reason, message }, clock.wallMs())
    ledger.report(uid, pod, status)
    ledger.change(uid, { ended: status })
    keeping.wake()
  }

  const visitOne = async (uid: string, signal: AbortSignal) => {
    const visitNeeds = {
      runtime,
      volumes: needs.volumes,
      ledger,
      event,
      prober: probes,
      clock,
      log,
      hostIP: needs.node.hostIP,
      gate: needs.gate ?? openGate,
      date,
      keptDead: settings.keptDead,
      ended() {
        keeping.wake()
        if ((own ?? nothing).some(({ metadata }) => !wanted.has(metadata.uid ?? ''))) takeTurns()
      },
    }
    try {
      const dueInMs = mayVisit(uid)
        ? await visitPod(uid, { ...visitNeeds, wanted: (one) => wanted.get(one) }, signal)
        : undefined
      queue.done(uid, dueInMs)
    } catch (error) {
      const retryInMs = queue.failed(uid)
      // That the engine is away is told once, by who asks it how it is.
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
    await Promise.race([Promise.all(visits), clock.sleep(lastVisitsMs)])
  }

  /** Everything of ours at one look: what differs from what was last seen is visited. */
  const survey = async () => {
    const byPod = new Map<string, RuntimeContainer[]>()
    for (const container of await runtime.listContainers()) {
      const { podUID } = container.identity
      byPod.set(podUID, [...(byPod.get(podUID) ?? []), container])
    }
    const uids = [...byPod.keys(), ...wanted.keys(), ...ledger.entries.keys()]
    const differs = (uid: string) => ledger.get(uid)?.seen !== fingerprint(byPod.get(uid) ?? [])
    ledger.forgetGone()
    if (surveyed) return visit(uids.filter(differs))
    surveyed = true
    for (const [uid, [first]] of byPod) {
      const { podNamespace, podName } = first?.identity ?? {}
      ledger.change(uid, { admitted: true, path: `${podNamespace}/${podName}` })
    }
    wanted = wantedHere(desired, own ?? nothing, ledger.paths())
    await forgetVolumes(new Set(uids))
    admitNew()
    visit(uids)
  }

  /** Of pods that went while no agent was there. */
  const forgetVolumes = async (known: ReadonlySet<string>) => {
    for (const uid of await needs.volumes.podUIDs()) {
      if (known.has(uid)) continue
      await needs.volumes.remove(uid).catch((error) => log.warn('Volumes not removed', { podUID: uid, error }))
    }
  }

  const engine = engineWatch(
    { runtime, clock, random, log, resyncMs: settings.resyncMs },
    {
      survey,
      changed: (podUID) => queue.add(podUID),
      // What failed while it was away need not wait any longer.
      opened: () => visit([...wanted.keys(), ...ledger.entries.keys()]),
    },
  )

  const load = async () => {
    const remembered = await checkpoint.load()
    loaded = true
    const foreign = remembered?.desired.pods.find(
      ({ spec }) => (spec.nodeName ?? settings.nodeName) !== settings.nodeName,
    )
    if (foreign !== undefined) {
      log.warn('Wanted pods of another node not taken over', { node: foreign.spec.nodeName })
    } else if (remembered !== undefined) {
      desired = remembered.desired
      reports.mirrors(mirrorsIn(desired))
      wanted = wantedHere(desired, own ?? nothing, ledger.paths())
      for (const [uid, status] of Object.entries(remembered.endings)) {
        const pod = wanted.get(uid) ?? own?.find(({ metadata }) => metadata.uid === uid)
        // The machine went down in the life of another agent, and is up.
        if (comesBack(pod ?? unknownPod, status)) ledger.goesOn(uid, status)
        else ledger.change(uid, { ended: status, status })
      }
      log.info('Wanted pods known from before', { pods: wanted.size })
    }
    if (early !== undefined) take(early)
    haveLoaded()
  }

  return {
    name: 'pods',
    async run(signal) {
      await load()
      await Promise.all([work(signal), puller.run(signal), probes.run(signal), engine.run(signal), keeping.run(signal)])
    },
    async remembered() {
      await loading
      return desired
    },
    desired(message) {
      if (loaded) take(message)
      else if (isNews(early, message)) early = message
    },
    staticPods: takeOwn,
    isHere: (uid) => ledger.get(uid) !== undefined || wanted.has(uid),
    pods: () =>
      [...wanted].map(([uid, pod]) => {
        const status = ledger.get(uid)?.status ?? pod.status
        return status === undefined ? pod : { ...pod, status }
      }),
    needOf(uid) {
      // Until all is known nothing counts as unneeded.
      if (desired === undefined || own === undefined || !surveyed) return 'needed'
      const pod = wanted.get(uid)
      if (pod === undefined) return 'gone'
      return isEnd(pod, ledger.get(uid)?.status ?? pod.status) ? 'over' : 'needed'
    },
    active: () =>
      [...wanted].flatMap(([uid, pod]) => {
        const known = ledger.get(uid)
        return known?.admitted && !isOver(pod, known) ? [pod] : []
      }),
    holds(uid) {
      const known = ledger.get(uid)
      return known !== undefined && !known.cleared
    },
    endPod,
    goOn,
  }
}
