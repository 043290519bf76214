/** ContainerRuntime on Docker, with dockerode. Only this folder uses Docker's options, terms and status codes. */
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { whyUnreachable } from '../../../api/network/host-port-address.ts'
import { isWithin } from '../../../api/text/cidr.ts'
import { isInIPv6Range } from '../../../api/text/ipv6-range.ts'
import {
  type ContainerRuntime,
  isUnreachable,
  type LogLimits,
  RuntimeError,
  type SandboxOptions,
} from '../../runtime/runtime.ts'
import type { EngineStreams } from '../../sessions/engine-streams.ts'
import { readRoutes } from '../kernel/host-routes.ts'
import { hasRuntime, infoOf, infoShape } from './answers.ts'
import { askMs, call } from './call.ts'
import type { EngineReader } from './connection.ts'
import { containerCalls, podOf } from './container-calls.ts'
import { dockerEngine } from './engine.ts'
import { watchContainers } from './events.ts'
import { dockerImages } from './images.ts'
import { containerInspections } from './inspections.ts'
import type { JsonShape } from './json-reader.ts'
import { podNetwork, type WantedNetwork } from './network.ts'
import { execute, logTail } from './output.ts'
import { containerRequest } from './requests.ts'

export type DockerSettings = {
  readonly socketPath: string
  /** Containers of other nodes' agents on the same engine are ignored. */
  readonly nodeName: string
  /** The folder of the seccomp profiles that pods may name. */
  readonly seccompDirectory?: string
  /** Default: the kubelet's. */
  readonly logs?: LogLimits
  /** The kernel's file of IPv4 routes. */
  readonly root?: string
  readonly podNetwork?: PodNetworkLink
}

/** How pods are connected with those of other nodes. */
export type PodNetworkLink = {
  readonly wanted: () => WantedNetwork
  /** Resolves when the rules, routes and names are there that a pod needs, or after some seconds. */
  readonly prepared: () => Promise<void>
  /** Before the first network with IPv6: see `PodNetworkNeeds`. */
  readonly prepareIPv6?: () => Promise<void>
  /** Keeps IPv6 away from the pods on this bridge, or leads it through rules; where that fails, the node reports it. */
  readonly closeIPv6: (bridge: string) => Promise<void>
  /** Sets the ports of this bridge up for pods that call their own Service. */
  readonly reflect: (bridge: string) => Promise<void>
}

const withinNode: PodNetworkLink = {
  wanted: () => ({ mode: 'node', podsMayMove: false }),
  prepared: async () => undefined,
  closeIPv6: async () => undefined,
  reflect: async () => undefined,
}

export interface DockerRuntime extends ContainerRuntime {
  /** See `PodNetwork.problem`. */
  podNetworkProblem(): Promise<string | undefined>
  /** See `PodNetwork.adjust`; then all ports of the network of pods are set up. */
  adjustPodNetwork(): Promise<void>
  /** Loaded with the first call: an agent without sessions does without. */
  streams(): Promise<EngineStreams>
}

/** containerLogMaxSize and containerLogMaxFiles (pkg/kubelet/apis/config/v1beta1/defaults.go). */
const usualLogs: LogLimits = { maxBytes: 10 * 1024 ** 2, maxFiles: 5 }

/** Without names of registries that can be resolved, Docker 20.10 takes 20 to 40 s for /info. */
const infoMs = 120_000
const anyShape = { list: { fields: {} } } as const satisfies JsonShape

export function dockerRuntime(settings: DockerSettings): DockerRuntime {
  const { socketPath, nodeName, seccompDirectory, logs = usualLogs, root = '/' } = settings
  const engine = dockerEngine(socketPath)
  const { docker, answers } = engine
  const { wanted, prepared, prepareIPv6, closeIPv6, reflect } = settings.podNetwork ?? withinNode
  const network = podNetwork({ engine, nodeName, routes: async () => readRoutes(root), wanted, prepareIPv6 })
  const { imageIDOf, makeSandboxImage, ...images } = dockerImages(engine)
  const inspections = containerInspections(answers, nodeName, imageIDOf)
  const { create, createSandbox, start, stop, remove, mayProtect } = containerCalls({
    docker,
    nodeName,
    makeSandboxImage,
    forget: inspections.forget,
  })

  const startSandbox = async (options: SandboxOptions, on: Parameters<typeof createSandbox>[1]): Promise<string> => {
    const id = await createSandbox(options, on)
    try {
      await start(`Cannot start the sandbox of pod ${podOf(options.identity)}`, id)
      if (on !== undefined && on.mode !== 'node') await reflect(on.bridge)
      if (!options.hostNetwork && !network.isWanted(on)) throw networkChanged(podOf(options.identity))
    } catch (error) {
      network.invalidate()
      await remove(id)
      throw error
    }
    return id
  }

  return {
    ...images,

    podNetworkProblem: network.problem,

    async adjustPodNetwork() {
      for (const bridge of await network.adjust()) {
        await closeIPv6(bridge)
        await reflect(bridge)
      }
    },

    async streams() {
      const { containerStreams } = await import('./container-streams.ts')
      return containerStreams(engine, settings.socketPath)
    },

    probe: () => probeEngine(answers),

    async info() {
      return infoOf(await engineInfo(answers))
    },

    listContainers: inspections.list,

    async runSandbox(options) {
      if (options.handler !== undefined) await refuseUnknownRuntime(answers, options.handler)
      const { ip: _ip, ipv6: _ipv6, ...anyAddress } = options
      const on = options.podCIDR === undefined ? undefined : await network.ensure(options.podCIDR)
      if (on === undefined || on.mode === 'node') return await startSandbox(anyAddress, on)
      refuseIPv6Ports(options, on.mode === 'dual')
      await prepared()
      await closeIPv6(on.bridge)
      const addresses = lastAddresses(options, on.ipv6CIDR)
      if (addresses === undefined) return await startSandbox(anyAddress, on)
      try {
        return await startSandbox({ ...anyAddress, ...addresses }, on)
      } catch (error) {
        if (isUnreachable(error)) throw error
        return await startSandbox(anyAddress, on)
      }
    },

    async createContainer(options) {
      const { identity } = options
      const tried = `Cannot create container ${identity.containerName} of pod ${podOf(identity)}`
      const unprotected = options.oomScoreAdj < 0 && !(await mayProtect())
      const { seccomp } = options.security
      const profile = seccomp.kind === 'own' ? await readProfile(seccompDirectory, seccomp.name) : undefined
      const request = containerRequest(nodeName, unprotected ? { ...options, oomScoreAdj: 0 } : options, logs, profile)
      return await create(tried, identity, request)
    },

    startContainer: (id) => start(`Cannot start container ${id}`, id),

    stopContainer: stop,

    exec: (id, command, timeoutMs) => execute(engine, id, command, timeoutMs),

    logTail: (id, mostLines, mostBytes) => logTail(engine, id, mostLines, mostBytes),

    removeContainer: remove,

    watch: (listener, signal) => watchContainers(answers, nodeName, inspections, listener, signal),
  }
}

/** Those that the pod had, if they are of the network. */
function lastAddresses({ ip, ipv6, podCIDR = '' }: SandboxOptions, ipv6CIDR = '') {
  if (ip === undefined || !isWithin(ip, podCIDR)) return undefined
  return { ip, ...(ipv6 !== undefined && isInIPv6Range(ipv6, ipv6CIDR) && { ipv6 }) }
}

/** The loop that moves pods to another network did not find this one, so it would stay on that of before. */
function networkChanged(pod: string): RuntimeError {
  const tried = `Cannot start the sandbox of pod ${pod}`
  return new RuntimeError(
    'Failed',
    `${tried}: the network of pods changed meanwhile (it is started again on the new one)`,
  )
}

/** Lists one container: /_ping is answered also while all else hangs, and /info may take a minute of an engine that is well. */
async function probeEngine(answers: EngineReader): Promise<void> {
  await call('Cannot list containers', askMs, (signal) => answers.read('/containers/json?limit=1', anyShape, signal))
}

function engineInfo(answers: EngineReader) {
  return call('Cannot read Docker info', infoMs, (signal) => answers.read('/info', infoShape, signal))
}

/** As containerd words it. A runtime that is missing would be found only with the first container. */
async function refuseUnknownRuntime(answers: EngineReader, handler: string): Promise<void> {
  const info = await engineInfo(answers)
  if (hasRuntime(info, handler)) return
  const remedy = `add it to "runtimes" in /etc/docker/daemon.json, and reload Docker`
  throw new RuntimeError('Failed', `no runtime for "${handler}" is configured (${remedy})`)
}

/** Rejects a pod with a host port that no client could reach. */
function refuseIPv6Ports({ identity, ports }: SandboxOptions, hasIPv6: boolean): void {
  const reasonOf = (hostIP: string) =>
    hasIPv6 ? whyUnreachable(hostIP) : 'an IPv6 address, which pods of this node do not have'
  const port = ports.find(({ hostIP }) => isIPv6(hostIP) && reasonOf(hostIP) !== undefined)
  if (port === undefined) return
  const tried = `Cannot start the sandbox of pod ${podOf(identity)}`
  const because = `hostIP ${port.hostIP} of its hostPort ${port.hostPort} is ${reasonOf(port.hostIP)} (leave hostIP out, or set ${hasIPv6 ? 'another' : 'an IPv4'} address of the node)`
  throw new RuntimeError('Failed', `${tried}: ${because}`)
}

async function readProfile(folder: string | undefined, name: string): Promise<string> {
  try {
    if (folder === undefined || name.split('/').includes('..')) throw new Error('there is no such profile')
    return await readFile(join(folder, name), 'utf8')
  } catch (cause) {
    throw new RuntimeError('Failed', `Cannot read seccomp profile ${name} in ${folder}`, { cause })
  }
}
