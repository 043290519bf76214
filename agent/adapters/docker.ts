/** Docker as the pod manager needs it, on dockerode. Docker's options, words and status codes stop in this folder. */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import Dockerode from 'dockerode'
import { parseImageName } from '../pods/images.ts'
import {
  type ContainerIdentity,
  type ContainerOptions,
  type ContainerRuntime,
  type ImageReference,
  type PortMapping,
  type RuntimeContainer,
  RuntimeError,
  type RuntimeInfo,
  type SandboxOptions,
} from '../pods/runtime.ts'
import { isSandboxArchitecture, sandboxImage, sandboxLayer } from '../pods/sandbox-image.ts'
import { failureOf, runtimeError } from './docker-errors.ts'
import { containerName, identityOf, labelFilter, labelsOf, sandboxOf } from './docker-labels.ts'

export type DockerSettings = {
  readonly socketPath: string
  /** Containers of other nodes' agents on the same engine are never seen. */
  readonly nodeName: string
}

const askMs = 30_000
/** Making and starting may wait for a slow card. */
const actMs = 120_000
/** A pull that gets nothing for this long is given up, as by the kubelet. */
const pullStallMs = 60_000
/** As the kubelet rotates: 10 Mi, five files. */
const logs = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '5' } }
/** The agent restarts containers, nobody else. */
const noRestart = { Name: 'no' }
const cpuPeriodUs = 100_000
const leastCpuQuotaUs = 1_000

export function dockerRuntime({ socketPath, nodeName }: DockerSettings): ContainerRuntime {
  // Said out loud, or dockerode takes them from DOCKER_HOST and its like.
  const docker = new Dockerode({ socketPath, host: undefined, protocol: 'http', timeout: undefined })
  const inspected = new Map<string, { readonly state: string; readonly container: RuntimeContainer }>()
  const imageNames = new Map<string, string>()

  const create = async (tried: string, identity: ContainerIdentity, options: Dockerode.ContainerCreateOptions) => {
    const named = (name: string) =>
      call(tried, actMs, (abortSignal) => docker.createContainer({ ...options, name, abortSignal }))
    try {
      return (await named(containerName(identity))).id
    } catch (error) {
      // One that is being removed keeps its name for a while.
      if (!(error instanceof RuntimeError) || error.reason !== 'NameTaken') throw error
      return (await named(`${containerName(identity)}_${randomBytes(4).toString('hex')}`)).id
    }
  }

  const start = async (tried: string, id: string) => {
    inspected.delete(id)
    await call(tried, actMs, (abortSignal) => docker.getContainer(id).start({ abortSignal }), 304)
  }

  const remove = async (id: string) => {
    inspected.delete(id)
    const options = (abortSignal: AbortSignal) => ({ force: true, v: true, abortSignal })
    const container = docker.getContainer(id)
    // 409: it is being removed already.
    await call(`Cannot remove container ${id}`, actMs, (signal) => container.remove(options(signal)), 404, 409)
  }

  const imageIDOf = async (id: string) => {
    const known = imageNames.get(id)
    if (known !== undefined) return known
    const image = await call(`Cannot look at image ${id}`, askMs, () => docker.getImage(id).inspect(), 404)
    const [digest] = image?.RepoDigests ?? []
    const name = digest === undefined ? `docker://${id}` : `docker-pullable://${digest}`
    imageNames.set(id, name)
    return name
  }

  const inspect = async (row: Dockerode.ContainerInfo): Promise<readonly RuntimeContainer[]> => {
    const known = inspected.get(row.Id)
    if (known?.state === row.State) return [known.container]
    const identity = identityOf(row.Labels)
    if (identity === undefined) return []
    const tried = `Cannot look at container ${row.Id}`
    const found = await call(tried, askMs, (abortSignal) => docker.getContainer(row.Id).inspect({ abortSignal }), 404)
    if (found === undefined) return []
    const container = containerOf(found, identity, await imageIDOf(found.Image))
    inspected.set(row.Id, { state: found.State.Status, container })
    return [container]
  }

  const makeSandboxImage = async () => {
    const version = await call('Cannot ask Docker for its version', askMs, () => docker.version())
    const architecture = version.Arch
    if (!isSandboxArchitecture(architecture)) throw new RuntimeError('Failed', `No sandbox image for ${architecture}`)
    const colon = sandboxImage.lastIndexOf(':')
    const stream = await call(`Cannot make ${sandboxImage}`, actMs, (abortSignal) =>
      docker.importImage(Readable.from([sandboxLayer(architecture)]), {
        repo: sandboxImage.slice(0, colon),
        tag: sandboxImage.slice(colon + 1),
        changes: ['ENTRYPOINT ["/pause"]'],
        abortSignal,
      }),
    )
    for await (const progress of messages(stream)) {
      if (typeof progress['error'] === 'string') {
        throw new RuntimeError('Failed', `Cannot make ${sandboxImage}`, { cause: new Error(progress['error']) })
      }
    }
  }

  const createSandbox = async (options: SandboxOptions) => {
    const tried = `Cannot create the sandbox of pod ${podOf(options.identity)}`
    const wanted = sandboxRequest(nodeName, options)
    try {
      return await create(tried, options.identity, wanted)
    } catch (error) {
      if (!(error instanceof RuntimeError) || error.reason !== 'ImageNotFound') throw error
      await makeSandboxImage()
      return await create(tried, options.identity, wanted)
    }
  }

  return {
    async info() {
      return infoOf(await call('Cannot ask Docker how it is', askMs, () => docker.info()))
    },

    async listContainers(podUID) {
      const filters = { label: [...labelFilter(nodeName, podUID)] }
      const rows = await call('Cannot list containers', askMs, (abortSignal) =>
        docker.listContainers({ all: true, filters, abortSignal }),
      )
      if (podUID === undefined) {
        const here = new Set(rows.map(({ Id }) => Id))
        for (const id of [...inspected.keys()]) if (!here.has(id)) inspected.delete(id)
      }
      return (await Promise.all(rows.map(inspect))).flat()
    },

    async runSandbox(options) {
      const id = await createSandbox(options)
      try {
        await start(`Cannot start the sandbox of pod ${podOf(options.identity)}`, id)
      } catch (error) {
        await remove(id)
        throw error
      }
      return id
    },

    createContainer(options) {
      const { identity } = options
      const tried = `Cannot create container ${identity.containerName} of pod ${podOf(identity)}`
      return create(tried, identity, containerRequest(nodeName, options))
    },

    startContainer: (id) => start(`Cannot start container ${id}`, id),

    async stopContainer(id, gracePeriodSeconds) {
      const deadlineMs = gracePeriodSeconds * 1000 + askMs
      inspected.delete(id)
      await call(
        `Cannot stop container ${id}`,
        deadlineMs,
        (abortSignal) => docker.getContainer(id).stop({ t: gracePeriodSeconds, abortSignal }),
        304,
        404,
      )
      inspected.delete(id)
    },

    removeContainer: remove,

    async hasImage(image) {
      const found = await call(`Cannot look for image ${image}`, askMs, () => docker.getImage(image).inspect(), 404)
      return found !== undefined
    },

    async pullImage(image, signal) {
      const name = parseImageName(image)
      if (name === undefined) throw new RuntimeError('InvalidImageName', `Not an image name: ${image}`)
      await pull(docker, image, { fromImage: name.repository, tag: name.digest ?? name.tag ?? 'latest' }, signal)
    },

    async listImages() {
      const images = await call('Cannot list images', askMs, (abortSignal) => docker.listImages({ abortSignal }))
      return images.map(
        ({ Id, RepoDigests, RepoTags, Size }): ImageReference => ({
          id: Id,
          digests: RepoDigests ?? [],
          tags: (RepoTags ?? []).filter((tag) => tag !== '<none>:<none>'),
          sizeBytes: Size,
        }),
      )
    },

    async watch({ opened, changed }, signal) {
      const tried = 'Cannot watch Docker'
      const filters = {
        type: ['container'],
        label: [...labelFilter(nodeName)],
        event: ['start', 'die', 'oom', 'destroy', 'pause', 'unpause'],
      }
      try {
        const stream = await docker.getEvents({ filters: JSON.stringify(filters), abortSignal: signal })
        inspected.clear()
        opened()
        for await (const { Actor } of messages(stream)) {
          const { ID, Attributes } = (Actor ?? {}) as {
            readonly ID?: string
            readonly Attributes?: { [name: string]: string }
          }
          inspected.delete(ID ?? '')
          const podUID = identityOf(Attributes ?? {})?.podUID
          if (podUID !== undefined) changed(podUID)
        }
        throw new Error('The stream of events ended')
      } catch (error) {
        if (!signal.aborted) throw runtimeError(tried, error)
      }
    },
  }
}

async function pull(
  docker: Dockerode,
  image: string,
  source: { readonly fromImage: string; readonly tag: string },
  signal: AbortSignal,
): Promise<void> {
  const tried = `Cannot pull image ${image}`
  const stalled = new AbortController()
  const stop = AbortSignal.any([signal, stalled.signal])
  const watchdog = setTimeout(() => stalled.abort(), pullStallMs)
  try {
    const stream = await docker.createImage({ ...source, abortSignal: stop })
    for await (const progress of messages(stream)) {
      watchdog.refresh()
      if (typeof progress['error'] === 'string') throw new Error(progress['error'])
    }
  } catch (error) {
    const { status, text } = failureOf(error)
    if (signal.aborted) throw new RuntimeError('ImagePull', tried, { cause: new Error('It was called off') })
    if (stalled.signal.aborted) {
      const cause = new Error(`No progress for ${pullStallMs / 1000} s`)
      throw new RuntimeError('ImagePull', tried, { cause })
    }
    if (status === undefined && isLinkError(error)) throw runtimeError(tried, error)
    throw new RuntimeError('ImagePull', tried, { cause: new Error(text) })
  } finally {
    clearTimeout(watchdog)
  }
}

/** The engine itself did not answer, as against the registry behind it. */
function isLinkError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error
}

/**
 * Ends within `ms`, whatever becomes of the answer: dockerode waits for ever for the rest of one that was cut off.
 * The statuses in `fine` say that the work was done before: the answer is then undefined.
 */
async function call<T>(tried: string, ms: number, work: (abortSignal: AbortSignal) => Promise<T>): Promise<T>
async function call<T>(
  tried: string,
  ms: number,
  work: (abortSignal: AbortSignal) => Promise<T>,
  ...fine: readonly number[]
): Promise<T | undefined>
async function call<T>(
  tried: string,
  ms: number,
  work: (abortSignal: AbortSignal) => Promise<T>,
  ...fine: readonly number[]
): Promise<T | undefined> {
  const deadline = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`Docker did not answer within ${ms / 1000} s`))
      deadline.abort()
    }, ms)
  })
  try {
    return await Promise.race([work(deadline.signal), late])
  } catch (error) {
    if (fine.includes(failureOf(error).status ?? 0)) return undefined
    throw runtimeError(tried, error)
  } finally {
    clearTimeout(timer)
  }
}

type Message = { readonly [name: string]: unknown }

/** One JSON object a line. */
async function* messages(stream: NodeJS.ReadableStream): AsyncIterable<Message> {
  let rest = ''
  stream.setEncoding('utf8')
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as Message
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as Message
}

function sandboxRequest(nodeName: string, { identity, hostname, hostNetwork, ports }: SandboxOptions) {
  return {
    Image: sandboxImage,
    Labels: labelsOf(nodeName, identity),
    ...(hostNetwork ? {} : { Hostname: hostname }),
    // It knows no other: an engine that stops would wait for it in vain.
    StopSignal: 'SIGKILL',
    ExposedPorts: Object.fromEntries(ports.map((port) => [portKey(port), {}])),
    HostConfig: {
      NetworkMode: hostNetwork ? 'host' : 'default',
      IpcMode: 'shareable',
      PortBindings: bindings(ports),
      CpuShares: 2,
      ReadonlyRootfs: true,
      LogConfig: { Type: 'none', Config: {} },
      RestartPolicy: noRestart,
    },
  }
}

function containerRequest(nodeName: string, options: ContainerOptions): Dockerode.ContainerCreateOptions {
  const { identity, sandboxID, command, args, limits, requests } = options
  const joined = `container:${sandboxID}`
  return {
    Image: options.image,
    Labels: labelsOf(nodeName, identity, sandboxID),
    ...(command === undefined ? {} : { Entrypoint: [...command] }),
    ...(args === undefined ? {} : { Cmd: [...args] }),
    ...(options.workingDir === undefined ? {} : { WorkingDir: options.workingDir }),
    Env: options.env.map(({ name, value }) => `${name}=${value}`),
    Tty: options.tty,
    OpenStdin: options.stdin,
    HostConfig: {
      NetworkMode: joined,
      IpcMode: joined,
      CpuShares: requests.cpuShares,
      // Not NanoCpus: Docker refuses more of those than the machine has, Kubernetes does not.
      ...(limits.nanoCPUs === 0
        ? {}
        : {
            CpuPeriod: cpuPeriodUs,
            CpuQuota: Math.max(leastCpuQuotaUs, Math.round((limits.nanoCPUs / 1e9) * cpuPeriodUs)),
          }),
      ...(limits.memoryBytes === 0 ? {} : { Memory: limits.memoryBytes, MemorySwap: limits.memoryBytes }),
      OomScoreAdj: options.oomScoreAdj,
      LogConfig: logs,
      RestartPolicy: noRestart,
    },
  }
}

function portKey({ containerPort, protocol }: PortMapping): string {
  return `${containerPort}/${protocol.toLowerCase()}`
}

function bindings(ports: readonly PortMapping[]): { [port: string]: { HostIp: string; HostPort: string }[] } {
  const byPort: { [port: string]: { HostIp: string; HostPort: string }[] } = {}
  for (const port of ports) {
    const binding = { HostIp: port.hostIP, HostPort: String(port.hostPort) }
    byPort[portKey(port)] = [...(byPort[portKey(port)] ?? []), binding]
  }
  return byPort
}

function containerOf(
  { Id, State, Config, Created, NetworkSettings }: Dockerode.ContainerInspectInfo,
  identity: ContainerIdentity,
  imageID: string,
): RuntimeContainer {
  const [ip] = Object.values(NetworkSettings.Networks).flatMap(({ IPAddress }) => IPAddress || [])
  return {
    id: Id,
    identity,
    sandboxID: sandboxOf(Config.Labels),
    image: Config.Image,
    imageID,
    state: stateOf(State.Status),
    exitCode: State.ExitCode,
    oomKilled: State.OOMKilled,
    error: State.Error,
    createdAt: Created,
    startedAt: instant(State.StartedAt),
    finishedAt: instant(State.FinishedAt),
    ip,
  }
}

function stateOf(status: string): RuntimeContainer['state'] {
  switch (status) {
    case 'created':
    case 'running':
    case 'paused':
    case 'restarting':
    case 'exited':
      return status
    default: // dead, removing
      return 'dead'
  }
}

/** Docker writes the year one for what has not happened. */
function instant(text: string): string | undefined {
  return text.startsWith('0001-') || text === '' ? undefined : text
}

function infoOf(info: { readonly [name: string]: unknown }): RuntimeInfo {
  return {
    version: `docker://${info['ServerVersion']}`,
    rootDirectory: String(info['DockerRootDir']),
    cgroupVersion: String(info['CgroupVersion'] ?? '1'),
    storageDriver: String(info['Driver']),
  }
}

function podOf({ podNamespace, podName }: ContainerIdentity): string {
  return `${podNamespace}/${podName}`
}
