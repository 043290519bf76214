/** The agent of a machine of the world: its loops over simulated Docker, disk and network. */
import { mqttControlPlane } from '../../agent/adapters/mqtt/mqtt-control-plane.ts'
import { agentBoard, writeEnds } from '../../agent/assembly/board.ts'
import { assembleNodeStatus } from '../../agent/assembly/node-status.ts'
import { assemblePressure } from '../../agent/assembly/pressure.ts'
import { agentConfiguration, emptyAgentConfiguration } from '../../agent/configuration.ts'
import { checkpointReporter } from '../../agent/node/registration/checkpoint-report.ts'
import { desiredContents } from '../../agent/node/registration/desired-contents.ts'
import { leaseManager } from '../../agent/node/registration/lease-manager.ts'
import { registration } from '../../agent/node/registration/registration.ts'
import { nodeEvents } from '../../agent/node/status/node-event.ts'
import { runtimeHealth } from '../../agent/node/status/runtime-health.ts'
import { defaultPodManagerSettings, podManager } from '../../agent/pods/pod-manager.ts'
import type { ContainerRuntime } from '../../agent/pods/runtime/runtime.ts'
import { fakeHost } from '../../agent/testing/fake-host.ts'
import type { fakeVolumes } from '../../agent/testing/fake-volumes.ts'
import { agentCounters } from '../../agent/usage/agent-counters.ts'
import { referencesAnnotation } from '../../api/node/references-annotation.ts'
import { firstValue } from '../../daemon/cell.ts'
import type { Log } from '../../daemon/log.ts'
import { runLoops } from '../../daemon/run.ts'
import { type BrokerServers, simulatedLinks } from '../broker/simulated-link.ts'
import type { MachineDisk } from '../world/machine-disk.ts'
import type { ProgramPlace } from '../world/wire.ts'
import { type ApiServers, nodeApi } from './api-transport.ts'
import { simulatedCheckpoint } from './simulated-checkpoint.ts'

export type AgentProgramNeeds = {
  readonly place: ProgramPlace
  readonly address: string
  readonly bootID: string
  /** The machine has booted since the last start of the agent. */
  readonly rebooted: boolean
  readonly runtime: ContainerRuntime
  readonly disk: MachineDisk
  /** Volumes of the pods, which the disk keeps. */
  readonly volumes: ReturnType<typeof fakeVolumes>
  readonly api: ApiServers
  readonly brokers: BrokerServers
  readonly random: () => number
  readonly log: Log
}

const configuration = agentConfiguration(emptyAgentConfiguration)
const gib = 1024 ** 3

/** Runs until the life of its place ends. Rejects where a part of it fails. */
export async function runSimulatedAgent(needs: AgentProgramNeeds): Promise<void> {
  const { place, bootID, address, runtime, disk, random, log } = needs
  const { machine: nodeName, life } = place
  const { clock } = life
  const board = agentBoard()
  board.staticPods.set([])
  board.machineHealth.set({ conditions: [], problems: [] })
  const inventory = inventoryOf(nodeName, bootID)
  const controlPlane = mqttControlPlane(
    {
      ...{ clock, random, log },
      transport: { openLink: simulatedLinks(place, needs.brokers), networkState: async () => new Set(['link eth0 1']) },
    },
    {
      ...{ nodeName, mqttUrl: 'mqtts://controller:8883', ca: '', certificate: '', key: '' },
      ...{ agentVersion: '0.1.0', bootID, leaseDurationSeconds: configuration.nodeLeaseDurationSeconds },
    },
  )
  const event = nodeEvents({ controlPlane, clock }, nodeName)
  const pods = podsOf(needs, board, controlPlane)
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
  const containers = { runtime, usage, signals: fakeHost(), containerList: undefined as never }
  const pressure = assemblePressure({ ...shared, counters: agentCounters(), containers, pods, clockFor: () => clock })
  const { listener, loops } = membershipOf(needs, { board, pods, controlPlane, status })
  const connect = {
    name: 'control-plane',
    run: (signal: AbortSignal) => controlPlane.run({ ...listener, connected: status.update }, signal),
  }
  const lease = { name: 'lease', run: leaseManager({ controlPlane, clock, random }).run }
  const engineHealth = runtimeHealth({ runtime, clock, log, writes: write('runtime') })
  log.info('Agent starts', { bootID, files: disk.read('desired.json') === undefined ? 'none' : 'a checkpoint' })
  await runLoops([connect, ...loops, ...pressure, engineHealth, status, lease, pods], new AbortController().signal, log)
}

function inventoryOf(nodeName: string, bootID: string) {
  return {
    machine: { cpus: 4, memoryBytes: 4 * gib, ephemeralStorageBytes: 30 * gib, hugePageBytes: {} },
    system: {
      ...{ machineID: `machine-of-${nodeName}`, systemUUID: `system-of-${nodeName}`, bootID },
      ...{ kernelVersion: '6.6.51', osImage: 'Debian GNU/Linux 12 (bookworm)' },
      ...{ operatingSystem: 'linux', architecture: 'arm64' },
    },
  }
}

type Board = ReturnType<typeof agentBoard>
type Plane = ReturnType<typeof mqttControlPlane>

function podsOf(
  { place, address, runtime, disk, volumes, api, random, log }: AgentProgramNeeds,
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
        memoryCapacityBytes: () => 4 * gib,
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
}

/** The part of the agent's membership that has no certificates. */
function membershipOf(
  { place, api: servers, random, log }: AgentProgramNeeds,
  { board, pods, controlPlane, status }: MembershipOf,
) {
  const { machine: nodeName, life } = place
  const { clock } = life
  const api = nodeApi(place, servers)
  const registering = registration({
    ...{ api, clock, log },
    facts: async () => ({
      ...{ nodeName, operatingSystem: 'linux', architecture: 'arm64', nodeLabels: {}, taints: [] },
      hardware: { systemUUID: `system-of-${nodeName}`, machineID: `machine-of-${nodeName}` },
      annotations: { [referencesAnnotation]: 'true' },
    }),
    status: () => firstValue(board.nodeStatus),
    registered: () => status.report(),
  })
  const reporter = checkpointReporter({
    ...{ api, nodeName, remembered: pods.lastDesired, clock, random, log },
    desired: pods.desired,
    accepted: controlPlane.reportEverything,
  })
  const contents = desiredContents({
    ...{ remembered: pods.lastDesired, desired: reporter.desired, report: controlPlane.reportContents, log },
  })
  return {
    listener: { ...contents, store: registering.store },
    loops: [reporter, { name: 'registration', run: registering.run }],
  }
}
