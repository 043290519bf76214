/** A fleet in one process: the machine of the controller, nodes with Docker, and the network between them. */

import type { ClaimVolume } from '../../agent/pods/volumes/volume-store.ts'
import { type FakeHost, fakeHost } from '../../agent/testing/fake-host.ts'
import { fakeVolumes } from '../../agent/testing/fake-volumes.ts'
import { storyOf } from '../../daemon/log.ts'
import type { BrokerServers } from '../broker/simulated-link.ts'
import { etcdMachine } from '../etcd/simulated-etcd.ts'
import { runSimulatedAgent } from '../programs/agent-program.ts'
import type { ApiServers } from '../programs/api-transport.ts'
import { runSimulatedController } from '../programs/controller-program.ts'
import { isStartedAgain, runSharedController } from '../programs/shared-controller.ts'
import type { ContainerName, Fact } from '../story/facts.ts'
import type { Story } from '../story/story.ts'
import { beginLife, type LifeEnd, type ProgramLife } from './life.ts'
import { type MachineDisk, machineDisk } from './machine-disk.ts'
import type { MachineShape } from './machine-shape.ts'
import type { RandomSource } from './random-source.ts'
import { anyOf, servers } from './servers.ts'
import { type SharedStore, sharedStore } from './shared-store.ts'
import { type SimulatedEngine, simulatedEngine } from './simulated-engine.ts'
import { type SimulatedNetwork, simulatedNetwork } from './simulated-network.ts'
import type { SimulatedPrograms } from './simulated-programs.ts'
import type { SimulatedTime } from './simulated-time.ts'
import { type StoreContents, type StoreFile, storeFile } from './store-file.ts'
import { agentFolders, podsFolder, type VolumeData, type VolumeDisk, volumeDisk } from './volume-disk.ts'

export interface WorldNode {
  readonly name: string
  readonly engine: SimulatedEngine
  readonly disk: MachineDisk
  /** What its sensors read. */
  readonly host: FakeHost
  /** The uids of the pods that have folders on it. */
  podFolders(): readonly string[]
  readonly agent: Process
  /** Nothing is wrong with the machine and its programs. */
  isWell(): boolean
  powerCut(): void
  powerOn(): void
  /** Its system is lost while it has no power; only the volumes of claims are left. */
  reinstall(): void
}

/** A program that its service manager starts again. */
export interface Process {
  readonly isRunning: boolean
  /** How far the date of its machine is off. */
  setClock(offsetMs: number): void
  freeze(): void
  thaw(): void
  start(): void
  end(how: LifeEnd): void
}

export interface WorldController extends Process {
  readonly machine: string
  powerCut(): void
  powerOn(): void
}

/** The only controller, whose store is a file. */
export interface SingleController extends WorldController {
  readonly file: StoreFile
  /** It forgets each change at once from now on, or not. */
  forgetChanges(isForgetting: boolean): void
}

export interface World {
  readonly time: SimulatedTime
  readonly network: SimulatedNetwork
  readonly nodes: readonly WorldNode[]
  readonly controllers: readonly WorldController[]
  /** undefined: there are several. */
  readonly single: SingleController | undefined
  /** What several controllers share. */
  readonly shared: SharedStore | undefined
  /** What is stored. */
  rows(): ReturnType<StoreFile['rows']>
  readonly api: ApiServers
  /** To be called after each change of what the health of a node depends on. */
  recordHealth(): void
}

export type WorldNeeds = {
  readonly time: SimulatedTime
  readonly random: RandomSource
  readonly story: Story
  readonly machines: readonly MachineShape[]
  /** By default as the engine of tests. */
  readonly programs?: SimulatedPrograms
  /** What the store of a single controller has at the beginning. */
  readonly contents?: StoreContents
  /** More than one share a store in etcd. */
  readonly controllers: number
  /** Machines keep the data of claims. */
  readonly hasVolumes?: boolean
}

export function openWorld(needs: WorldNeeds): World {
  const { time, random, story, machines: shapes, controllers: several } = needs
  const network = simulatedNetwork(time, random.fork())
  const machines = Array.from({ length: several }, (_, i) => `controller-${i + 1}`)
  // /readyz fails where etcd does not answer, and reads may be old: a load balancer passes nothing on to it.
  const isReady = (machine: string) => !network.isCut(machine, etcdMachine) && !network.isCut(etcdMachine, machine)
  const openServers = <T>() =>
    several > 1 ? anyOf(servers<T>(network), 'controller', machines, isReady) : servers<T>(network)
  const { programs, hasVolumes = false } = needs
  const parts: Parts = { time, network, story, programs, hasVolumes, api: openServers(), brokers: openServers() }
  const { api } = parts
  const controllerRandom = random.fork()
  const single = several > 1 ? undefined : worldController(parts, controllerRandom, needs.contents)
  const shared =
    several > 1 ? sharedStore({ time, network, random: controllerRandom, record: story.record }) : undefined
  const controllers =
    shared === undefined
      ? [single].filter((one) => one !== undefined)
      : machines.map((machine) => sharedController(parts, shared, machine, controllerRandom.fork()))
  const nodes = shapes.map((shape, i) => worldNode(parts, shape, i, random.fork()))
  return {
    ...{ time, network, nodes, controllers, single, shared, api },
    rows: () => single?.file.rows() ?? shared?.rows() ?? [],
    recordHealth() {
      for (const node of nodes) {
        const isCut = controllers.some(
          ({ machine }) => network.isCut(machine, node.name) || network.isCut(node.name, machine),
        )
        const isWell = node.isWell()
        const canSave = isWell && node.disk.isWell
        story.record({ kind: 'health', node: node.name, isHealthy: isWell && !isCut, canSave })
      }
    },
  }
}

/** As RestartSec= of its unit. */
const startAgainMs = 2_000

type Parts = {
  readonly time: SimulatedTime
  readonly network: SimulatedNetwork
  readonly story: Story
  readonly api: ApiServers
  readonly brokers: BrokerServers
  readonly programs: SimulatedPrograms | undefined
  readonly hasVolumes: boolean
}

/** `run` rejects where the program ends by itself. */
function processOf(
  machine: string,
  { time, network, story }: Parts,
  random: RandomSource,
  run: (life: ProgramLife) => Promise<void>,
  /** Whether its service manager starts it again after this error. */
  isStartedAgain: (error: unknown) => boolean = () => false,
): Process {
  let life: ProgramLife | undefined
  const clock = { offsetMs: 0 }
  const start = () => {
    if (life?.isAlive) return
    const own = beginLife({ time, random: random.next, wallOffsetMs: () => clock.offsetMs })
    life = own
    own
      .within(() => run(own))
      .catch((error: unknown) => {
        own.end('killed')
        if (isStartedAgain(error)) {
          story.note(machine, `ended, and is started again: ${storyOf(error)}`)
          time.after(startAgainMs, () => void (life === own && network.isUp(machine) && start()))
          return
        }
        const because = error instanceof Error ? (error.stack ?? error.message) : String(error)
        const cause = error instanceof Error && error.cause instanceof Error ? `\n${error.cause.stack}` : ''
        story.record({ kind: 'crashed', program: machine, because: `${because}${cause}` })
      })
  }
  return {
    get isRunning() {
      return life?.isAlive === true && !life.isFrozen
    },
    setClock(offsetMs) {
      clock.offsetMs = offsetMs
    },
    freeze: () => life?.freeze(),
    thaw: () => life?.thaw(),
    start,
    end: (how) => life?.end(how),
  }
}

function worldController(parts: Parts, random: RandomSource, contents: StoreContents | undefined): SingleController {
  const { network, story, api, brokers } = parts
  const machine = 'controller'
  const file = storeFile(story.record, contents)
  let isForgetting = false
  const run = (life: ProgramLife) =>
    runSimulatedController({
      place: { life, machine },
      file,
      network,
      api,
      brokers,
      random: random.next,
      log: story.log(machine),
      record: story.record,
      forgetsChanges: () => isForgetting,
    })
  // At its start it writes, as after a restore: Restart=always of its unit.
  const program = processOf(machine, parts, random, run, () => file.isRefused)
  const own = controllerMachine(machine, network, program)
  return {
    ...own,
    get isRunning() {
      return program.isRunning
    },
    file,
    forgetChanges(next) {
      isForgetting = next
    },
    powerCut() {
      own.powerCut()
      file.powerCut()
    },
  }
}

function sharedController(parts: Parts, shared: SharedStore, machine: string, random: RandomSource): WorldController {
  const { network, story } = parts
  const { etcd, prefix } = shared
  const needs = { ...parts, etcd, prefix, random: random.next, log: story.log(machine), record: story.record }
  const run = (life: ProgramLife) => runSharedController({ ...needs, place: { life, machine } })
  return controllerMachine(machine, network, processOf(machine, parts, random, run, isStartedAgain))
}

function controllerMachine(machine: string, network: SimulatedNetwork, program: Process): WorldController {
  return {
    machine,
    get isRunning() {
      return program.isRunning
    },
    setClock: program.setClock,
    freeze: program.freeze,
    thaw: program.thaw,
    start: program.start,
    end: program.end,
    powerCut() {
      network.setUp(machine, false)
      program.end('power')
    },
    powerOn() {
      network.setUp(machine, true)
      program.start()
    },
  }
}

function worldNode(parts: Parts, shape: MachineShape, index: number, random: RandomSource): WorldNode {
  const { time, network, story, programs } = parts
  const { name } = shape
  const hasPower = () => network.isUp(name)
  const record = (fact: Fact) => {
    story.record(fact)
    if (fact.kind === 'started') claims?.use(fact)
  }
  const engine = simulatedEngine({ node: name, time, random: random.fork(), record, hasPower, programs })
  const disk = machineDisk(time, random.fork())
  const host = fakeHost()
  const volumes = fakeVolumes()
  volumes.messages = new Map()
  volumes.etc = new Map()
  let boots = 1
  let startedBoot = 0
  const jitter = random.fork()
  const claims = parts.hasVolumes ? claimsOfMachine(name, { ...parts, random: random.fork(), disk }) : undefined
  const agent = processOf(name, parts, jitter, async (life) => {
    const rebooted = startedBoot !== 0 && startedBoot !== boots
    startedBoot = boots
    await runSimulatedAgent({
      ...parts,
      ...{ place: { life, machine: name }, address: addressOf(index), bootID: `boot-${boots}-of-${name}` },
      ...{
        shape,
        host,
        rebooted,
        runtime: engine.seenBy(life),
        disk,
        volumes,
        claims,
        random: jitter.next,
        log: story.log(name),
      },
    })
  })
  return {
    ...{ name, engine, disk, host },
    podFolders() {
      const others = [...volumes.placed.keys()].map((key) => key.split('/')[0] ?? '')
      return [...new Set([...others, ...(claims?.files.names(podsFolder) ?? [])])]
    },
    agent: {
      ...agent,
      get isRunning() {
        return agent.isRunning
      },
      start: () => void (hasPower() && agent.start()),
    },
    isWell: () => network.isUp(name) && agent.isRunning && engine.isRunning,
    powerCut() {
      network.setUp(name, false)
      agent.end('power')
      engine.powerCut()
      disk.powerCut()
      claims?.files.powerCut()
    },
    reinstall() {
      engine.loseAll()
      disk.keepOnly('', new Set())
      for (const key of volumes.placed.keys()) void volumes.remove(key.split('/')[0] ?? '')
      claims?.files.loseAllBut(`${agentFolders.dataDirectory}/volumes`)
      story.record({ kind: 'reinstalled', node: name })
    },
    powerOn() {
      if (network.isUp(name)) return
      boots += 1
      network.setUp(name, true)
      engine.start()
      agent.start()
    },
  }
}

/** The claims of a machine's pods, and their data. */
export interface MachineClaims {
  readonly files: VolumeDisk
  placed(podUID: string, volume: ClaimVolume, folder: string): void
}

type MachineClaimsNeeds = Pick<Parts, 'time' | 'story'> & { readonly random: RandomSource; readonly disk: MachineDisk }

/** Each container writes to the volumes of its pod when it starts. */
function claimsOfMachine(node: string, { story, ...needs }: MachineClaimsNeeds) {
  const moved: (change: VolumeData) => void = (change) => story.record({ kind: 'data', node, ...change })
  const files = volumeDisk({ ...needs, moved })
  /** By the uid of the pod, and the folder. */
  const placed = new Map<string, Map<string, ClaimVolume>>()
  let serial = 0
  return {
    files,
    placed(podUID: string, volume: ClaimVolume, folder: string) {
      placed.set(podUID, (placed.get(podUID) ?? new Map()).set(folder, volume))
    },
    use(container: ContainerName) {
      for (const [folder, { uid, claim, claimUID = uid }] of placed.get(container.podUID) ?? []) {
        const data = files.write(folder, `${claim}/${claimUID}/${node}-${++serial}`)
        if (data === undefined) story.violated(`a container of ${container.pod} starts without the folder ${folder}`)
        else story.record({ ...container, kind: 'used', claim, claimUID, data })
      }
    },
  }
}

function addressOf(index: number): string {
  const number = index + 11
  return number < 256 ? `192.0.2.${number}` : `198.18.${number >> 8}.${number & 255}`
}
