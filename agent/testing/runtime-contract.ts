/** The contract of ContainerRuntime, for the engine in memory and the real ones. */
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import type { ContainerIdentity, ContainerOptions, ContainerRuntime, RuntimeContainer } from '../runtime/runtime.ts'

export type World = {
  readonly runtime: ContainerRuntime
  /** The same engine, for another node's agent. */
  readonly other: ContainerRuntime
  /** An image that is there, with a shell. */
  readonly image: string
  readonly freePort: () => Promise<number>
}

type Opened = { teardown(end: () => Promise<void>): unknown }

export function runtimeContract(name: string, open: (t: Opened) => Promise<World>, skip: string | false = false): void {
  test(`${name} keeps the promises of a container engine`, { skip }, async (t) => {
    const world = await open(t)
    const { runtime, other, image } = world
    t.afterEach(async () => {
      for (const { id } of await runtime.listContainers()) await runtime.removeContainer(id)
    })

    t.test('a sandbox and its container are found as they were made, by this node only', async (t) => {
      const { sandboxID, id } = await started(world, { command: deaf })
      const found = await runtime.listContainers('uid-1')
      t.same(found.map((one) => one.identity.kind).sort(), ['container', 'sandbox'])
      t.match(
        found.find((one) => one.id === id),
        { identity: identity(), sandboxID, image, state: 'running', error: '', finishedAt: undefined },
      )
      const sandbox = found.find((one) => one.id === sandboxID)
      t.match(sandbox, {
        identity: identity({ kind: 'sandbox', containerName: '', specHash: '' }),
        ip: /^\d+\.\d+\.\d+\.\d+$/,
      })
      t.same(await runtime.listContainers('uid-2'), [])
      t.same(await other.listContainers(), [])
    })

    t.test('the end of a program is reported, with its exit code and its times', async (t) => {
      // Sleeps first: an engine may stamp the start of a program that ends at once after its end.
      const { id } = await started(world, { command: ['sh', '-c', 'sleep 0.2; exit 3'] })
      const {
        exitCode,
        startedAt = '',
        finishedAt = '',
      } = await eventually(world, id, ({ state }) => state === 'exited')
      t.equal(exitCode, 3)
      t.ok(Date.parse(startedAt) <= Date.parse(finishedAt), `${startedAt} is not after ${finishedAt}`)
    })

    t.test('a program that handles SIGTERM ends on it', async (t) => {
      const { id } = await started(world, {
        command: ['sh', '-c', 'trap "exit 7" TERM; >/tmp/set; while :; do sleep 0.05; done'],
      })
      while ((await runtime.exec(id, ['sh', '-c', '[ -e /tmp/set ]'], 60_000)).exitCode !== 0) await delay(25)
      await runtime.stopContainer(id, 60)
      t.match(await eventually(world, id, ({ state }) => state === 'exited'), { exitCode: 7 })
      await runtime.stopContainer(id, 60)
    })

    t.test('a program that ignores SIGTERM is killed after its grace period', async (t) => {
      const { id } = await started(world, { command: deaf })
      await runtime.stopContainer(id, 1)
      t.match(await eventually(world, id, ({ state }) => state === 'exited'), { exitCode: 137 })
    })

    t.test('stopping and removing a removed container succeeds; starting it fails', async (t) => {
      const { id } = await started(world, { command: deaf })
      await runtime.removeContainer(id)
      await runtime.removeContainer(id)
      await runtime.stopContainer(id, 1)
      await t.rejects(runtime.startContainer(id), { name: 'RuntimeError', reason: 'NotFound' })
    })

    t.test('a container that cannot be started stays, with the reason', async (t) => {
      const { sandboxID } = await started(world, { command: deaf })
      const id = await runtime.createContainer(options(world, sandboxID, { command: ['/no/such/program'], attempt: 1 }))
      await t.rejects(runtime.startContainer(id), { name: 'RuntimeError', reason: 'Failed' })
      const found = (await runtime.listContainers('uid-1')).find((one) => one.id === id)
      t.match(found, { state: 'created', error: /no such file/ })
    })

    t.test('a missing image is distinguished from other failures', async (t) => {
      const sandboxID = await runtime.runSandbox(sandbox())
      const absent = { ...options(world, sandboxID, {}), image: 'bramble.test/absent:1' }
      await t.rejects(runtime.createContainer(absent), { name: 'RuntimeError', reason: 'ImageNotFound' })
      t.equal(await runtime.findImage('bramble.test/absent:1'), undefined)
      t.match(await runtime.findImage(image), { id: /^sha256:/, sizeBytes: Number })
      t.ok((await runtime.listImages()).some(({ tags }) => tags.includes(image)))
      await t.rejects(runtime.pullImage('Not An Image', { signal: AbortSignal.timeout(60_000), stallMs: 60_000 }), {
        name: 'RuntimeError',
        reason: 'InvalidImageName',
      })
    })

    t.test('a host port in use is reported, and leaves nothing behind', async (t) => {
      const hostPort = await world.freePort()
      const ports = [{ containerPort: 80, hostPort, protocol: 'TCP', hostIP: '' }] as const
      await runtime.runSandbox({ ...sandbox(), ports })
      const second = { ...sandbox('uid-2'), ports }
      await t.rejects(runtime.runSandbox(second), { name: 'RuntimeError', reason: 'PortTaken' })
      t.same(await runtime.listContainers('uid-2'), [])
    })

    t.test('starts and ends are emitted to a watch until it stops', async (t) => {
      const changedUids: string[] = []
      const watching = new AbortController()
      let opened: () => void = () => undefined
      const open = new Promise<void>((resolve) => {
        opened = resolve
      })
      const watch = runtime.watch({ opened, changed: (uid) => changedUids.push(uid) }, watching.signal)
      await open
      const { id } = await started(world, { command: deaf })
      await until(() => changedUids.length >= 2)
      changedUids.length = 0
      await runtime.removeContainer(id)
      await until(() => changedUids.length >= 1)
      t.same([...new Set(changedUids)], ['uid-1'])
      watching.abort()
      await watch
    })

    t.test('a command in a container returns how it ended', async (t) => {
      const { id } = await started(world, { command: deaf })
      t.match(await runtime.exec(id, ['sh', '-c', 'exit 0'], 60_000), { exitCode: 0 })
      t.match(await runtime.exec(id, ['sh', '-c', 'exit 3'], 60_000), { exitCode: 3 })
      await runtime.removeContainer(id)
      await t.rejects(runtime.exec(id, ['true'], 60_000), { name: 'RuntimeError' })
    })

    t.test('it reports its version', async (t) => {
      t.match(await runtime.info(), { version: /^docker:\/\// })
      await runtime.probe()
    })
  })
}

const deaf = ['sleep', '1000']

function identity(over: Partial<ContainerIdentity> = {}): ContainerIdentity {
  return {
    kind: 'container',
    podNamespace: 'default',
    podName: 'web',
    podUID: 'uid-1',
    containerName: 'main',
    attempt: 0,
    specHash: 'hash-1',
    gracePeriodSeconds: 30,
    ...over,
  }
}

function sandbox(podUID = 'uid-1') {
  const own = identity({ kind: 'sandbox', containerName: '', specHash: '', podUID })
  return {
    identity: own,
    hostname: 'web',
    domain: '',
    hostNetwork: false,
    podCIDR: undefined,
    hostIPC: false,
    resolver: undefined,
    hosts: [],
    sysctls: {},
    ports: [],
  } as const
}

type Wish = { readonly command?: readonly string[]; readonly attempt?: number }

function options({ image }: World, sandboxID: string, { command, attempt = 0 }: Wish): ContainerOptions {
  return {
    identity: identity({ attempt }),
    sandboxID,
    image,
    command,
    args: undefined,
    env: [],
    workingDir: undefined,
    tty: false,
    stdin: false,
    limits: { nanoCPUs: 500_000_000, memoryBytes: 64 * 1024 * 1024, pids: 100 },
    requests: { cpuShares: 102, memoryBytes: 0 },
    oomScoreAdj: 900,
    mounts: [],
    devices: [],
    hostPID: false,
    hostIPC: false,
    security: {
      user: undefined,
      groups: [],
      addCapabilities: [],
      dropCapabilities: [],
      privileged: false,
      readOnlyRootFilesystem: false,
      mayGainPrivileges: true,
      seccomp: { kind: 'standard' },
      appArmor: { kind: 'standard' },
      seLinux: {},
    },
  }
}

async function started(world: World, wish: Wish): Promise<{ readonly sandboxID: string; readonly id: string }> {
  const sandboxID = await world.runtime.runSandbox(sandbox())
  const id = await world.runtime.createContainer(options(world, sandboxID, wish))
  await world.runtime.startContainer(id)
  return { sandboxID, id }
}

async function eventually(
  { runtime }: World,
  id: string,
  wanted: (container: RuntimeContainer) => boolean,
): Promise<RuntimeContainer> {
  for (let tries = 0; ; tries++) {
    const found = (await runtime.listContainers()).find((one) => one.id === id)
    if (found !== undefined && wanted(found)) return found
    if (tries > 2400) throw new Error(`Container ${id} is still ${found?.state}`)
    await delay(25)
  }
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 2400) throw new Error('It does not come')
    await delay(25)
  }
}
