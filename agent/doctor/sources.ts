/** What the doctor reads of the machine, the network and the agent. Every call ends within seconds. */
import type { HardwareIdentity } from '../../api/node/hardware-identity.ts'
import type { HealthSource } from '../health/checks.ts'
import type { AgentIdentity } from '../join/identity.ts'
import type { FileReading } from './agent-files.ts'
import type { ControllerReading } from './controller.ts'
import type { DockerFacts, DockerSilent } from './docker.ts'
import type { Fix } from './doctor-finding.ts'
import type { CommandLineFile } from './kernel.ts'
import type { Listener } from './ports.ts'
import type { UnitReading } from './shutdown.ts'
import type { SpaceReading } from './storage.ts'

/** Why a saved tree has no answer. */
export const notSaved = 'Only saved files are inspected here, and they do not show it'

/** Paths are the machine's own, whatever folder it is looked at in. A file that may not be read: throws. */
export interface MachineFiles {
  /** Undefined: there is none. */
  text(path: string): Promise<string | undefined>
  /** Names in a folder, in order; none when there is no such folder. */
  names(folder: string): Promise<readonly string[]>
  mode(path: string): Promise<number | undefined>
  has(path: string): Promise<boolean>
}

export interface ExaminedMachine {
  readonly files: MachineFiles
  /** What the checks of health read. A reading that cannot be had rejects with the reason. */
  health(): Promise<HealthSource>
  commandLineFile(path: string): Promise<CommandLineFile | undefined>
  hardware(): Promise<HardwareIdentity>
  uptimeMs(): number
  timeSynchronized(): Promise<boolean | undefined>
  /** `mmcblk0` when that is where the root filesystem, or what holds this path, is. */
  cardOf(path: string): Promise<string | undefined>
  /** Undefined: it was not saved. */
  hostname(): Promise<string | undefined>
  /** On these ports. Undefined: the kernel shows none. */
  listeners(ports: readonly number[]): Promise<readonly Listener[] | undefined>
}

/** What cannot be seen in a saved tree; each answer is undefined there. */
export interface LiveMachine {
  space(paths: readonly string[]): Promise<readonly SpaceReading[]>
  docker(): Promise<DockerFacts | DockerSilent>
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
  /** The pods that are held back because the machine went down with them: `namespace/name` each. Throws when it cannot be read. */
  heldPods(): Promise<readonly string[]>
  /** Undefined: not joined. Throws when it cannot be read. */
  identity(): Promise<AgentIdentity | undefined>
}

export type DoctorSources = {
  readonly machine: ExaminedMachine
  /** Undefined: a saved tree is looked at. */
  readonly live: LiveMachine | undefined
  readonly agent: AgentState
  /** The file that counts, and what is wrong with it. */
  readonly configuration: () => Promise<ConfigurationReading>
  readonly nowMs: () => number
  /** Throws with the reason when a step of it cannot be done; the steps before it are done then. */
  readonly apply: (fix: Fix) => Promise<void>
}

export type ConfigurationReading = {
  /** Undefined: there is no file. */
  readonly path: string | undefined
  readonly trouble: string | undefined
  readonly healthzPort: number
  readonly shutdownSeconds: number
}
