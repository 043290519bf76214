/** The doctor's reads of the machine, the network and the agent. Every call ends within seconds, that of Docker's settings within a minute. */
import type { HardwareIdentity } from '../../api/node/hardware-identity.ts'
import type { EvictionThresholds } from '../eviction/eviction-settings.ts'
import type { Observation } from '../eviction/observations.ts'
import type { HealthSource } from '../health/checks.ts'
import type { AgentIdentity } from '../join/identity.ts'
import type { MachineRoute } from '../network/peers/home-networks.ts'
import type { WireguardState } from '../network/wireguard/wireguard-plan.ts'
import type { ConfiguredPool } from '../pods/volumes/pool-settings.ts'
import type { FileReading } from './agent-files.ts'
import type { ControllerReading } from './controller.ts'
import type { DockerFacts, DockerSilent } from './docker.ts'
import type { Fix } from './doctor-finding.ts'
import type { ImagesReading } from './images.ts'
import type { CommandLineFile } from './kernel.ts'
import type { Listener } from './ports.ts'
import type { UnitReading } from './shutdown.ts'
import type { SpaceReading } from './storage.ts'

/** Why a check of a saved tree has no answer. */
export const notSaved = 'Only saved files are inspected here, and they do not show it'

/** Paths are the machine's own, whichever root folder is inspected. Reading a file without permission throws. */
export interface MachineFiles {
  /** Undefined: the file does not exist. */
  text(path: string): Promise<string | undefined>
  /** The sorted names in a folder; empty when it does not exist. */
  names(folder: string): Promise<readonly string[]>
  mode(path: string): Promise<number | undefined>
  has(path: string): Promise<boolean>
}

export interface ExaminedMachine {
  readonly files: MachineFiles
  /** The inputs of the health checks. A failed read rejects with the reason. */
  health(): Promise<HealthSource>
  commandLineFile(path: string): Promise<CommandLineFile | undefined>
  hardware(): Promise<HardwareIdentity>
  uptimeMs(): number
  timeSynchronized(): Promise<boolean | undefined>
  /** The memory card (`mmcblk0`) that holds the root filesystem or this path; undefined when it is on another device. */
  cardOf(path: string): Promise<string | undefined>
  /** Undefined: the saved tree does not have it. */
  hostname(): Promise<string | undefined>
  /** The listeners on these ports. Undefined: the kernel shows no sockets. */
  /** IPv4 routes without the default route. */
  routes(): Promise<readonly MachineRoute[]>
  listeners(ports: readonly number[]): Promise<readonly Listener[] | undefined>
}

/** What a saved tree does not show; each answer is undefined there. */
export interface LiveMachine {
  space(paths: readonly string[]): Promise<readonly SpaceReading[]>
  docker(): Promise<DockerFacts | DockerSilent>
  /** What of Docker's images is damaged, below its root directory. Rejects where this user may not read it. */
  images(rootDirectory: string): Promise<ImagesReading>
  /** As the agent observes them, for the folders of its data and of Docker's images. */
  diskSignals(dataDirectory: string, imageDirectory: string | undefined): Promise<readonly Observation[]>
  /** Whether Docker's chain for rules of others is there; undefined: the user may not see it. */
  hasDockerChain(): Promise<boolean | undefined>
  /** The rules of iptables(8), a line each; undefined: the user may not see them, or there is no such program. */
  firewallRules(): Promise<{ readonly nat: readonly string[]; readonly filter: readonly string[] } | undefined>
  /** Why UDP port 5353 cannot be shared with other programs; undefined: it can. */
  mdnsPortProblem(): Promise<string | undefined>
  /** Undefined: there is no interface of WireGuard. Rejects where it cannot be read. */
  wireguard(): Promise<WireguardState | undefined>
  /** Undefined where systemd does not answer. */
  unit(name: string): Promise<UnitReading | undefined>
  logindDelaySeconds(): Promise<number | undefined>
  agentPid(): Promise<number | undefined>
  agentHealth(port: number): Promise<{ readonly status: number; readonly text: string } | undefined>
  controller(identity: AgentIdentity, hardware: HardwareIdentity): Promise<ControllerReading>
}

export interface AgentState {
  readonly dataPath: string
  readonly dockerSocket: string
  dataDirectory(): Promise<FileReading | undefined>
  identityFile(): Promise<FileReading | undefined>
  isWritable(): Promise<boolean | undefined>
  /** The pods that are held back after a boot loop, each as `namespace/name`. Throws when the record cannot be read. */
  heldPods(): Promise<readonly string[]>
  /** Undefined: the machine has not joined. Throws when the file cannot be read. */
  identity(): Promise<AgentIdentity | undefined>
}

export type DoctorSources = {
  readonly machine: ExaminedMachine
  /** Undefined: a saved tree is inspected. */
  readonly live: LiveMachine | undefined
  readonly agent: AgentState
  /** The configuration file in use, and the problem in it. */
  readonly configuration: () => Promise<ConfigurationReading>
  readonly nowMs: () => number
  /** Applies a fix. Throws with the reason when a step fails; the steps before it have been applied. */
  readonly apply: (fix: Fix) => Promise<void>
}

export type ConfigurationReading = {
  /** Undefined: there is no file. */
  readonly path: string | undefined
  readonly trouble: string | undefined
  readonly healthzPort: number
  readonly hasMulticastDNS: boolean
  readonly shutdownSeconds: number
  readonly pools: readonly ConfiguredPool[]
  readonly eviction: Pick<EvictionThresholds, 'evictionHard' | 'evictionSoft'>
}
