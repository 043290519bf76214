/** The agent of a machine of the world: its loops over simulated Docker, disk and network. */
import { mqttControlPlane } from '../../agent/adapters/mqtt/mqtt-control-plane.ts'
import { agentBoard, writeEnds } from '../../agent/assembly/board.ts'
import { assembleNodeStatus } from '../../agent/assembly/node-status.ts'
import { assemblePressure } from '../../agent/assembly/pressure.ts'
import { agentConfiguration, emptyAgentConfiguration } from '../../agent/configuration.ts'
import { checkpointReporter } from '../../agent/node/registration/checkpoint-report.ts'
import { desiredContents } from '../../agent/node/registration/desired-contents.ts'
import { leaseManager } from '../../agent/node/registration/lease-manager.ts'
import { registeredPools } from '../../agent/node/registration/registered-pools.ts'
import { registration } from '../../agent/node/registration/registration.ts'
import { nodeEvents } from '../../agent/node/status/node-event.ts'
import { runtimeHealth } from '../../agent/node/status/runtime-health.ts'
import { defaultPodManagerSettings, podManager } from '../../agent/pods/pod-manager.ts'
import type { VolumeOrders } from '../../agent/pods/volumes/volume-orders.ts'
import type { VolumeStore } from '../../agent/pods/volumes/volume-store.ts'
import type { ContainerRuntime } from '../../agent/runtime/runtime.ts'
import type { FakeHost } from '../../agent/testing/fake-host.ts'
import type { fakeVolumes } from '../../agent/testing/fake-volumes.ts'
import { agentCounters } from '../../agent/usage/agent-counters.ts'
import { referencesAnnotation } from '../../api/node/references-annotation.ts'
import { mountsClaimsAnnotation } from '../../api/storage/node-claim.ts'
import { firstValue } from '../../daemon/cell.ts'
import type { Log } from '../../daemon/log.ts'
import { runLoops } from '../../daemon/run.ts'
import { type BrokerServers, simulatedLinks } from '../broker/simulated-link.ts'
import type { MachineDisk } from '../world/machine-disk.ts'
import type { MachineShape } from '../world/machine-shape.ts'
import { simulatedPoolOrders } from '../world/simulated-pools.ts'
import type { ProgramPlace } from '../world/wire.ts'
import { type ApiServers, nodeApi } from './api-transport.ts'
import { simulatedCheckpoint } from './simulated-checkpoint.ts'
import { type SimulatedVolumes, type SimulatedVolumesNeeds, simulatedVolumes } from './simulated-volumes.ts'

export type AgentProgramNeeds = {
  readonly place: ProgramPlace
  readonly shape: MachineShape
  readonly host: FakeHost
  readonly address: string
  readonly bootID: string
  /** The machine has booted since the last start of the agent. */
  readonly rebooted: boolean
  readonly runtime: ContainerRuntime
  readonly disk: MachineDisk
  /** Volumes of the pods, which the disk keeps. */
  readonly volumes: ReturnType<typeof fakeVolumes>
  /** undefined: the data of claims is not kept. */
  readonly claims: Pick<SimulatedVolumesNeeds, 'files' | 'placed'> | undefined
  readonly api: ApiServers
  readonly brokers: BrokerServers
  readonly random: () => number
  readonly log: Log
}

const configuration = agentConfiguration(emptyAgentConfiguration)

/** Runs until the life of its place ends. Rejects where a part of it fails. */
export async function runSimulatedAgent(needs: AgentProgramNeeds): Promise<void> {
  const { place, bootID, address, runtime, disk, random, log } = needs
  const { machine: nodeName, life } = place
  const { clock } = life
  const board = agentBoard()
  board.staticPods.set([])
  board.machineHealth.set({ conditions: [], problems: [] })
  const inventory = inventoryOf(needs.shape, bootID)
  const controlPlane = mqttControlPlane(
    {
      ...{ clock, random, log },
      transport: { openLink: simulatedLinks(place, needs.brokers), networkState: () => new Set(['link eth0 1']) },
    },
    {
      ...{ nodeName, mqttUrl: 'mqtts://controller:8883', ca: '', certificate: '', key: '' },
      ...{ agentVersion: '0.1.0', bootID, leaseDurationSeconds: configuration.nodeLeaseDurationSeconds },
    },
  )
  const event = nodeEvents({ controlPlane, clock }, nodeName)
  const { claims } = needs
  const { pools, storageBytes } = needs.shape
  const kept = claims && simulatedVolumes({ ...claims, life, others: needs.volumes, capacityBytes: storageBytes })
  const pods = podsOf({ ...needs, volumes: kept?.store ?? needs.volumes }, board, controlPlane)
  const write = writeEnds(board)
  const shared = { board, write, configuration, nodeName, controlPlane, event, clock, random, log }
  const status = assembleNodeStatus({
    ...shared,
    inventory,
    rebooted: needs.rebooted,
    addresses: async () => [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: nodeName },
    ],
  })
  const usage = { podUsage: async () => [], podReadings: async () => [], podDiskUsage: async () => [] }
  const containers = { runtime, usage, signals: needs.host, containerList: undefined as never }
  const pressure = assemblePressure({ ...shared, counters: agentCounters(), containers, pods, clockFor: () => clock })
  const orders =
    kept?.orders({ ...shared, writes: write('pools') }) ??
    (pools.length === 0
      ? undefined
      : simulatedPoolOrders({ ...shared, writes: write('pools'), pools, capacityBytes: storageBytes }))
  const { listener, loops } = membershipOf(needs, { board, pods, controlPlane, status, orders, kept })
  const connect = {
    name: 'control-plane',
    run: (signal: AbortSignal) => controlPlane.run({ ...listener, connected: status.update }, signal),
  }
  const lease = { name: 'lease', run: leaseManager({ controlPlane, clock, random }).run }
  const engineHealth = runtimeHealth({ runtime, clock, log, writes: write('runtime') })
  log.info('Agent starts', { bootID, files: disk.read('desired.json') === undefined ? 'none' : 'a checkpoint' })
  await runLoops([connect, ...loops, ...pressure, engineHealth, status, lease, pods], new AbortController().signal, log)
}

function inventoryOf({ cpus, memoryBytes, storageBytes, architecture, hardware }: MachineShape, bootID: string) {
  return {
    machine: { cpus, memoryBytes, ephemeralStorageBytes: storageBytes, hugePageBytes: {} },
    system: {
      ...{ machineID: hardware.machineID ?? '', systemUUID: hardware.systemUUID ?? '', bootID },
      ...{ kernelVersion: '6.6.51', osImage: 'Debian GNU/Linux 12 (bookworm)' },
      ...{ operatingSystem: 'linux', architecture },
    },
  }
}

type Board = ReturnType<typeof agentBoard>
type Plane = ReturnType<typeof mqttControlPlane>

type PodNeeds = Omit<AgentProgramNeeds, 'volumes'> & { readonly volumes: VolumeStore }

function podsOf(
  { place, shape, address, runtime, disk, volumes, api, random, log }: PodNeeds,
  board: Board,
  controlPlane: Plane,
) {
  const { clock } = place.life
  const pods = podManager(
    {
      ...{ runtime, volumes, controlPlane, clock, random, log },
      platformProblem: async () => undefined,
      devices: { list: async () => new Map(), numberOf: async () => undefined },
      hostResolver: async () => ({ servers: ['192.0.2.53'], searches: [], options: [] }),
      machineHosts: async () => `${address}\t${place.machine}\n`,
      api: nodeApi(place, api),
      checkpoint: simulatedCheckpoint(place.life, disk),
      network: { ask: async () => ({ result: 'success', message: '' }) },
      node: {
        isKnown: () => board.nodeStatus.get() !== undefined,
        hostIP: () => address,
        allocatable: () => board.nodeStatus.get()?.allocatable ?? {},
        memoryCapacityBytes: () => shape.memoryBytes,
        kernelLimits: () => board.runtime.get().info,
        pressures: () => board.pressures.get() ?? [],
        isShuttingDown: () => board.goingDown.get() !== undefined,
      },
    },
    { ...defaultPodManagerSettings, nodeName: place.machine },
  )
  board.staticPods.subscribe(pods.staticPods)
  return pods
}

type MembershipOf = {
  readonly board: Board
  readonly pods: ReturnType<typeof podManager>
  readonly controlPlane: Plane
  readonly status: ReturnType<typeof assembleNodeStatus>
  /** undefined: the machine has no pools. */
  readonly orders: VolumeOrders | undefined
  readonly kept: SimulatedVolumes | undefined
}

/** The part of the agent's membership that has no certificates. */
function membershipOf(
  { place, shape, api: servers, random, log }: AgentProgramNeeds,
  { board, pods, controlPlane, status, orders, kept }: MembershipOf,
) {
  const { machine: nodeName, life } = place
  const { clock } = life
  const api = nodeApi(place, servers)
  const pools = registeredPools(board.pools, async () => (kept === undefined ? shape.pools : kept.pools()))
  const registering = registration({
    ...{ api, clock, log },
    facts: async () => ({
      ...{ nodeName, operatingSystem: 'linux', architecture: shape.architecture },
      ...{ nodeLabels: shape.labels, taints: shape.taints },
      hardware: shape.hardware,
      annotations: {
        [referencesAnnotation]: 'true',
        ...(orders !== undefined && { [mountsClaimsAnnotation]: 'true', ...(await pools.annotations()) }),
      },
    }),
    status: () => firstValue(board.nodeStatus),
    registered: () => status.report(),
  })
  pools.onChange(registering.again)
  const reporter = checkpointReporter({
    ...{ api, nodeName, remembered: pods.lastDesired, clock, random, log },
    desired: pods.desired,
    accepted: controlPlane.reportEverything,
  })
  const contents = desiredContents({
    ...{ remembered: pods.lastDesired, desired: reporter.desired, report: controlPlane.reportContents, log },
  })
  return {
    listener: {
      ...contents,
      ...orders?.listener,
      store(id: string) {
        registering.store(id)
        orders?.listener.store(id)
      },
    },
    loops: [reporter, { name: 'registration', run: registering.run }, ...(orders === undefined ? [] : [orders])],
  }
}
