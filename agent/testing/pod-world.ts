/** The pods of a node in a test: a pod manager on some engine, and a control plane that records reports. */
import type { Desired } from '../../api/desired.ts'
import type { Event } from '../../api/event.ts'
import type { PressureType } from '../../api/node.ts'
import type { Pod, PodStatus } from '../../api/pod.ts'
import type { PodMessage } from '../../api/topics.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { PodIsolation } from '../pods/admission/pod-isolation.ts'
import type { StartGate } from '../pods/admission/start-gate.ts'
import type { DeviceReader, MachineDevices } from '../pods/containers/devices.ts'
import {
  defaultPodManagerSettings,
  type PodManager,
  type PodManagerNeeds,
  type PodManagerSettings,
  podManager,
} from '../pods/pod-manager.ts'
import type { NetworkProbes } from '../pods/probes/targets.ts'
import type { VolumeStore } from '../pods/volumes/volume-store.ts'
import type { CheckpointData, PodCheckpoint } from '../pods/wanted/pod-checkpoint.ts'
import type { ContainerRuntime, KernelLimits } from '../runtime/runtime.ts'
import { fakeVolumes } from './fake-volumes.ts'

export type PodWorld = {
  readonly manager: PodManager
  /** Publishes these pods as the whole desired state, as the controller would. */
  want(...pods: readonly Pod[]): void
  publishDesired(message: Partial<Desired>): void
  /** The newest status of a pod by its name. */
  status(name: string): PodStatus | undefined
  /** Every status of it that was reported, oldest first, however short-lived. */
  statuses(name: string): readonly PodStatus[]
  /** The newest report of the pod of this UID. */
  messages(uid: string): PodMessage | undefined
  readonly gone: readonly string[]
  readonly events: readonly Event[]
  /** `Reason: message`, in order. */
  eventTexts(): readonly string[]
  stop(): Promise<void>
}

export type PodWorldNeeds = {
  readonly runtime: ContainerRuntime
  readonly clock: Clock
  readonly log: Log
  /** Default: the clock is right. */
  readonly date?: PodManagerNeeds['date']
  /** Default: every pod may start. */
  readonly gate?: StartGate
  /** Default: pods are not restricted. */
  readonly isolation?: PodIsolation
  readonly checkpoint?: PodCheckpoint
  /** Default: none. */
  readonly logLinks?: PodManagerNeeds['logLinks']
  readonly network?: NetworkProbes
  readonly volumes?: VolumeStore
  /** Default: no tokens are issued. */
  readonly api?: PodManagerNeeds['api']
  readonly devices?: MachineDevices
  readonly allocatable?: { readonly [resource: string]: string }
  readonly podPidsLimit?: number
  readonly pressures?: () => readonly PressureType[]
  readonly isShuttingDown?: () => boolean
  /** Default: true. */
  readonly isNodeKnown?: () => boolean
  readonly epoch?: string
  readonly platformProblem?: PodManagerNeeds['platformProblem']
  readonly pulls?: PodManagerSettings['pulls']
}

export function startPods(needs: PodWorldNeeds): PodWorld {
  const { runtime, clock, log, checkpoint = memoryCheckpoint() } = needs
  const messages = new Map<string, PodMessage>()
  const statuses = new Map<string, PodStatus[]>()
  const gone: string[] = []
  const events: Event[] = []
  let version = 0
  let kernelLimits: KernelLimits | undefined
  // The state of the engine, as soon as it reports it.
  runtime.info().then(
    (info) => {
      kernelLimits = info
    },
    () => undefined,
  )
  const manager = podManager(
    {
      runtime,
      volumes: needs.volumes ?? fakeVolumes(),
      platformProblem: needs.platformProblem ?? (async () => undefined),
      devices: deviceReader(needs.devices ?? new Map()),
      hostResolver: async () => ({ servers: ['192.0.2.53'], searches: ['lan'], options: [] }),
      machineHosts: async () => '192.0.2.11\tpi\n',
      api: needs.api ?? { post: async () => ({ status: 404, body: 'There is no API', dateHeader: undefined }) },
      clock,
      ...(needs.date && { date: needs.date }),
      ...(needs.gate && { gate: needs.gate }),
      ...(needs.isolation && { isolation: needs.isolation }),
      ...(needs.logLinks && { logLinks: needs.logLinks }),
      log,
      checkpoint,
      network: needs.network ?? { ask: async () => ({ result: 'success', message: '' }) },
      random: () => 0.5,
      controlPlane: {
        reportPod: (message) => {
          messages.set(message.uid, message)
          statuses.set(message.name, [...(statuses.get(message.name) ?? []), message.status])
        },
        reportPodGone: (uid) => gone.push(uid),
        reportEvent: (event) => events.push(event),
      },
      node: {
        isKnown: () => needs.isNodeKnown?.() ?? true,
        hostIP: () => ((needs.isNodeKnown?.() ?? true) ? '192.0.2.11' : undefined),
        allocatable: () => needs.allocatable ?? { cpu: '4', memory: '4Gi', pods: '110' },
        memoryCapacityBytes: () => 4 * 1024 ** 3,
        pressures: () => needs.pressures?.() ?? [],
        isShuttingDown: () => needs.isShuttingDown?.() ?? false,
        kernelLimits: () => kernelLimits,
      },
    },
    {
      ...defaultPodManagerSettings,
      nodeName: 'pi-01',
      podPidsLimit: needs.podPidsLimit ?? 0,
      ...(needs.pulls === undefined ? {} : { pulls: needs.pulls }),
    },
  )
  const stopping = new AbortController()
  const running = manager.run(stopping.signal)
  const publishDesired = (message: Partial<Desired>) =>
    manager.desired({ epoch: needs.epoch ?? 'one', version: ++version, pods: [], ...message })
  return {
    manager,
    publishDesired,
    want: (...pods) => publishDesired({ pods: pods.map(({ status: _, ...pod }) => pod) }),
    status: (name) => [...messages.values()].find((message) => message.name === name)?.status,
    statuses: (name) => statuses.get(name) ?? [],
    messages: (uid) => messages.get(uid),
    gone,
    events,
    eventTexts: () => events.map(({ reason, message }) => `${reason}: ${message}`),
    async stop() {
      stopping.abort()
      await running
    },
  }
}

function deviceReader(devices: MachineDevices): DeviceReader {
  const files = [...devices.values()].flat().flatMap((device) => device.files)
  return {
    list: async () => devices,
    numberOf: async (path) => files.find(({ source }) => source === path)?.number,
  }
}

export function memoryCheckpoint(
  remembered?: CheckpointData,
): PodCheckpoint & { readonly content: CheckpointData | undefined } {
  let content = remembered
  return {
    get content() {
      return content
    },
    load: async () => content,
    save: async (next) => {
      content = next
    },
    keepCopy: async () => undefined,
  }
}
