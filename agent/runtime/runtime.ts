/** The container engine as the pod manager uses it. Only `adapters/docker/` uses Docker's own API. */

import type { Platform } from './platforms.ts'

export type ContainerKind = 'sandbox' | 'container'

/** The identity of a container, from its labels. Containers without these labels are ignored. */
export type ContainerIdentity = {
  readonly kind: ContainerKind
  readonly podNamespace: string
  readonly podName: string
  readonly podUID: string
  /** '' for the sandbox. */
  readonly containerName: string
  /** The number of earlier instances of this container: the restart count. */
  readonly attempt: number
  /** Hash of the part of the specification that the container was created from: if equal, it is adopted. */
  readonly specHash: string
  /** The pod's grace period, used to stop the container when its specification is unknown. */
  readonly gracePeriodSeconds: number
}

export type RuntimeContainer = {
  readonly id: string
  readonly identity: ContainerIdentity
  /** The sandbox whose network it uses; undefined for a sandbox. */
  readonly sandboxID: string | undefined
  readonly image: string
  /** As in the pod's status: the digest if the image came from a registry, else the engine's id. */
  readonly imageID: string
  readonly state: 'created' | 'running' | 'paused' | 'restarting' | 'exited' | 'dead'
  readonly exitCode: number
  readonly oomKilled: boolean
  /** The error of a failed start: the container then stays `created`. */
  readonly error: string
  /** RFC 3339, as reported by the engine; undefined before it happened. */
  readonly createdAt: string
  readonly startedAt: string | undefined
  readonly finishedAt: string | undefined
  /** The address of the sandbox on the pod network; undefined on the host's network and when it does not run. */
  readonly ip: string | undefined
  /** Its IPv6 address, in canonical form, where the pod network has some. */
  readonly ipv6?: string
  /** MAC address of its interface on the pod network: `02:42:0a:f4:01:05`. */
  readonly mac?: string
  /** Devices of this machine that are allocated to the container. */
  readonly devices?: readonly ContainerDevice[]
  /** The host PID of its first process; undefined when it does not run. */
  readonly pid?: number
  /** The folder with its writable layer, where the engine has one. */
  readonly layerPath?: string
  /** Its log file; rotated ones are beside it, with a number appended. */
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
  /** The rest of the full name; '' when it has none. */
  readonly domain: string
  readonly hostNetwork: boolean
  /** The range of its address (`10.42.1.0/24`); undefined: the engine's own. */
  readonly podCIDR: string | undefined
  readonly hostIPC: boolean
  /** undefined: the machine's settings. */
  readonly resolver:
    | { readonly servers: readonly string[]; readonly searches: readonly string[]; readonly options: readonly string[] }
    | undefined
  readonly hosts: readonly { readonly ip: string; readonly name: string }[]
  readonly sysctls: { readonly [name: string]: string }
  readonly ports: readonly PortMapping[]
  /** The runtime that its containers will have. Refused if the engine has none of that name. The sandbox itself has the default one. */
  readonly handler?: string
  /** Preferred address on the network that leads to other nodes: the sandbox gets another one if it is taken. */
  readonly ip?: string
  /** The same for IPv6. */
  readonly ipv6?: string
}

/** A folder or file of this machine that is mounted into a container. */
export type ContainerMount = {
  readonly source: string
  readonly target: string
  readonly readOnly: boolean
  /** Whether mounts made later below it are propagated. */
  readonly propagation: 'rprivate' | 'rslave' | 'rshared'
}

/** A device of this machine, and its path in the container. */
export type ContainerDevice = {
  readonly source: string
  readonly target: string
  /** The kernel lets the container read it only. */
  readonly readOnly?: true
}

export type ContainerOptions = {
  readonly identity: ContainerIdentity
  readonly sandboxID: string
  /** The runtime of the engine; undefined: its default. */
  readonly handler?: string
  readonly image: string
  readonly command: readonly string[] | undefined
  readonly args: readonly string[] | undefined
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly workingDir: string | undefined
  readonly tty: boolean
  readonly stdin: boolean
  /** Its standard input ends with the first client that was attached to it. */
  readonly stdinOnce?: boolean
  /** 0: no limit. Nano CPUs are CPU x 1e9. No swap is added to the memory. */
  readonly limits: { readonly nanoCPUs: number; readonly memoryBytes: number; readonly pids: number }
  readonly requests: { readonly cpuShares: number; readonly memoryBytes: number }
  readonly oomScoreAdj: number
  readonly mounts: readonly ContainerMount[]
  readonly devices: readonly ContainerDevice[]
  readonly hostPID: boolean
  readonly hostIPC: boolean
  readonly security: ContainerSecurity
  /** The containers of the pod see each other's processes; the sandbox is process 1. */
  readonly shareProcesses?: boolean
  /** It sees the processes of this container, by id. */
  readonly processesOf?: string
}

/** An AppArmor or seccomp profile: the engine's default, none, or a local one by name. */
export type GuardProfile = { readonly kind: 'standard' | 'none' } | { readonly kind: 'own'; readonly name: string }

export type ContainerSecurity = {
  /** `user` or `user:group`; undefined: the user of the image. */
  readonly user: string | undefined
  /** Supplementary groups. */
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

/** The limits that the kernel can enforce, as reported by the engine. */
export type KernelLimits = {
  /** False on Raspberry Pi OS by default: its kernel starts with the memory controller disabled. */
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
  /** `iptables`, `nftables`, either with `+firewalld`; undefined: an engine that does not report it has iptables. */
  readonly firewallBackend?: string
  /** In a stable order, that of pods without a RuntimeClass (name '') first. */
  readonly handlers: readonly EngineRuntime[]
}

/** A runtime of the engine, such as runc, and what it can do beside the usual. */
export type EngineRuntime = {
  readonly name: string
  readonly recursiveReadOnlyMounts: boolean
  readonly userNamespaces: boolean
}

/** Limits of one container's log: the engine keeps this many files of this size, and removes the oldest. */
export type LogLimits = { readonly maxBytes: number; readonly maxFiles: number }

export type ExecResult = { readonly exitCode: number | undefined; readonly output: string }

/** Credentials of a registry: either a name and a password, or a token; the others are ''. Never logged. */
export type RegistryCredentials = {
  readonly username: string
  readonly password: string
  readonly identityToken: string
}

export type PullOptions = {
  readonly signal: AbortSignal
  readonly credentials?: RegistryCredentials
  readonly stallMs: number
  /** Called for every message of the engine, this often. */
  readonly progress?: (progress: PullProgress) => void
}

export type PullProgress = {
  readonly layers: number
  /** Pulled and unpacked, or present before. */
  readonly layersDone: number
  readonly fetchedBytes: number
  /** The sum of the layers whose size is known. */
  readonly knownBytes: number
}

export type LocalImage = {
  readonly id: string
  readonly sizeBytes: number
  readonly platform: Platform
  /** Why the engine cannot use it: its record of a layer is lost. */
  readonly damage?: string
  /** Why no container may be made of it. The engine has removed it, unless a container uses it. */
  readonly refused?: string
}

export type ImageReference = {
  readonly id: string
  readonly digests: readonly string[]
  readonly tags: readonly string[]
  readonly sizeBytes: number
}

/** Every call ends within its deadline or throws RuntimeError. All calls are idempotent. */
export interface ContainerRuntime {
  /** Fails when the engine does not answer a call that pods need. */
  probe(): Promise<void>
  /** May take minutes of an engine that is well: Docker 20.10 resolves the names of registries for it. */
  info(): Promise<RuntimeInfo>
  /** All containers of this node, running or not; or those of one pod. */
  listContainers(podUID?: string): Promise<readonly RuntimeContainer[]>
  /** Creates and starts the sandbox. A sandbox that cannot be started is removed. */
  runSandbox(options: SandboxOptions): Promise<string>
  /** The image must be present: see `pullImage`. */
  createContainer(options: ContainerOptions): Promise<string>
  /** A container that cannot be started is kept, with the reason in `error`. */
  startContainer(id: string): Promise<void>
  /**
   * Sends the container's stop signal, then SIGKILL after the grace period. A container that does not run or does not exist
   * counts as stopped.
   */
  stopContainer(id: string, gracePeriodSeconds: number): Promise<void>
  /**
   * Runs a command in a running container and returns its output, up to 10 KiB. `exitCode` undefined: it took longer than
   * `timeoutMs` and was abandoned.
   */
  exec(id: string, command: readonly string[], timeoutMs: number): Promise<ExecResult>
  /** The end of a container's output, limited in lines and bytes. */
  logTail(id: string, mostLines: number, mostBytes: number): Promise<Buffer>
  /** Kills a running container. One that does not exist counts as removed. */
  removeContainer(id: string): Promise<void>
  /** undefined: it is not present. Removes an image whose configuration is too large, as `pullImage` does. */
  findImage(image: string): Promise<LocalImage | undefined>
  /** What of the files of the image with this id is damaged; undefined: nothing, or they cannot be checked. Reads each file's size: takes seconds. */
  imageDamage(id: string): Promise<string | undefined>
  /** The user of the image (`user`, `user:group`), '' for root. */
  imageUser(image: string): Promise<string>
  /**
   * Refuses an image whose configuration is too large. Ends when the image is present, when `signal` aborts, or after `stallMs` without progress; finished layers are kept.
   */
  pullImage(image: string, options: PullOptions): Promise<void>
  listImages(): Promise<readonly ImageReference[]>
  /** Ids of the images of all containers on this machine, including those of other programs, running or not. */
  imagesInUse(): Promise<ReadonlySet<string>>
  /** Removes all its names. An image that does not exist counts as removed; fails when a container uses it. */
  removeImage(image: ImageReference): Promise<void>
  /**
   * Calls the listener for changes of this node's containers, until `signal` aborts (resolves) or the stream breaks (rejects).
   * Changes before `opened` are not reported: list the containers then.
   */
  watch(listener: RuntimeListener, signal: AbortSignal): Promise<void>
}

export interface RuntimeListener {
  opened(): void
  /** A container of this pod was started, ended or was removed. */
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

/** The failed operation, its object, and a reason if callers can act on it. */
export class RuntimeError extends Error {
  override readonly name = 'RuntimeError'
  readonly reason: RuntimeErrorReason

  constructor(reason: RuntimeErrorReason, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.reason = reason
  }
}

/** The engine itself did not answer. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof RuntimeError && error.reason === 'Unreachable'
}
