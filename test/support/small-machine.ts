/**
 * A machine with little of everything, for an agent's parts in a test: the control group of a dockerd's containers stands
 * for the whole of it, with real limits; the data directory may be a small filesystem of its own. Time runs faster for
 * the eviction manager.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { mountPoints, mountsAt, unmount } from '../../agent/adapters/disk/mounts.ts'
import { volumeStore } from '../../agent/adapters/disk/volume-store.ts'
import { dockerRuntime } from '../../agent/adapters/docker/docker-runtime.ts'
import { readInventory } from '../../agent/adapters/kernel/host-inventory.ts'
import { kernelLog } from '../../agent/adapters/kernel/kernel-log.ts'
import { agentBoard, writeEnds } from '../../agent/assembly/board.ts'
import { assembleContainers } from '../../agent/assembly/containers.ts'
import { assembleNodeStatus } from '../../agent/assembly/node-status.ts'
import { assemblePressure } from '../../agent/assembly/pressure.ts'
import { type AgentConfigurationFile, agentConfiguration, emptyAgentConfiguration } from '../../agent/configuration.ts'
import { nodeEvents } from '../../agent/node/status/node-event.ts'
import { unknownRuntime } from '../../agent/node/status/runtime-health.ts'
import type { ContainerRuntime } from '../../agent/runtime/runtime.ts'
import { fakeControlPlane } from '../../agent/testing/fake-control-plane.ts'
import { agentCounters } from '../../agent/usage/agent-counters.ts'
import type { NodeCondition, NodeStatus } from '../../api/node.ts'
import type { PodStatus } from '../../api/pod.ts'
import { type Clock, systemClock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { type Ending, type TestDockerd, whyNoDockerd } from './dockerd.ts'
import { temporaryFolder } from './fleet.ts'
import { eventually, type NodeOnDocker, nodeOnDocker } from './pods.ts'

const groups = '/sys/fs/cgroup'

/** Why the control group of containers cannot stand for a machine here, or false. */
export function whyNoSmallMachine(): string | false {
  return whyNoDockerd() || (existsSync(join(groups, 'memory')) ? false : 'needs the controllers of cgroup v1')
}

export type SmallMachine = NodeOnDocker & {
  readonly dataDirectory: string
  condition(type: string): NodeCondition['status'] | undefined
  /** Events of the node: `Reason: message`, in order. */
  nodeEventTexts(): readonly string[]
  /** The final status of the pod, once it is the first to be chosen; how long it then took to stop goes to the test's output. */
  evicted(name: string): Promise<PodStatus>
  /** Until the condition was reported with this status, since the one that was waited for before. */
  untilCondition(type: string, status: NodeCondition['status']): Promise<void>
}

export type SmallMachineSettings = Omit<AgentConfigurationFile, 'apiVersion' | 'kind'>

export type SmallMachineOptions = {
  /** In place of a folder of this machine's. */
  readonly dataDirectory?: string
  /** The engine never reports that a container was killed for want of memory, as for one killed outside of its own limit. */
  readonly blindEngine?: boolean
}

/** So many times faster passes follow each other, and transition periods end. */
const hurry = 4
/** Shorter waits are for pods, which are as slow as they are. */
const hurriedFromMs = 1_000

export async function smallMachine(
  t: Test & Ending,
  dockerd: TestDockerd,
  settings: SmallMachineSettings,
  { dataDirectory, blindEngine = false }: SmallMachineOptions = {},
): Promise<SmallMachine> {
  const folder = await temporaryFolder(t)
  t.teardown(async () => {
    for (const { path } of [...mountsAt(await mountPoints(), folder)].reverse()) await unmount(path)
  })
  const root = join(folder, 'root')
  await machineRoot(root, dockerd.cgroup)
  const data = dataDirectory ?? join(folder, 'data')
  await mkdir(data, { recursive: true })
  const configuration = agentConfiguration({ ...emptyAgentConfiguration, ...settings })
  const log = quietLog(t)
  const controlPlane = fakeControlPlane()
  const board = agentBoard()
  // No loop of this machine inspects the engine or the hardware.
  board.runtime.set({ ...unknownRuntime, startedMs: 0, answering: true, answeredMs: systemClock.monotonicMs() })
  board.machineHealth.set({ conditions: [], problems: [] })
  const event = nodeEvents({ controlPlane, clock: systemClock }, 'pi-01')

  const seeing = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-01' })
  const engine = blindEngine ? blind(seeing) : seeing
  const kernel = kernelLog({ root: '/', clock: systemClock, log })
  const volumes = { dataDirectory: data, memoryDirectory: join(folder, 'memory') }
  const imageDirectory = () => dockerd.rootDirectory
  const containers = assembleContainers({
    root,
    volumes,
    engine,
    imageDirectory,
    kernel,
    event,
    clock: systemClock,
    log,
  })
  const node = nodeOnDocker(t, dockerd, {
    runtime: containers.runtime,
    volumes: volumeStore(volumes),
    log,
    pressures: () => board.pressures.get() ?? [],
  })
  const pods = node.manager
  const shared = { board, write: writeEnds(board), configuration, event, log }
  const pressure = assemblePressure({
    ...shared,
    counters: agentCounters(),
    containers,
    pods,
    clock: systemClock,
    clockFor: hurried,
  })
  const inventory = await readInventory({ root, dataDirectory: data })
  const status = assembleNodeStatus({
    ...shared,
    nodeName: 'pi-01',
    inventory,
    addresses: async () => [{ type: 'InternalIP', address: '192.0.2.11' }],
    rebooted: false,
    controlPlane,
    clock: systemClock,
    random: () => 0.5,
  })
  const stopping = new AbortController()
  const loops = [kernel, ...pressure, status].map((loop) => loop.run(stopping.signal))
  t.teardown(async () => {
    stopping.abort()
    await Promise.all(loops)
  })

  const statusIn = ({ conditions = [] }: NodeStatus, type: string) =>
    conditions.find((one) => one.type === type)?.status
  const condition = (type: string) => statusIn(controlPlane.statuses.at(-1) ?? {}, type)
  let seen = 0
  const nodeEventTexts = () => controlPlane.events.map(({ reason, message }) => `${reason}: ${message}`)
  return {
    ...node,
    dataDirectory: data,
    condition,
    nodeEventTexts,
    async evicted(name) {
      await eventually(() => node.eventTexts().some((line) => line.startsWith('Evicted: ')))
      const chosenMs = performance.now()
      const status = await node.until(name, ({ phase }) => phase === 'Failed')
      t.comment(`${name} was stopped ${Math.round(performance.now() - chosenMs)} ms after it was chosen`)
      return status
    },
    untilCondition: (type, wanted) =>
      eventually(
        () => {
          const index = controlPlane.statuses.findIndex((one, i) => i >= seen && statusIn(one, type) === wanted)
          if (index >= 0) seen = index
          return index >= 0
        },
        () => `${type} is ${condition(type)}\n${nodeEventTexts().join('\n')}\n${node.eventTexts().join('\n')}`,
      ),
  }
}

/** The machine's own limit in one hierarchy: `memory.limit_in_bytes`, `pids.max`. */
export async function limitMachine(dockerd: TestDockerd, file: string, limit: number): Promise<void> {
  const folder = join(groups, file.split('.')[0] ?? '', dockerd.cgroup)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, file), String(limit))
}

/** All of this machine, but for the two hierarchies whose root the containers' group shall be. */
async function machineRoot(root: string, cgroup: string): Promise<void> {
  await mkdir(join(root, 'sys/fs/cgroup'), { recursive: true })
  for (const folder of ['proc', 'etc', 'dev', 'sys/devices', 'sys/kernel', 'sys/class']) {
    if (existsSync(join('/', folder))) await symlink(join('/', folder), join(root, folder))
  }
  for (const controller of await readdir(groups)) {
    const own = join(root, 'sys/fs/cgroup', controller)
    if (controller !== 'memory' && controller !== 'pids') {
      await symlink(join(groups, controller), own)
      continue
    }
    const group = join(groups, controller, cgroup)
    await mkdir(group, { recursive: true })
    await mkdir(own)
    for (const file of await readdir(group)) await symlink(join(group, file), join(own, file))
    // Processes name their group from the real root.
    await symlink(group, join(own, cgroup))
  }
}

function blind(engine: ContainerRuntime): ContainerRuntime {
  const listContainers: ContainerRuntime['listContainers'] = async (podUID) =>
    (await engine.listContainers(podUID)).map((container) => ({ ...container, oomKilled: false }))
  return { ...engine, listContainers }
}

/** For one loop: its long sleeps are cut short, and count as if they were not. */
function hurried(): Clock {
  let aheadMs = 0
  return {
    wallMs: systemClock.wallMs,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    async sleep(ms, signal) {
      if (ms < hurriedFromMs) return await systemClock.sleep(ms, signal)
      await systemClock.sleep(ms / hurry, signal)
      aheadMs += ms - ms / hurry
    },
  }
}
