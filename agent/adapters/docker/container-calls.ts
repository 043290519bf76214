/** Docker's calls that create, start, stop and remove one container. */
import { randomBytes } from 'node:crypto'
import type Dockerode from 'dockerode'
import { sandboxImage } from '../../pods/images/sandbox-image.ts'
import { type ContainerIdentity, isUnreachable, RuntimeError, type SandboxOptions } from '../../runtime/runtime.ts'
import { actMs, askMs, call } from './call.ts'
import { containerName } from './labels.ts'
import type { AttachableNetwork } from './network.ts'
import { sandboxRequest } from './requests.ts'

export type ContainerCallNeeds = {
  readonly docker: Dockerode
  readonly nodeName: string
  readonly makeSandboxImage: () => Promise<void>
  /** The state of the container changes, so its cached inspection is outdated. */
  readonly forget: (id: string) => void
}

export function containerCalls({ docker, nodeName, makeSandboxImage, forget }: ContainerCallNeeds) {
  let protects: boolean | undefined

  const create = async (tried: string, identity: ContainerIdentity, options: Dockerode.ContainerCreateOptions) => {
    const named = (name: string) =>
      call(tried, actMs, (abortSignal) => docker.createContainer({ ...options, name, abortSignal }))
    try {
      return (await named(containerName(identity))).id
    } catch (error) {
      // A container that is being removed keeps its name for a moment.
      if (!(error instanceof RuntimeError) || error.reason !== 'NameTaken') throw error
      return (await named(`${containerName(identity)}_${randomBytes(4).toString('hex')}`)).id
    }
  }

  const start = async (tried: string, id: string) => {
    forget(id)
    await call(tried, actMs, (abortSignal) => docker.getContainer(id).start({ abortSignal }), 304)
  }

  const stop = async (id: string, gracePeriodSeconds: number) => {
    const deadlineMs = gracePeriodSeconds * 1000 + askMs
    forget(id)
    await call(
      `Cannot stop container ${id}`,
      deadlineMs,
      (abortSignal) => docker.getContainer(id).stop({ t: gracePeriodSeconds, abortSignal }),
      304,
      404,
    )
    forget(id)
  }

  const remove = async (id: string) => {
    forget(id)
    const options = (abortSignal: AbortSignal) => ({ force: true, v: true, abortSignal })
    const container = docker.getContainer(id)
    // 409: removal is already in progress (Docker Engine API, ContainerDelete).
    await call(`Cannot remove container ${id}`, actMs, (signal) => container.remove(options(signal)), 404, 409)
  }

  const createSandbox = async (options: SandboxOptions, network: AttachableNetwork | undefined) => {
    const tried = `Cannot create the sandbox of pod ${podOf(options.identity)}`
    const wanted = sandboxRequest(nodeName, options, network)
    try {
      return await create(tried, options.identity, wanted)
    } catch (error) {
      if (!(error instanceof RuntimeError) || error.reason !== 'ImageNotFound') throw error
      await makeSandboxImage()
      return await create(tried, options.identity, wanted)
    }
  }

  /**
   * An engine without CAP_SYS_RESOURCE (inside another container, for example) cannot start a container with a negative OOM
   * score. Determined once, by a try when a container first requests it.
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
      protects = false // The same image has just run as a sandbox. Some engines do not report the cause.
    } finally {
      await remove(id)
    }
    return protects
  }

  return { create, createSandbox, start, stop, remove, mayProtect }
}

/** For messages. */
export function podOf({ podNamespace, podName }: ContainerIdentity): string {
  return `${podNamespace}/${podName}`
}
