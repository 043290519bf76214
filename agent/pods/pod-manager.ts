/**
 * Runs the desired pods of this node. Builds the parts and connects them; the loops are in `sync/`, `images/` and
 * `probes/`.
 */

import type { Pod } from '../../api/pod.ts'
import type { ApiClient } from '../../daemon/api-client.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { ControlPlane, ControlPlaneListener } from '../node/connection/control-plane.ts'
import type { LastDesired } from '../node/registration/checkpoint-report.ts'
import type { Platform } from '../runtime/platforms.ts'
import type { ContainerRuntime } from '../runtime/runtime.ts'
import { confirmedStart } from './admission/confirmed-start.ts'
import { type Host, podAdmission } from './admission/pod-admission.ts'
import { noIsolation, type PodIsolation } from './admission/pod-isolation.ts'
import { type PodTermination, podTermination } from './admission/pod-termination.ts'
import { openGate, type StartGate } from './admission/start-gate.ts'
import { type DeviceReader, deviceAllocator } from './containers/devices.ts'
import { stepExecutors } from './containers/step-executors.ts'
import type { PodNeed } from './garbage/dead-containers.ts'
import { type ImagePullerSettings, imagePuller } from './images/image-puller.ts'
import { podImages } from './images/pod-images.ts'
import type { ApiServerLocation } from './options/container-env.ts'
import type { Resolver } from './options/pod-dns.ts'
import type { CountedProbe } from './probes/probe-counts.ts'
import { prober } from './probes/prober.ts'
import type { NetworkProbes } from './probes/targets.ts'
import { type PodEvent, podEvent } from './record/pod-events.ts'
import { isEnd, onDesiredChanged, onProbed } from './record/pod-record.ts'
import { type PodRecords, podRecords } from './record/pod-records.ts'
import { systemTime, type TrustedTime } from './record/trusted-time.ts'
import { mirrorReporter } from './static/mirror-reports.ts'
import { podStatusManager } from './status/pod-status-manager.ts'
import { engineWatch } from './sync/engine-watch.ts'
import type { PodLogLinks } from './sync/log-links.ts'
import { checkpointOf, podUpdates } from './sync/pod-updates.ts'
import { podWorkers } from './sync/pod-workers.ts'
import { relist } from './sync/relist.ts'
import { syncPod } from './sync/sync-pod.ts'
import { driverTokens } from './volumes/driver-tokens.ts'
import { republishLoop } from './volumes/republish-loop.ts'
import { silentVolumes } from './volumes/silent-volumes.ts'
import { tokenManager } from './volumes/token-manager.ts'
import type { DriverTokensOf } from './volumes/token-needs.ts'
import type { VolumeStore } from './volumes/volume-store.ts'
import { lastAddresses } from './wanted/pod-addresses.ts'
import { checkpointWriter, type PodCheckpoint } from './wanted/pod-checkpoint.ts'
import { type WantedPods, wantedPods } from './wanted/pod-config.ts'

export type PodManagerNeeds = {
  readonly runtime: ContainerRuntime
  readonly volumes: VolumeStore
  readonly hostResolver: () => Promise<Resolver>
  readonly machineHosts: () => Promise<string | undefined>
  readonly devices: DeviceReader
  readonly controlPlane: Pick<ControlPlane, 'reportPod' | 'reportPodGone' | 'reportEvent'>
  /** Issues tokens of service accounts. */
  readonly api: Pick<ApiClient, 'post'>
  readonly checkpoint: PodCheckpoint
  readonly network: NetworkProbes
  /** Default: the system clock is right. */
  readonly date?: TrustedTime
  /** Default: every pod may start. */
  readonly gate?: StartGate
  /** Default: pods are not restricted. */
  readonly isolation?: PodIsolation
  /** Default: no links to logs. */
  readonly logLinks?: PodLogLinks
  /** Why an image of this platform does not run on this machine. */
  readonly platformProblem: (image: string, platform: Platform) => Promise<string | undefined>
  /** This machine as it is now. */
  readonly node: Host & {
    /** The node was inspected once: a value that is missing does not exist. */
    isKnown(): boolean
    hostIP(): string | undefined
    /** Address of the other IP family. */
    otherHostIP?(): string | undefined
    memoryCapacityBytes(): number
    /** The Service of the API, where packets to it arrive; undefined: containers use the address of the controller. */
    apiService?(): ApiServerLocation | undefined
    /** The fleet has a network of pods, and this node cannot take part in it. */
    isOffNetwork?(): boolean
  }
  /** Resolves when `node.isOffNetwork` is decided, or after some seconds. */
  readonly networkDecided?: () => Promise<void>
  /** A pod runs, this many seconds after it was first reported. */
  readonly started?: (seconds: number) => void
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export type PodManagerSettings = {
  readonly nodeName: string
  /** Interval of the list of all containers. */
  readonly resyncMs: number
  /** The number of concurrent syncs. */
  readonly parallelPods: number
  readonly pulls: ImagePullerSettings
  /** Processes and threads of one container; 0: no limit. */
  readonly podPidsLimit: number
  /** Containers without a seccomp profile have the engine's default one. */
  readonly seccompDefault: boolean
  /** Tokens of service accounts are renewed at least this often. */
  readonly tokenRenewalMs: number
  /** Dead instances of each container of a pod, beside the newest. */
  readonly keptDead: number
}

/** `resyncMs` is the kubelet's syncFrequency, `tokenRenewalMs` its maxTTL; the others suit a small machine. */
export const defaultPodManagerSettings: Omit<PodManagerSettings, 'nodeName'> = {
  resyncMs: 60_000,
  parallelPods: 4,
  pulls: { parallel: 2, stallMs: 60_000 },
  podPidsLimit: 0,
  seccompDefault: true,
  tokenRenewalMs: 24 * 3600_000,
  keptDead: 1,
}

export interface PodManager extends Loop, ControlPlaneListener, PodTermination {
  /** The last desired state, received or from the checkpoint; undefined: there is none. */
  lastDesired(): Promise<LastDesired | undefined>
  /** The desired pods, with the status last reported. */
  pods(): readonly Pod[]
  /** How often each probe of the pods gave which result. */
  probes(): readonly CountedProbe[]
  /** The static pods of this machine; undefined while unknown: no unknown container is removed then. */
  staticPods(pods: readonly Pod[] | undefined): void
  /** The node has other addresses than before: the status of its pods has them, and probes of host network pods go there. */
  addressesChanged(): void
  /** The pod is desired, or something of it is on this machine. */
  isHere(uid: string): boolean
  /** Whether the stopped containers of a pod may be removed. */
  needOf(uid: string): PodNeed
}

const nothing: readonly never[] = []
/** Pods that need the node's address wait for its first inspection no longer than this. */
const nodeKnownMs = 10_000

export function podManager(needs: PodManagerNeeds, settings: PodManagerSettings): PodManager {
  const { runtime, node, clock, log } = needs
  const { nodeName, parallelPods: parallel, resyncMs } = settings
  const date = needs.date ?? systemTime(clock)
  const gate = confirmedStart(needs.gate ?? openGate, clock)
  const isolation = needs.isolation ?? noIsolation
  const records = podRecords()
  const wanted = wantedPods(records.paths)
  const reports = mirrorReporter(needs.controlPlane)
  const statuses = podStatusManager({
    records,
    controlPlane: reports,
    clock,
    log,
    ...(needs.started && { started: needs.started }),
  })
  const workers = podWorkers({ ...needs, parallel })
  const engine = engineWatch({ ...needs, resyncMs })
  const addresses = lastAddresses()
  const checkpoints = checkpointWriter(needs, () => checkpointOf(wanted, records, addresses))
  const sources = optionSources(needs, settings, wanted)
  let events = 0
  const recordEvent = (pod: Pick<Pod, 'metadata'>, event: PodEvent) =>
    reports.reportEvent(podEvent(pod, event, nodeName, clock.wallMs(), events++))
  const again = (uid: string, afterMs = 0) => workers.addAfter(uid, afterMs)

  const changed = (uid: string) => {
    records.update(uid, (record) => onProbed(record, probes.vitals(uid)))
    again(uid)
  }
  const probes = prober({ ...needs, date, recordEvent, changed })
  const puller = imagePuller(needs, settings.pulls)
  const images = podImages({ ...needs, records, puller, recordEvent, again, sources })
  const devices = deviceAllocator({ runtime, devices: needs.devices })
  const tokenChanged = (uid: string) => {
    records.update(uid, onDesiredChanged)
    again(uid)
  }
  const tokensOfDriver: DriverTokensOf = (pod, volume) => driverTokens(pod, volume, wanted.desired ?? {})
  const tokenNeeds = { ...needs, driverTokens: tokensOfDriver, changed: tokenChanged }
  const tokens = tokenManager(tokenNeeds, { renewalMs: settings.tokenRenewalMs })
  const execute = stepExecutors({
    ...needs,
    records,
    tokens,
    devices,
    images,
    addresses,
    hostIP: node.hostIP,
    recordEvent,
    again,
    sources,
  })

  const saves = { save: checkpoints.wake, saved: checkpoints.saved }
  const shared = { ...needs, ...saves, records, wanted, addresses, statuses, workers, recordEvent }
  const termination = podTermination({ ...shared, sync: (uid) => workers.add([uid]) })
  const admission = podAdmission({ ...shared, termination })
  const updates = podUpdates({ ...shared, nodeName, admission, reports, gate, relist: engine.wake })
  const parts = { ...shared, images, execute, sources, tokens, prober: probes, gate, isolation, date, updates }
  const sync = syncPod({ ...parts, hostIP: node.hostIP, otherHostIP: node.otherHostIP, keptDead: settings.keptDead })
  const silent = silentVolumes({ ...shared, checkMs: resyncMs })
  const republishing = republishLoop(shared, { everyMs: resyncMs })
  const syncAll = () => workers.add(wanted.oldestFirst([...wanted.all.keys(), ...records.entries.keys()]))
  // Once the engine answers again, retries after failures need not wait any longer.
  const listener = { relist: () => relist(parts), changed: (uid: string) => workers.add([uid]), opened: syncAll }

  return {
    ...termination,
    ...podQueries(records, wanted),
    name: 'pods',
    async run(signal) {
      await updates.load()
      await Promise.all([
        workers.run(sync, signal),
        puller.run(signal),
        tokens.run(signal),
        probes.run(signal),
        engine.run(listener, signal),
        silent.run(signal),
        republishing.run(signal),
        checkpoints.run(signal),
      ])
    },
    lastDesired: updates.desired,
    probes: probes.counts,
    desired(message) {
      gate.confirm()
      updates.update(message)
    },
    staticPods: updates.updateStatic,
    addressesChanged: syncAll,
    resume() {
      termination.resume()
      updates.dispatchAll()
      checkpoints.wake()
    },
  }
}

/** The current inputs of container options, and of image pull secrets. */
function optionSources(
  { node, clock }: PodManagerNeeds,
  { podPidsLimit, seccompDefault }: PodManagerSettings,
  wanted: WantedPods,
) {
  const startedMs = clock.monotonicMs()
  return () => ({
    isNodeKnown: node.isKnown() || clock.monotonicMs() >= startedMs + nodeKnownMs,
    hostIP: node.hostIP(),
    otherHostIP: node.otherHostIP?.(),
    memoryCapacityBytes: node.memoryCapacityBytes(),
    allocatable: node.allocatable(),
    kernelLimits: node.kernelLimits(),
    podPidsLimit,
    seccompDefault,
    ...(node.isOffNetwork?.()
      ? { isOffNetwork: true }
      : { podCIDR: wanted.desired?.podCIDR, clusterDomain: wanted.desired?.clusterDomain }),
    apiServer: node.apiService?.() ?? wanted.desired?.apiServer,
    runtimeClasses: wanted.desired?.runtimeClasses ?? nothing,
    services: wanted.desired?.services ?? nothing,
    configMaps: wanted.desired?.configMaps ?? nothing,
    secrets: wanted.desired?.secrets ?? nothing,
    claims: wanted.desired?.claims ?? nothing,
    csiDrivers: wanted.desired?.csiDrivers ?? nothing,
  })
}

function podQueries(records: PodRecords, wanted: WantedPods): Pick<PodManager, 'pods' | 'isHere' | 'needOf'> {
  return {
    isHere: (uid) => records.get(uid) !== undefined || wanted.all.has(uid),
    pods: () =>
      [...wanted.all].map(([uid, pod]) => {
        const status = records.get(uid)?.status ?? pod.status
        return status === undefined ? pod : { ...pod, status }
      }),
    needOf(uid) {
      // While desired pods or containers may be missing, every container counts as needed.
      if (!wanted.isConfirmed || wanted.staticPods === undefined || !records.isComplete) return 'needed'
      if (wanted.undecodable.has(uid)) return 'needed'
      const pod = wanted.all.get(uid)
      if (pod === undefined) return 'gone'
      return isEnd(pod, records.get(uid)?.status ?? pod.status) ? 'over' : 'needed'
    },
  }
}
