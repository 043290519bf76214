/** Docker as the pod manager needs it, on dockerode. Docker's options, words and status codes stop in this folder. */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { inspect } from 'node:util'
import Dockerode from 'dockerode'
import { sandboxImage } from '../../pods/images/sandbox-image.ts'
import {
  type ContainerIdentity,
  type ContainerRuntime,
  isUnreachable,
  type RuntimeContainer,
  RuntimeError,
  type SandboxOptions,
} from '../../pods/runtime/runtime.ts'
import { readRoutes } from '../kernel/host-routes.ts'
import { containerOf, infoOf } from './answers.ts'
import { actMs, askMs, call, messages, runtimeError } from './call.ts'
import { dockerImages } from './images.ts'
import { containerName, identityOf, labelFilter } from './labels.ts'
import { podNetwork } from './network.ts'
import { execute, logTail } from './output.ts'
import { containerRequest, sandboxRequest } from './requests.ts'

export type DockerSettings = {
  readonly socketPath: string
  /** Containers of other nodes' agents on the same engine are never seen. */
  readonly nodeName: string
  /** Where the seccomp profiles are that pods may ask for by name. */
  readonly seccompDirectory?: string
  /** Where the kernel shows the machine's routes. */
  readonly root?: string
}

export interface DockerRuntime extends ContainerRuntime {
  /** See `PodNetwork.problem`. */
  podNetworkProblem(): Promise<string | undefined>
}

export function dockerRuntime({ socketPath, nodeName, seccompDirectory, root = '/' }: DockerSettings): DockerRuntime {
  // A dockerd that shuts down closes its door first, but goes on serving who is inside: containers started then are
  // left behind broken. So no connection is kept for the next call. The rest dockerode would take from DOCKER_HOST.
  // With each call dockerode describes everything about it, this too, to a log that nobody reads: with a hundred calls
  // under way that took minutes.
  // Yet it is not told so: of a request that says `Connection: close` Docker does not read the body, which nobody needs,
  // and so never sees that we hung up. A pull that was called off would go on for ever.
  const agent = Object.assign(new Agent({ keepAlive: true }), {
    keepSocketAlive: () => false,
    [inspect.custom]: () => 'connections to Docker',
  })
  const link = { socketPath, agent, host: undefined, protocol: 'http', timeout: undefined } as const
  const docker = new Dockerode(link)
  const network = podNetwork(docker, nodeName, () => readRoutes(root))
  const inspected = new Map<string, { readonly state: string; readonly container: RuntimeContainer }>()
  const { imageIDOf, makeSandboxImage, ...images } = dockerImages(docker)
  let protects: boolean | undefined

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

  const look = async (row: Dockerode.ContainerInfo): Promise<readonly RuntimeContainer[]> => {
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

  /**
   * An engine without CAP_SYS_RESOURCE (inside another container, say) cannot start what it is to protect from the
   * kernel. Asked once, by trying, when a container first wants it.
   */
  const mayProtect = async (): Promise<boolean> => {
    if (protects !== undefined) return protects
    const tried = 'Cannot try whether Docker may lower an OOM score'
    const request = { Image: sandboxImage, HostConfig: { OomScoreAdj: -1, NetworkMode: 'none', AutoRemove: true } }
    const { id } = await call(tried, actMs, (abortSignal) => docker.createContainer({ ...request, abortSignal }))
    try {
      await start(tried, id)
      protects = true
    } catch (error) {
      if (isUnreachable(error)) throw error
      protects = false // The same image has just run as a sandbox; some engines do not say what was refused.
    } finally {
      await remove(id)
    }
    return protects
  }

  return {
    ...images,

    podNetworkProblem: network.problem,

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
      return (await Promise.all(rows.map(look))).flat()
    },

    async runSandbox(options) {
      if (options.podCIDR !== undefined) await network.ensure(options.podCIDR)
      const id = await createSandbox(options)
      try {
        await start(`Cannot start the sandbox of pod ${podOf(options.identity)}`, id)
      } catch (error) {
        network.doubt()
        await remove(id)
        throw error
      }
      return id
    },

    async createContainer(options) {
      const { identity } = options
      const tried = `Cannot create container ${identity.containerName} of pod ${podOf(identity)}`
      const unprotected = options.oomScoreAdj < 0 && !(await mayProtect())
      const { seccomp } = options.security
      const profile = seccomp.kind === 'own' ? await readProfile(seccompDirectory, seccomp.name) : undefined
      const request = containerRequest(nodeName, unprotected ? { ...options, oomScoreAdj: 0 } : options, profile)
      return await create(tried, identity, request)
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

    exec: (id, command, timeoutMs) => execute(docker, id, command, timeoutMs),

    logTail: (id, mostLines, mostBytes) => logTail(docker, id, mostLines, mostBytes),

    removeContainer: remove,

    async imagesInUse() {
      const rows = await call('Cannot list all containers', askMs, (abortSignal) =>
        docker.listContainers({ all: true, abortSignal }),
      )
      return new Set(rows.map(({ ImageID }) => ImageID))
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

async function readProfile(folder: string | undefined, name: string): Promise<string> {
  try {
    if (folder === undefined || name.split('/').includes('..')) throw new Error('There is no such place')
    return await readFile(join(folder, name), 'utf8')
  } catch (cause) {
    throw new RuntimeError('Failed', `Cannot read seccomp profile ${name} in ${folder}`, { cause })
  }
}

function podOf({ podNamespace, podName }: ContainerIdentity): string {
  return `${podNamespace}/${podName}`
}
