/**
 * Makes the machine run what is wanted of it. Woken by news of what is wanted, by the engine's events and by time: news
 * decide who may run, and who is visited.
 */

import type { Desired } from '../../api/desired.ts'
import { comesBack, shutdownRefusal } from '../../api/node-shutdown.ts'
import type { Pod } from '../../api/pod.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { EvictablePods } from '../eviction/evictable-pods.ts'
import type { ControlPlane, ControlPlaneListener } from '../node/control-plane.ts'
import { type Host, podVerdicts } from './admission/pod-admission.ts'
import type { StartGate } from './admission/start-gate.ts'
import { deviceAllocator, type MachineDevices } from './containers/devices.ts'
import { stepExecutors } from './containers/step-executors.ts'
import type { PodNeed } from './garbage/dead-containers.ts'
import { type ImagePullerSettings, imagePuller } from './images/image-puller.ts'
import { podImages } from './images/pod-images.ts'
import type { Resolver } from './options/pod-dns.ts'
import { prober } from './probes/prober.ts'
import type { NetworkProbes } from './probes/targets.ts'
import { notUnderstood, type PodNews, podEvent } from './record/pod-events.ts'
import {
  fingerprint,
  isEnd,
  isLeaving,
  isOver,
  onAdopted,
  onDesiredChanged,
  onEndRestored,
  onProbed,
  onResumed,
} from './record/pod-record.ts'
import { podRecords } from './record/pod-records.ts'
import { type DateSource, dateOf } from './record/trusted-time.ts'
import type { Platform } from './runtime/platforms.ts'
import type { ContainerRuntime, RuntimeContainer } from './runtime/runtime.ts'
import { mirrorReports } from './static/mirror-reports.ts'
import { podStatusManager } from './status/pod-status-manager.ts'
import { engineWatch } from './sync/engine-watch.ts'
import { visits } from './sync/pod-workers.ts'
import { type VisitNeeds, visitPod } from './sync/sync-pod.ts'
import type { VolumeStore } from './volumes/volume-store.ts'
import { changedPods, isNews, mirrorsIn, withKnown } from './wanted/desired-pods.ts'
import { keeper, type PodCheckpoint } from './wanted/pod-checkpoint.ts'
import { wantedPods } from './wanted/pod-config.ts'

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
  readonly node: Host & {
    /** It was looked at once: what is not known of it is not there. */
    isKnown(): boolean
    hostIP(): string | undefined
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
  remembered(): Promise<Desired | undefined>
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
/** A machine that cannot even be looked at keeps no pod waiting for longer. */
const nodeKnownMs = 10_000
const openGate: StartGate = { hold: () => undefined, starting: async () => undefined, wanted: () => undefined }

export function podManager(needs: PodManagerNeeds, settings: PodManagerSettings): PodManager {
  const { runtime, volumes, node, checkpoint, clock, random, log } = needs
  const date = needs.date ?? dateOf(clock)
  const bornMs = clock.monotonicMs()
  const devices = deviceAllocator({ runtime, devices: needs.devices })
  const puller = imagePuller({ runtime, clock, log }, settings.pulls)
  const reports = mirrorReports(needs.controlPlane)
  /** What came before the checkpoint was read. */
  let early: Desired | undefined
  let loaded = false
  let haveLoaded: () => void = () => undefined
  const loading = new Promise<void>((resolve) => {
    haveLoaded = resolve
  })
  /** Until everything was looked at once, nobody knows what is here already: nothing is decided. */
  let surveyed = false
  let events = 0

  const event = (pod: Pick<Pod, 'metadata'>, news: PodNews) => {
    reports.reportEvent(podEvent(pod, news, settings.nodeName, clock.wallMs(), events++))
  }
  const rounds = visits({
    visit: async (uid, signal) => (surveyed && wanted.isDecided(uid) ? visitPod(uid, visitNeeds, signal) : undefined),
    parallel: settings.parallelPods,
    clock,
    random,
    log,
  })
  const again = (uid: string, afterMs = 0) => rounds.addAfter(uid, afterMs)
  const probed = (uid: string) => {
    records.update(uid, (record) => onProbed(record, probes.vitals(uid)))
    again(uid)
  }
  const probes = prober({ ...needs, date, event, changed: probed })
  const sources = () => ({
    isNodeKnown: node.isKnown() || clock.monotonicMs() >= bornMs + nodeKnownMs,
    hostIP: node.hostIP(),
    memoryCapacityBytes: node.memoryCapacityBytes(),
    allocatable: node.allocatable(),
    kernelLimits: node.kernelLimits(),
    podPidsLimit: settings.podPidsLimit,
    podCIDR: wanted.desired?.podCIDR,
    configMaps: wanted.desired?.configMaps ?? nothing,
    secrets: wanted.desired?.secrets ?? nothing,
  })
  const records = podRecords()
  const statuses = podStatusManager({ records, controlPlane: reports, log })
  const images = podImages({ ...needs, records, puller, event, again, sources })
  const execute = stepExecutors({ ...needs, records, devices, images, hostIP: node.hostIP, event, again, sources })
  const wanted = wantedPods(records.paths)
  const gate = needs.gate ?? openGate
  const keeping = keeper(needs, () => {
    const { desired, isWhole } = wanted
    return desired === undefined || !isWhole ? undefined : { desired, endings: endings() }
  })
  const verdicts = podVerdicts({
    wanted,
    records,
    statuses,
    node,
    event,
    ended: keeping.wake,
    visit: (uid) => rounds.add([uid]),
    clock,
  })
  const visitNeeds: VisitNeeds = {
    runtime,
    volumes,
    records,
    statuses,
    images,
    execute,
    sources,
    event,
    prober: probes,
    clock,
    log,
    hostIP: node.hostIP,
    gate,
    date,
    keptDead: settings.keptDead,
    wanted: (uid) => wanted.all.get(uid),
    mayBeOld: () => !wanted.isWhole,
    ended() {
      keeping.wake()
      if ((wanted.own ?? nothing).some(({ metadata }) => !wanted.all.has(metadata.uid ?? ''))) {
        decide(wanted.lookAgain())
      }
    },
  }
  const engine = engineWatch(
    { runtime, clock, random, log, resyncMs: settings.resyncMs },
    {
      survey: () => survey(),
      changed: (podUID) => rounds.add([podUID]),
      // What failed while it was away need not wait any longer.
      opened: () => visit([...wanted.all.keys(), ...records.entries.keys()]),
    },
  )

  /**
   * A static pod that was refused is judged again by the next agent, as the kubelet does: nobody else can replace it. So is
   * who was refused because the machine went down.
   */
  const endings = () =>
    Object.fromEntries(
      Object.entries(records.endings()).filter(
        ([uid, { containerStatuses, reason }]) =>
          reason !== shutdownRefusal.reason && (containerStatuses || !wanted.ownUIDs.has(uid)),
      ),
    )

  const visit = (uids: Iterable<string>) => rounds.add(wanted.oldestFirst(uids))

  /** Of these something else is wanted: who is new among them is judged first. */
  const decide = (uids: readonly string[]) => {
    if (surveyed) verdicts.admitNew()
    visit(uids)
  }

  const take = (said: Desired) => {
    if (wanted.isWhole && !isNews(wanted.desired, said)) {
      log.debug('Old news ignored', { epoch: said.epoch, version: said.version })
      return
    }
    tellMisread(said, wanted.desired)
    const message = withKnown(said, wanted.desired)
    // What an old copy names was not held to it.
    const unsure = wanted.isWhole ? nothing : wanted.all.keys()
    const changed = [...changedPods(wanted.desired, message), ...unsure, ...wanted.misread]
    // Until now nobody knew what to do with what is here.
    if (!wanted.isWhole) engine.wake()
    reports.mirrors(mirrorsIn(message))
    const turned = wanted.hear(message)
    const leaving = [...wanted.all].filter(([, pod]) => isLeaving(pod)).map(([uid]) => uid)
    statuses.resendGone(leaving)
    for (const uid of changed) records.update(uid, onDesiredChanged)
    decide([...changed, ...leaving, ...turned])
    keeping.wake()
    updateGate()
  }

  /** Nothing is forgotten for a pod that may only be unknown yet. */
  const updateGate = () => {
    if (wanted.isWhole && wanted.own !== undefined)
      gate.wanted(new Set([...wanted.all.keys(), ...wanted.ownUIDs, ...wanted.misread]))
  }

  const takeOwn = (pods: readonly Pod[] | undefined) => {
    // Until now nobody knew what to do with what is here.
    if (wanted.own === undefined) engine.wake()
    const turned = wanted.hearOwn(pods)
    reports.own(wanted.ownUIDs)
    decide(turned)
    updateGate()
  }

  /** Each once, and again when something else is wrong with it. */
  const tellMisread = ({ misread = nothing }: Desired, before: Desired | undefined) => {
    for (const { kind, namespace, name, uid, why } of misread) {
      if (before?.misread?.some((one) => one.uid === uid && one.why === why)) continue
      log.warn('Wanted, but not understood: it stays as it is', { kind, namespace, name, why })
      if (kind === 'Pod') event({ metadata: { namespace, name, uid } }, notUnderstood(why))
    }
  }

  /** Everything of ours at one look: what differs from what was last seen is visited. */
  const survey = async () => {
    const byPod = new Map<string, RuntimeContainer[]>()
    for (const container of await runtime.listContainers()) {
      const { podUID } = container.identity
      byPod.set(podUID, [...(byPod.get(podUID) ?? []), container])
    }
    const uids = [...byPod.keys(), ...wanted.all.keys(), ...records.entries.keys()]
    const differs = (uid: string) => records.get(uid)?.observed !== fingerprint(byPod.get(uid) ?? [])
    statuses.resendGone()
    if (surveyed) return visit(uids.filter(differs))
    surveyed = true
    for (const [uid, [first]] of byPod) {
      const { podNamespace, podName } = first?.identity ?? {}
      records.of(uid)
      records.update(uid, (record) => onAdopted(record, `${podNamespace}/${podName}`))
    }
    wanted.lookAgain()
    await forgetVolumes(new Set([...uids, ...wanted.misread]))
    decide(uids)
  }

  /** Of pods that went while no agent was there. */
  const forgetVolumes = async (known: ReadonlySet<string>) => {
    for (const uid of await volumes.podUIDs()) {
      if (known.has(uid)) continue
      await volumes.remove(uid).catch((error) => log.warn('Volumes not removed', { podUID: uid, error }))
    }
  }

  const load = async () => {
    const remembered = await checkpoint.load()
    loaded = true
    const foreign = remembered?.desired.pods.find(
      ({ spec }) => (spec.nodeName ?? settings.nodeName) !== settings.nodeName,
    )
    if (foreign !== undefined) {
      log.warn('Wanted pods of another node not taken over', { node: foreign.spec.nodeName })
    } else if (remembered !== undefined) {
      tellMisread(remembered.desired, undefined)
      reports.mirrors(mirrorsIn(remembered.desired))
      wanted.hear(remembered.desired, !remembered.mayBeOld)
      for (const [uid, status] of Object.entries(remembered.endings)) {
        const pod = wanted.all.get(uid) ?? wanted.own?.find(({ metadata }) => metadata.uid === uid)
        // The machine went down in the life of another agent, and is up.
        const reduce = comesBack(pod ?? unknownPod, status) ? onResumed : onEndRestored
        records.of(uid)
        records.update(uid, (record) => reduce(record, status))
      }
      log.info('Wanted pods known from before', { pods: wanted.all.size })
    }
    if (early !== undefined) take(early)
    haveLoaded()
  }

  return {
    name: 'pods',
    async run(signal) {
      await load()
      await Promise.all([
        rounds.run(signal),
        puller.run(signal),
        probes.run(signal),
        engine.run(signal),
        keeping.run(signal),
      ])
    },
    async remembered() {
      await loading
      return wanted.desired
    },
    desired(message) {
      if (loaded) take(message)
      else if (isNews(early, message)) early = message
    },
    staticPods: takeOwn,
    isHere: (uid) => records.get(uid) !== undefined || wanted.all.has(uid),
    pods: () =>
      [...wanted.all].map(([uid, pod]) => {
        const status = records.get(uid)?.status ?? pod.status
        return status === undefined ? pod : { ...pod, status }
      }),
    needOf(uid) {
      // Until all is known nothing counts as unneeded.
      if (!wanted.isWhole || wanted.own === undefined || !surveyed) return 'needed'
      if (wanted.misread.has(uid)) return 'needed'
      const pod = wanted.all.get(uid)
      if (pod === undefined) return 'gone'
      return isEnd(pod, records.get(uid)?.status ?? pod.status) ? 'over' : 'needed'
    },
    active: () =>
      [...wanted.all].flatMap(([uid, pod]) => {
        const known = records.get(uid)
        return known?.admitted && !isOver(pod, known) ? [pod] : []
      }),
    holds(uid) {
      const known = records.get(uid)
      return known !== undefined && !known.cleared
    },
    endPod: verdicts.endPod,
    goOn() {
      verdicts.goOn()
      decide([...wanted.all.keys(), ...records.entries.keys()])
      keeping.wake()
    },
  }
}
