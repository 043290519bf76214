/** A working container engine in memory: programs run, end or ignore SIGTERM, and calls can be made to fail. */
import { unlessAborted } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import {
  type ContainerIdentity,
  type ContainerOptions,
  type ContainerRuntime,
  type KernelLimits,
  type RuntimeContainer,
  RuntimeError,
  type RuntimeErrorReason,
  type RuntimeListener,
} from '../runtime/runtime.ts'

export interface FakeRuntime extends ContainerRuntime {
  /** The same engine as another node's agent sees it. */
  asSeenBy(nodeName: string): ContainerRuntime
  readonly containers: readonly RuntimeContainer[]
  readonly calls: readonly { readonly method: keyof ContainerRuntime; readonly subject: string }[]
  /** Options of a container that was made, by id. */
  optionsOf(id: string): ContainerOptions | undefined
  /** Images that are present, and images that can be pulled. */
  readonly images: Set<string>
  readonly registry: Set<string>
  /** The user of an image, if it is not root. */
  readonly imageUsers: Map<string, string>
  /** What containers wrote, by id. */
  readonly logs: Map<string, string>
  /** Why the engine makes no container of an image. */
  readonly refusedImages: Map<string, string>
  /** Images that the engine cannot use until they are pulled again. */
  readonly lostLayers: Set<string>
  /** What is wrong with the files of an image. */
  readonly damagedImages: Map<string, string>
  /** `linux/arm64`, where an image states its platform. */
  readonly imagePlatforms: Map<string, string>
  /** The exit code of commands in containers: that of `exit N`, else 0. */
  execAnswer: (command: readonly string[]) => number
  /** The program of this container ends by itself. */
  exit(id: string, exitCode: number, more?: { readonly oomKilled?: boolean }): void
  /** Removes it without an event, as a user of the engine can. */
  lose(id: string): void
  failNext(method: keyof ContainerRuntime, reason?: RuntimeErrorReason, message?: string): void
  /** Sets whether the engine answers from now on. */
  setReachable(reachable: boolean): void
  /** The kernel cannot enforce these limits. */
  lacks(...limits: readonly (keyof KernelLimits)[]): void
  /** Pulls wait until the returned function is called. */
  holdPulls(silent?: 'silent'): () => void
  /** Power failure: all programs end. */
  powerCut(): void
}

type Entry = { readonly nodeName: string; readonly container: RuntimeContainer; readonly ports: readonly string[] }
type Failure = { readonly method: string; readonly reason: RuntimeErrorReason; readonly message: string }

const everyLimit: KernelLimits = { memoryLimit: true, swapLimit: true, pidsLimit: true, cpuCfsQuota: true }

export function fakeRuntime(clock: Clock): FakeRuntime {
  const entries = new Map<string, Entry>()
  const made = new Map<string, ContainerOptions>()
  const images = new Set<string>()
  const registry = new Set<string>()
  const imageUsers = new Map<string, string>()
  const imagePlatforms = new Map<string, string>()
  const refusedImages = new Map<string, string>()
  const damagedImages = new Map<string, string>()
  const lostLayers = new Set<string>()
  const listeners = new Set<{ nodeName: string; listener: RuntimeListener; broken: (error: Error) => void }>()
  const ends = new Map<string, () => void>()
  const calls: { method: keyof ContainerRuntime; subject: string }[] = []
  let failures: readonly Failure[] = []
  let reachable = true
  let missingLimits: Partial<KernelLimits> = {}
  let pullGate: Promise<void> = Promise.resolve()
  let silentPulls = false
  let counter = 0

  const now = () => new Date(clock.wallMs()).toISOString()
  const begin = async (method: keyof ContainerRuntime, subject = '') => {
    calls.push({ method, subject })
    await Promise.resolve()
    if (!reachable) throw new RuntimeError('Unreachable', `The engine does not answer: ${method} ${subject}`)
    const failure = failures.find((planned) => planned.method === method)
    if (failure === undefined) return
    failures = failures.filter((planned) => planned !== failure)
    throw new RuntimeError(failure.reason, failure.message)
  }
  const entryOf = (id: string) => {
    const entry = entries.get(id)
    if (entry === undefined) throw new RuntimeError('NotFound', `No such container: ${id}`)
    return entry
  }
  const emitChange = ({ nodeName, container }: Entry) => {
    for (const one of listeners) if (one.nodeName === nodeName) one.listener.changed(container.identity.podUID)
  }
  const change = (id: string, change: Partial<RuntimeContainer>) => {
    const entry = entries.get(id)
    if (entry === undefined) return
    const changed = { ...entry, container: { ...entry.container, ...change } }
    entries.set(id, changed)
    emitChange(changed)
  }
  const end = (id: string, exitCode: number, oomKilled = false) => {
    if (entries.get(id)?.container.state !== 'running') return
    change(id, { state: 'exited', exitCode, oomKilled, finishedAt: now(), ip: undefined })
    ends.get(id)?.()
    ends.delete(id)
  }
  const add = (
    nodeName: string,
    identity: ContainerIdentity,
    over: Partial<RuntimeContainer>,
    ports: readonly string[],
  ) => {
    counter++
    const id = counter.toString(16).padStart(64, '0')
    const container: RuntimeContainer = {
      id,
      identity,
      sandboxID: undefined,
      image: '',
      imageID: 'docker://sha256:fake',
      state: 'created',
      exitCode: 0,
      oomKilled: false,
      error: '',
      createdAt: now(),
      startedAt: undefined,
      finishedAt: undefined,
      ip: undefined,
      devices: [],
      ...over,
    }
    entries.set(id, { nodeName, container, ports })
    return id
  }

  const seenBy = (nodeName: string): ContainerRuntime => ({
    async probe() {
      await begin('probe')
    },
    async info() {
      await begin('info')
      return {
        version: 'docker://fake',
        rootDirectory: '/var/lib/docker',
        handlers: [],
        cgroupVersion: '2',
        storageDriver: 'fake',
        ...everyLimit,
        ...missingLimits,
      }
    },
    async listContainers(podUID) {
      await begin('listContainers', podUID)
      return [...entries.values()]
        .filter((entry) => entry.nodeName === nodeName)
        .map(({ container }) => container)
        .filter(({ identity }) => podUID === undefined || identity.podUID === podUID)
    },
    async runSandbox({ identity, hostNetwork, ports }) {
      await begin('runSandbox', identity.podName)
      const wanted = ports.map(({ protocol, hostPort }) => `${protocol}/${hostPort}`)
      const taken = [...entries.values()]
        .filter(({ container }) => container.state === 'running')
        .flatMap((one) => one.ports)
      const port = wanted.find((one) => taken.includes(one))
      if (port !== undefined) throw new RuntimeError('PortTaken', `Port ${port} is already allocated`)
      const id = add(nodeName, identity, { image: 'pause' }, wanted)
      change(id, { state: 'running', startedAt: now(), ip: hostNetwork ? undefined : `10.1.0.${counter % 256}` })
      return id
    },
    async createContainer(options) {
      await begin('createContainer', options.identity.containerName)
      if (!images.has(options.image)) throw new RuntimeError('ImageNotFound', `No such image: ${options.image}`)
      const { identity, sandboxID, image, devices } = options
      const id = add(nodeName, identity, { sandboxID, image, devices }, [])
      made.set(id, options)
      return id
    },
    async startContainer(id) {
      const { container } = entries.get(id) ?? {}
      await begin('startContainer', container?.identity.containerName)
      if (entryOf(id).container.state === 'running') return
      const program = programOf(made.get(id))
      if (program.kind === 'missing') {
        change(id, { error: `exec: ${program.path}: no such file or directory` })
        throw new RuntimeError('Failed', `Cannot start container: exec: ${program.path}: no such file or directory`)
      }
      change(id, { state: 'running', startedAt: now() })
      if (program.kind === 'exits') end(id, program.exitCode)
    },
    async stopContainer(id, gracePeriodSeconds) {
      const entry = entries.get(id)
      await begin('stopContainer', entry?.container.identity.containerName)
      if (entry?.container.state !== 'running') return
      const program = programOf(made.get(id))
      if (program.kind === 'listens') return end(id, program.exitCode)
      const ended = new AbortController()
      const before = ends.get(id)
      ends.set(id, () => {
        before?.()
        ended.abort()
      })
      await clock.sleep(gracePeriodSeconds * 1000, ended.signal)
      end(id, 137)
    },
    async exec(id, command) {
      await begin('exec', entries.get(id)?.container.identity.containerName)
      if (entryOf(id).container.state !== 'running') throw new RuntimeError('Failed', `Container ${id} is not running`)
      return { exitCode: fake.execAnswer(command), output: '' }
    },
    async logTail(id, mostLines, mostBytes) {
      await begin('logTail', entries.get(id)?.container.identity.containerName)
      entryOf(id)
      const lines = (fake.logs.get(id) ?? '').split(/(?<=\n)/).slice(-mostLines)
      return Buffer.from(lines.join('')).subarray(-mostBytes)
    },
    async removeContainer(id) {
      await begin('removeContainer', entries.get(id)?.container.identity.containerName)
      const entry = entries.get(id)
      if (entry === undefined) return
      end(id, 137)
      entries.delete(id)
      emitChange(entry)
    },
    async findImage(image) {
      await begin('findImage', image)
      if (!images.has(image)) return undefined
      const [os = '', architecture = '', variant = ''] = (imagePlatforms.get(image) ?? '').split('/')
      const refused = refusedImages.get(image)
      const platform = { os, architecture, variant }
      if (lostLayers.has(image)) return { id: '', sizeBytes: 0, platform, damage: 'a layer is lost' }
      return { id: `sha256:${image}`, sizeBytes: 1_000, platform, ...(refused !== undefined && { refused }) }
    },
    async imageDamage(id) {
      await begin('imageDamage', id)
      return damagedImages.get(id.replace('sha256:', ''))
    },
    async imageUser(image) {
      await begin('imageUser', image)
      return imageUsers.get(image) ?? ''
    },
    async pullImage(image, { signal, progress }) {
      await begin('pullImage', image)
      if (/[A-Z ]/.test(image)) throw new RuntimeError('InvalidImageName', `Not an image name: ${image}`)
      if (!silentPulls) progress?.({ layers: 2, layersDone: 1, fetchedBytes: 500_000, knownBytes: 1_000_000 })
      await unlessAborted(pullGate, signal)
      if (signal.aborted) throw new RuntimeError('ImagePull', `Cannot pull image ${image}: it was called off`)
      if (!registry.has(image)) throw new RuntimeError('ImagePull', `manifest for ${image} not found`)
      images.add(image)
      lostLayers.delete(image)
    },
    async listImages() {
      await begin('listImages')
      return [...images].map((tag) => ({ id: `sha256:${tag}`, digests: [], tags: [tag], sizeBytes: 1 }))
    },
    async imagesInUse() {
      await begin('imagesInUse')
      return new Set([...entries.values()].map(({ container }) => `sha256:${container.image}`))
    },
    async removeImage({ id, tags: [tag = ''] }) {
      await begin('removeImage', tag)
      if ([...entries.values()].some(({ container }) => `sha256:${container.image}` === id)) {
        throw new RuntimeError('Failed', `Image ${tag} is in use`)
      }
      images.delete(tag)
    },
    async watch(listener, signal) {
      await begin('watch')
      if (signal.aborted) return
      await new Promise<void>((resolve, reject) => {
        const one = { nodeName, listener, broken: reject }
        listeners.add(one)
        signal.addEventListener('abort', () => resolve(), { once: true })
        listener.opened()
      })
    },
  })

  const fake: FakeRuntime = {
    ...seenBy('pi-01'),
    execAnswer: (command) => Number(/exit (\d+)/.exec(command.join(' '))?.[1] ?? 0),
    asSeenBy: seenBy,
    logs: new Map(),
    get containers() {
      return [...entries.values()].map(({ container }) => container)
    },
    calls,
    optionsOf: (id) => made.get(id),
    images,
    registry,
    imageUsers,
    imagePlatforms,
    refusedImages,
    damagedImages,
    lostLayers,
    exit: (id, exitCode, more) => end(id, exitCode, more?.oomKilled),
    lose(id) {
      const entry = entryOf(id)
      entries.delete(id)
      emitChange(entry)
    },
    failNext(method, reason = 'Failed', message = `${method} fails as the test demands`) {
      failures = [...failures, { method, reason, message }]
    },
    setReachable(value) {
      reachable = value
      if (value) return
      for (const { broken } of listeners) broken(new RuntimeError('Unreachable', 'The stream of events broke'))
      listeners.clear()
    },
    lacks(...limits) {
      missingLimits = Object.fromEntries(limits.map((limit) => [limit, false]))
    },
    holdPulls(silent) {
      silentPulls = silent !== undefined
      let release: () => void = () => undefined
      pullGate = new Promise((resolve) => {
        release = resolve
      })
      return release
    },
    powerCut() {
      for (const { container } of entries.values()) {
        if (container.state === 'running')
          change(container.id, { state: 'exited', exitCode: 255, finishedAt: now(), ip: undefined })
      }
    },
  }
  return fake
}

type Program =
  /** Runs until it is killed. */
  | { readonly kind: 'deaf' }
  /** Ends with this exit code on SIGTERM. */
  | { readonly kind: 'listens'; readonly exitCode: number }
  | { readonly kind: 'exits'; readonly exitCode: number }
  | { readonly kind: 'missing'; readonly path: string }

/** The few command lines our tests use, read as a shell would: `exit 3`, `trap "exit 0" TERM; …`, `/no/such/program`. */
function programOf(options: ContainerOptions | undefined): Program {
  const [path = '', ...rest] = [...(options?.command ?? []), ...(options?.args ?? [])]
  const line = [path, ...rest].join(' ')
  if (path.startsWith('/no/')) return { kind: 'missing', path }
  const [, word, code] = /(trap "?exit|exit) ?(\d*)/.exec(line) ?? []
  if (word === undefined) return { kind: 'deaf' }
  return { kind: word === 'exit' ? 'exits' : 'listens', exitCode: Number(code ?? 0) }
}
