/** What the pod manager needs of a container engine, in pods' words. Docker's own stop at `adapters/docker.ts`. */

import type { Platform } from './platforms.ts'

export type ContainerKind = 'sandbox' | 'container'

/** The identity of a container, from its labels. Containers without these labels are not ours and are never seen. */
export type ContainerIdentity = {
  readonly kind: ContainerKind
  readonly podNamespace: string
  readonly podName: string
  readonly podUID: string
  /** '' for the sandbox. */
  readonly containerName: string
  /** How often this container of the pod was started before: the restart count. */
  readonly attempt: number
  /** Fingerprint of the part of the specification it was made from: equal means it may be adopted. */
  readonly specHash: string
  /** The pod's own, for stopping it when its specification is not known any more. */
  readonly gracePeriodSeconds: number
}

export type RuntimeContainer = {
  readonly id: string
  readonly identity: ContainerIdentity
  /** Whose network it is on; undefined for a sandbox. */
  readonly sandboxID: string | undefined
  readonly image: string
  /** As Kubernetes shows it: by digest where the image came from a registry, else by the engine's own id. */
  readonly imageID: string
  readonly state: 'created' | 'running' | 'paused' | 'restarting' | 'exited' | 'dead'
  readonly exitCode: number
  readonly oomKilled: boolean
  /** The engine's error when it could not start it: it then stays `created`. */
  readonly error: string
  /** RFC 3339, as the engine gives them; undefined when it has not happened. */
  readonly createdAt: string
  readonly startedAt: string | undefined
  readonly finishedAt: string | undefined
  /** Of the sandbox, on the network it was given; undefined on the host's network and when not running. */
  readonly ip: string | undefined
  /** Of this machine, given to it alone. */
  readonly devices?: readonly string[]
  /** Its first process, as this machine counts; undefined when it does not run. */
  readonly pid?: number
  /** The folder of what it wrote into its image, where the engine keeps that in one. */
  readonly layerPath?: string
  /** Its log file; older ones are beside it, with a number appended. */
  readonly logPath?: string
}

export type PortMapping = {
  readonly containerPort: number
  readonly hostPort: number
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly hostIP: string
}

export type SandboxOptions = {
  readonly identity: ContainerIdentity
  readonly hostname: string
  /** The rest of its full name; '' when it has none. */
  readonly domain: string
  readonly hostNetwork: boolean
  /** Where its address is from (`10.42.1.0/24`); undefined: from the engine's own. */
  readonly podCIDR: string | undefined
  readonly hostIPC: boolean
  /** undefined: as the machine does. */
  readonly resolver:
    | { readonly servers: readonly string[]; readonly searches: readonly string[]; readonly options: readonly string[] }
    | undefined
  readonly hosts: readonly { readonly ip: string; readonly name: string }[]
  readonly sysctls: { readonly [name: string]: string }
  readonly ports: readonly PortMapping[]
}

/** A folder or file of this machine, as a container sees it. */
export type ContainerMount = {
  readonly source: string
  readonly target: string
  readonly readOnly: boolean
  /** Whether what is mounted below it later reaches the other side. */
  readonly propagation: 'rprivate' | 'rslave' | 'rshared'
}

export type ContainerOptions = {
  readonly identity: ContainerIdentity
  readonly sandboxID: string
  readonly image: string
  readonly command: readonly string[] | undefined
  readonly args: readonly string[] | undefined
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly workingDir: string | undefined
  readonly tty: boolean
  readonly stdin: boolean
  /** Its standard input ends with the first client that was attached to it. */
  readonly stdinOnce?: boolean
  /** 0: no limit. Nano CPUs are CPU x 1e9. Of memory there is no swap beside it. */
  readonly limits: { readonly nanoCPUs: number; readonly memoryBytes: number; readonly pids: number }
  readonly requests: { readonly cpuShares: number; readonly memoryBytes: number }
  readonly oomScoreAdj: number
  readonly mounts: readonly ContainerMount[]
  readonly devices: readonly string[]
  readonly hostPID: boolean
  readonly hostIPC: boolean
  readonly security: ContainerSecurity
  /** The containers of the pod see each other's processes; the sandbox is process 1. */
  readonly shareProcesses?: boolean
  /** It sees the processes of this container, by id. */
  readonly processesOf?: string
}

/** A profile of the kernel's guards: the engine's own, none, or one of this machine by its name. */
export type GuardProfile = { readonly kind: 'standard' | 'none' } | { readonly kind: 'own'; readonly name: string }

export type ContainerSecurity = {
  /** `user` or `user:group`; undefined: the image's. */
  readonly user: string | undefined
  /** Further groups. */
  readonly groups: readonly number[]
  readonly addCapabilities: readonly string[]
  readonly dropCapabilities: readonly string[]
  readonly privileged: boolean
  readonly readOnlyRootFilesystem: boolean
  readonly mayGainPrivileges: boolean
  readonly seccomp: GuardProfile
  readonly appArmor: GuardProfile
  /** Parts of the SELinux label, such as `level`; an engine without SELinux ignores them. */
  readonly seLinux: { readonly [part: string]: string }
}

/** What the kernel can be asked to hold a container to, as the engine sees it. */
export type KernelLimits = {
  /** Not on Raspberry Pi OS as it ships: its kernel starts with the memory controller off. */
  readonly memoryLimit: boolean
  readonly swapLimit: boolean
  readonly pidsLimit: boolean
  readonly cpuCfsQuota: boolean
  /** Without it profiles are not enforced, and the engine does not report that. Undefined: unknown. */
  readonly appArmor?: boolean
}

export type RuntimeInfo = KernelLimits & {
  /** `docker://20.10.24` */
  readonly version: string
  readonly rootDirectory: string
  readonly cgroupVersion: string
  readonly storageDriver: string
}

export type ExecResult = { readonly exitCode: number | undefined; readonly output: string }

/** For a registry. Either a name and a password, or a token; the other is ''. Never logged. */
export type RegistryCredentials = {
  readonly username: string
  readonly password: string
  readonly identityToken: string
}

export type PullOptions = {
  readonly signal: AbortSignal
  readonly credentials?: RegistryCredentials
  readonly stallMs: number
  /** Called often: with every piece. */
  readonly progress?: (progress: PullProgress) => void
}

export type PullProgress = {
  readonly layers: number
  /** Fetched and unpacked, or here before. */
  readonly layersDone: number
  readonly fetchedBytes: number
  /** Of the layers whose size is known so far. */
  readonly knownBytes: number
}

export type LocalImage = { readonly id: string; readonly sizeBytes: number; readonly platform: Platform }

export type ImageReference = {
  readonly id: string
  readonly digests: readonly string[]
  readonly tags: readonly string[]
  readonly sizeBytes: number
}

/** Every call ends within its deadline or throws RuntimeError. Doing a thing twice is doing it once. */
export interface ContainerRuntime {
  /** Fails when the engine does not answer. */
  info(): Promise<RuntimeInfo>
  /** Everything of ours on this machine, running or not, of this node only; or all of one pod. */
  listContainers(podUID?: string): Promise<readonly RuntimeContainer[]>
  /** Makes it and starts it. When it cannot be started nothing is left behind. */
  runSandbox(options: SandboxOptions): Promise<string>
  /** The image must be there: see `pullImage`. */
  createContainer(options: ContainerOptions): Promise<string>
  /** When it cannot be started it stays, with the reason in `error`. */
  startContainer(id: string): Promise<void>
  /** The container's stop signal, then SIGKILL after the grace period. Not running or gone counts as stopped. */
  stopContainer(id: string, gracePeriodSeconds: number): Promise<void>
  /**
   * Runs a command in a container that runs and gives what it wrote, up to 10 KiB. `exitCode` undefined: it took longer
   * than `timeoutMs` and was left to itself.
   */
  exec(id: string, command: readonly string[], timeoutMs: number): Promise<ExecResult>
  /** The end of what a container wrote, at most so many lines and bytes. */
  logTail(id: string, mostLines: number, mostBytes: number): Promise<Buffer>
  /** Gone counts as removed. Kills what still runs. */
  removeContainer(id: string): Promise<void>
  /** undefined: it is not here. */
  findImage(image: string): Promise<LocalImage | undefined>
  /** Whom the image runs as (`user`, `user:group`), '' for root. */
  imageUser(image: string): Promise<string>
  /** Ends when the image is there, when `signal` aborts, or when nothing comes for `stallMs`; finished layers stay. */
  pullImage(image: string, options: PullOptions): Promise<void>
  listImages(): Promise<readonly ImageReference[]>
  /** Ids of the images of all containers on this machine, also of those that are not ours, running or not. */
  imagesInUse(): Promise<ReadonlySet<string>>
  /** Under all its names. Gone counts as removed; fails when a container uses it. */
  removeImage(image: ImageReference): Promise<void>
  /**
   * Calls the listener about changes of our containers, until `signal` aborts (it resolves) or the stream breaks (it rejects).
   * Changes before `opened` are not reported: list then.
   */
  watch(listener: RuntimeListener, signal: AbortSignal): Promise<void>
}

export interface RuntimeListener {
  opened(): void
  /** A container of this pod started, died or went. */
  changed(podUID: string): void
}

export type RuntimeErrorReason =
  | 'Unreachable'
  | 'ImageNotFound'
  | 'InvalidImageName'
  | 'ImagePull'
  | 'PortTaken'
  | 'NameTaken'
  | 'NotFound'
  | 'Failed'

/** What was tried, on what, and which of the few reasons a caller can act on it was. */
export class RuntimeError extends Error {
  override readonly name = 'RuntimeError'
  readonly reason: RuntimeErrorReason

  constructor(reason: RuntimeErrorReason, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.reason = reason
  }
}

/** The engine itself did not answer, whatever it was asked. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof RuntimeError && error.reason === 'Unreachable'
}
