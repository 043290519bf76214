/** A real dockerd of a test's own: its own data, socket, bridge and containerd, all of it gone when the test ends. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import Dockerode from 'dockerode'
import { type TarEntry, tarOf } from '../../agent/pods/images/tar.ts'
import { machineAddresses } from './addresses.ts'
import { inSpace } from './machine-commands.ts'
import { bridgeMac } from './machine-network.ts'
import { isRoot, skipWithout } from './missing-parts.ts'
import { patience } from './patience.ts'

const run = promisify(execFile)
/** Folders of another engine, with colons between them: its dockerd, containerd and docker-proxy, in place of those installed. */
const ownFolders = process.env['BRAMBLE_TEST_DOCKER']?.split(':').filter(Boolean) ?? []
const dockerdPath = [...ownFolders, '/usr/sbin', '/usr/bin', '/usr/local/bin']
  .map((folder) => join(folder, 'dockerd'))
  .find((path) => existsSync(path))
const busybox = '/bin/busybox'

/** For `test(name, { skip: whyNoDockerd() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoDockerd(): string | false {
  return (
    skipWithout('root', isRoot()) ||
    skipWithout('docker', dockerdPath !== undefined) ||
    skipWithout('busybox', existsSync(busybox))
  )
}

export type TestDockerd = {
  readonly socket: string
  /** The engine's own client, for looking at the world behind the agent's back. */
  readonly docker: Dockerode
  /** Prefix of the network its containers are on: `10.x.y`. */
  readonly subnet: string
  readonly rootDirectory: string
  /** Below which all its containers are, in each hierarchy: `bramble-test-1234`. */
  readonly cgroup: string
  readonly pid: number | undefined
  /** Makes `name` (`repository:tag`) from the static busybox and `more`; `command` is what it runs by default. */
  importImage(name: string, command?: readonly string[], more?: readonly TarEntry[]): Promise<void>
  /** As `systemctl stop docker`: containers are stopped too, unless live-restore is on. */
  stop(): Promise<void>
  /** SIGKILL: its containers stay as they are. */
  kill(): Promise<void>
  /** SIGKILL, also of all its containers: as when the machine loses its power, with the boot ID unchanged. */
  cutPower(): Promise<void>
  /** Starts again after `stop`, `kill` or `cutPower`. */
  start(): Promise<void>
  restart(): Promise<void>
  /** As an upgrade of the package: stops it, and starts that of another root with the same data. */
  replaceBy(root: string): Promise<void>
}

export type DockerdSettings = {
  /** Names under which it has runc, too. */
  readonly runtimes?: readonly string[]
  readonly liveRestore?: boolean
  /** As on Raspberry Pi OS: for this engine the kernel has no memory controller. See `whyNotWithoutMemory`. */
  readonly withoutMemoryCgroup?: boolean
  /** The network namespace that it and its containers are in; default: that of this process. */
  readonly space?: string | undefined
  /** It makes the rules of iptables and forwards, as an installed one does. Only in a network namespace of its own. */
  readonly withRules?: true
  /** In place of a folder of its own: for example a small file system. */
  readonly dataRoot?: string
  /** Root of another Debian, whose /usr replaces that of this host: see `newestDockerRoot`. */
  readonly root?: string | undefined
}

const memoryController = '/sys/fs/cgroup/memory'

/** Why no engine can be started without a memory controller here, or false. */
export function whyNotWithoutMemory(): string | false {
  return whyNoDockerd() || (existsSync(memoryController) ? false : 'only the controllers of cgroup v1 can be hidden')
}

/** What is needed of a tap test. */
export type Ending = { teardown(end: () => Promise<void>): unknown }

/** Ready to serve when it resolves. Tests that use it need root and a dockerd: see `whyNoDockerd`. */
export async function startDockerd(t: Ending, settings: DockerdSettings = {}): Promise<TestDockerd> {
  if (dockerdPath === undefined) throw new Error('No dockerd on this machine')
  const command = dockerdPath
  const id = randomBytes(4).toString('hex')
  // scripts/test-in-minimal-root.sh finds the control groups of an engine that was killed by this name.
  const folder = await mkdtemp(join(tmpdir(), `bd${id}-`))
  const cgroup = `bramble-test-${id}`
  const socket = join(folder, 's')
  const rootDirectory = settings.dataRoot ?? join(folder, 'data')
  const docker = new Dockerode({ socketPath: socket, host: undefined, protocol: 'http' })
  const runtimes = Object.fromEntries((settings.runtimes ?? []).map((name) => [name, { path: 'runc' }]))
  await writeFile(join(folder, 'daemon.json'), JSON.stringify({ runtimes }))
  await mkdir(join(folder, 'exec'))
  let child: ChildProcess | undefined
  let bridge: Bridge | undefined
  let { root } = settings

  const args = (name: string) => [
    ...['--config-file', join(folder, 'daemon.json'), '--host', `unix://${socket}`, '--pidfile', join(folder, 'pid')],
    ...['--data-root', rootDirectory, '--exec-root', join(folder, 'exec')],
    // Should another containerd run on this machine, ours keeps its own names in it.
    ...['--containerd-namespace', cgroup, '--containerd-plugins-namespace', `${cgroup}-plugins`],
    ...['--exec-opt', 'native.cgroupdriver=cgroupfs', '--cgroup-parent', `/${cgroup}`],
    ...['--bridge', name],
    // With rules, those of IPv6 are as by default, too: none before version 27.
    ...(settings.withRules ? [] : ['--iptables=false', '--ip6tables=false', '--ip-masq=false', '--ip-forward=false']),
    ...(settings.liveRestore ? ['--live-restore'] : []),
  ]

  const start = async () => {
    bridge ??= await makeBridge(`bd${id}`, settings.space)
    const log = await open(join(folder, 'log'), 'a')
    // Should the test die without its teardown, its dockerd gets SIGTERM.
    const hidden = ['unshare', '--mount', 'sh', '-c', `umount ${memoryController} && exec "$0" "$@"`]
    const line = [
      ...(settings.withoutMemoryCgroup ? hidden : []),
      ...(root === undefined ? [] : withFilesOf(root)),
      ...inSpace(settings.space, root === undefined ? command : '/usr/sbin/dockerd', ...args(bridge.name)),
    ]
    const started = spawn('setpriv', ['--pdeathsig', 'TERM', ...line], {
      stdio: ['ignore', log.fd, log.fd],
      env: ownEnvironment(root === undefined ? ownFolders : []),
    })
    await log.close()
    child = started
    const until = Date.now() + 120_000 * patience
    while (!(await answers(docker))) {
      if (started.exitCode !== null || started.signalCode !== null || Date.now() > until) {
        throw new Error(`dockerd does not start:\n${await tail(join(folder, 'log'))}`)
      }
      await delay(25)
    }
  }

  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    const patience = AbortSignal.timeout(60_000)
    const impatient = () => child?.kill('SIGKILL')
    patience.addEventListener('abort', impatient, { once: true })
    await ended
    patience.removeEventListener('abort', impatient)
    await containerdEnded(folder)
  }

  t.teardown(async () => {
    if (await answers(docker)) await removeContainers(docker)
    await end('SIGTERM')
    await endLeftovers(folder, cgroup)
    if (bridge !== undefined) await ip(settings.space, 'link', 'delete', bridge.name).catch(() => undefined)
    await unmountBelow(folder)
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  })
  await start()

  return {
    socket,
    docker,
    subnet: bridge?.subnet ?? '',
    rootDirectory,
    cgroup,
    get pid() {
      return child?.pid
    },
    importImage: (name, imageCommand, more) => importBusybox(docker, name, imageCommand, more),
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    async cutPower() {
      await end('SIGKILL')
      await endLeftovers(folder, cgroup)
    },
    start,
    async restart() {
      await end('SIGTERM')
      await start()
    },
    async replaceBy(other) {
      await end('SIGTERM')
      root = other
      await start()
    },
  }
}

type Bridge = { readonly name: string; readonly subnet: string }

/** `ip` in this network namespace. */
function ip(space: string | undefined, ...args: readonly string[]) {
  return run('ip', [...(space === undefined ? [] : ['-n', space]), ...args])
}

async function makeBridge(name: string, space: string | undefined): Promise<Bridge> {
  for (let tries = 0; ; tries++) {
    const subnet = machineAddresses()
    const { stdout: taken } = await ip(space, '-4', 'route', 'show', `${subnet}.0/24`)
    if (taken.trim() !== '' && tries < 20) continue
    await ip(space, 'link', 'add', name, 'address', bridgeMac, 'type', 'bridge')
    await ip(space, 'address', 'add', `${subnet}.1/24`, 'dev', name)
    await ip(space, 'link', 'set', name, 'up')
    return { name, subnet }
  }
}

/** Without what would lead it, or its registry client, elsewhere. */
function ownEnvironment(folders: readonly string[]): NodeJS.ProcessEnv {
  const { DOCKER_HOST: _host, DOCKER_TLS_VERIFY: _tls, NOTIFY_SOCKET: _notify, PATH = '', ...rest } = process.env
  return { ...rest, PATH: [...folders, PATH].join(':') }
}

/**
 * Command that runs the engine and all that it starts, such as runc and iptables, with the libraries they were built
 * for.
 */
function withFilesOf(root: string): readonly string[] {
  return ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /usr && exec "$@"', join(root, 'usr')]
}

async function answers(docker: Dockerode): Promise<boolean> {
  try {
    await docker.listImages({ abortSignal: AbortSignal.timeout(10_000) })
    return true
  } catch {
    return false
  }
}

async function removeContainers(docker: Dockerode): Promise<void> {
  const containers = await docker.listContainers({ all: true })
  await Promise.all(containers.map(({ Id }) => docker.getContainer(Id).remove({ force: true, v: true }).catch(ignored)))
  // Their bridges would outlive the engine.
  const networks = await docker.listNetworks({ filters: JSON.stringify({ type: ['custom'] }) })
  await Promise.all(networks.map(({ Id }) => docker.getNetwork(Id).remove().catch(ignored)))
}

const ignored = () => undefined

/** Makes `name` (`repository:tag`) from the static busybox of this host and `more`. */
export async function importBusybox(
  docker: Dockerode,
  name: string,
  command?: readonly string[],
  more: readonly TarEntry[] = [],
): Promise<void> {
  const colon = name.lastIndexOf(':')
  const { stdout } = await run(busybox, ['--list'])
  const applets = stdout.split('\n').filter((applet) => applet !== '' && applet !== 'busybox')
  const image = tarOf([
    ...['bin/', 'etc/', 'proc/', 'sys/', 'dev/'].map((path) => ({ path, folder: true, mode: 0o755 }) as const),
    { path: 'tmp/', folder: true, mode: 0o1777 },
    {
      path: 'etc/passwd',
      content: Buffer.from('root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n'),
      mode: 0o644,
    },
    { path: 'bin/busybox', content: await readFile(busybox), mode: 0o755 },
    ...applets.map((applet) => ({ path: `bin/${applet}`, linkTo: 'busybox' })),
    ...more,
  ])
  const stream = await docker.importImage(Readable.from([image]), {
    repo: name.slice(0, colon),
    tag: name.slice(colon + 1),
    changes: ['ENV PATH=/bin', `CMD ${JSON.stringify(command ?? ['sh'])}`],
  })
  const answer: string[] = []
  stream.setEncoding('utf8')
  for await (const text of stream) answer.push(String(text))
  if (answer.join('').includes('"error"')) throw new Error(`Cannot import ${name}: ${answer.join('')}`)
}

/**
 * A dockerd that starts while the containerd of the last one is still dying takes it for its own, and waits in vain.
 * Where process 1 does not reap, the dead one keeps its number for ever: so its pid file goes too.
 */
async function containerdEnded(folder: string): Promise<void> {
  for (let tries = 0; tries < 1200; tries++) {
    const [pid] = await processesWith((cmdline) => /containerd\0--config\0/.test(cmdline) && cmdline.includes(folder))
    if (pid === undefined) break
    await delay(25)
  }
  await rm(join(folder, 'exec/containerd/containerd.pid'), { force: true })
}

/** After a SIGKILL containers and their shims live on: found by their cgroup and folder, ended one by one. */
async function endLeftovers(folder: string, cgroup: string): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const pids = await processesWith(
      (cmdline, cgroups) => cmdline.includes(`${folder}/`) || cgroups.includes(`/${cgroup}/`),
    )
    if (pids.length === 0) break
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It ended by itself.
      }
    }
    await delay(50)
  }
  for (const controller of await readdir('/sys/fs/cgroup').catch(() => [])) {
    await removeCgroup(join('/sys/fs/cgroup', controller, cgroup))
  }
  await removeCgroup(join('/sys/fs/cgroup', cgroup))
}

async function processesWith(ours: (cmdline: string, cgroups: string) => boolean): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
  const checked = await Promise.all(
    pids.map(async (pid) => {
      const cmdline = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      const cgroups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')
      return ours(cmdline, cgroups) ? [Number(pid)] : []
    }),
  )
  return checked.flat()
}

async function removeCgroup(path: string): Promise<void> {
  const inside = await readdir(path, { withFileTypes: true }).catch(() => undefined)
  if (inside === undefined) return
  for (const entry of inside) if (entry.isDirectory()) await removeCgroup(join(path, entry.name))
  await rmdir(path).catch(ignored)
}

async function unmountBelow(folder: string): Promise<void> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8')
  const points = mounts.split('\n').map((line) => line.split(' ')[4] ?? '')
  for (const point of points.filter((path) => path.startsWith(`${folder}/`)).reverse()) {
    await run('umount', ['--lazy', point]).catch(ignored)
  }
}

async function tail(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(() => '')).split('\n').slice(-30).join('\n')
}
