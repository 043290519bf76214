/**
 * Machines that really boot: Debian with systemd as process 1, logind, D-Bus and Docker, each a systemd-nspawn container with a
 * disk, a network and control groups of its own. See test/machines/README.md for what can be done to them, and what cannot.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Dockerode from 'dockerode'
import { importBusybox } from './dockerd.ts'
import { command, commandOrThrow, type Outcome } from './machine-commands.ts'
import { controlGroups, removeControlGroups } from './machine-control-groups.ts'
import { type LossyDisk, machineDisk } from './machine-disk.ts'
import { type MachineNetwork, machineNetwork } from './machine-network.ts'
import { machineRoot, sweepMachines } from './machine-root.ts'
import { refuseWarnings } from './process-warnings.ts'
import { eventually } from './wait.ts'

export type MachineOptions = {
  /** Its hostname. */
  readonly name: string
  /** Shared with other machines; without it this one has a network alone with this host. */
  readonly network?: MachineNetwork
  /** systemd-networkd in it asks a DHCP server on its network for its address: see `dhcpServer`. */
  readonly dhcp?: true
  /** 32 hexadecimal digits: give two machines the same one for a cloned card. Random otherwise. */
  readonly machineID?: string
  /** The board's serial number, shown in /proc/cpuinfo as on a Raspberry Pi. */
  readonly boardSerial?: string
  /** Limit for all its processes together. */
  readonly memoryBytes?: number
  /** More of this host's files seen in the machine: `[here, there]`. */
  readonly binds?: readonly (readonly [string, string])[]
  /** `cutPower` loses what was written and not flushed, as on a real disk. */
  readonly lossyDisk?: LossyDisk
  /** Called with the machine's disk before its first boot, to put files there as who flashes a card does. */
  readonly prepare?: (disk: string) => Promise<void>
}

export type RunOptions = { readonly withinMs?: number; readonly input?: string }

export type Machine = {
  readonly name: string
  /** Where it is reached, and where it reaches this host. With `dhcp`: an address for it that no other machine has. */
  readonly address: string
  /** MAC address of its link, for its DHCP server. */
  readonly mac: string
  readonly hostAddress: string
  /** How many times it booted, to the end. */
  readonly boots: number
  /** How many times it began to. */
  readonly starts: number
  /** PID of its process 1 on this host; undefined while it is off. */
  readonly initPid: number | undefined
  /** Path on this host, good while the machine is on. */
  readonly dockerSocket: string
  /** The engine in it; ask again after a boot. */
  docker(): Dockerode
  /** A path in the machine as a path on this host, while it is on: `/run` and `/proc` are the machine's, too. */
  path(inside: string): string
  /** The same on its disk, on or off; `/run`, `/tmp` and Docker's folder are not there. */
  disk(inside: string): string
  /** `sh -c command` as root: what it printed. Throws when it fails, or takes longer than a minute. */
  run(command: string, options?: RunOptions): Promise<string>
  /** The same for a command that may fail. */
  tryRun(command: string, options?: RunOptions): Promise<Outcome>
  copyIn(from: string, to: string): Promise<void>
  write(path: string, text: string, mode?: number): Promise<void>
  /** What a unit has logged, over all boots of this machine, whether it is on or off. */
  journal(unit: string): Promise<string>
  /** Makes `name` (`repository:tag`) of a static busybox, without a registry. */
  importImage(name: string): Promise<void>
  /** `systemctl reboot`, and waits until it has booted again. */
  reboot(withinMs?: number): Promise<void>
  /** Waits until this many boots are complete. */
  booted(boots: number, withinMs?: number): Promise<void>
  /** `systemctl poweroff`, and waits until it is off. */
  powerOff(withinMs?: number): Promise<void>
  /** Waits until it is off by itself. */
  off(withinMs?: number): Promise<void>
  /** Everything in it ends at once, and no peer is notified. */
  cutPower(): Promise<void>
  /** Boots it after `powerOff` or `cutPower`, and waits until it has. */
  powerOn(): Promise<void>
  /** Takes its network cable out, also for the boots that follow, and puts it in again. */
  unplug(): Promise<void>
  plugIn(): Promise<void>
  /** From now on all that it sends beyond its own network is lost without a word, until `plugIn`. */
  losePackets(): Promise<void>
}

/** What is needed of a tap test. */
export type Ending = { teardown(end: () => Promise<unknown>): unknown }

const bootMs = 90_000
/** systemd-nspawn's exit status when the machine asked to be started again. */
const rebootStatus = 133

/**
 * A machine that has booted: systemd is done, and dockerd answers. It is gone when the test ends, which fails if a program of this
 * project printed a warning of Node.js on it.
 */
export async function bootMachine(t: Ending, options: MachineOptions): Promise<Machine> {
  const machine = await flashMachine(t, options)
  await machine.powerOn()
  return machine
}

/** The same, not yet switched on. */
export async function flashMachine(t: Ending, options: MachineOptions): Promise<Machine> {
  const { name } = options
  const root = await machineRoot()
  await sweepMachines()
  const id = `bm${randomBytes(4).toString('hex')}`
  const folder = await mkdtemp(join(tmpdir(), `${id}-`))
  const ending: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true, maxRetries: 5 })]
  let printed = ''
  t.teardown(async () => {
    for (const end of ending) await end()
    refuseWarnings(`A unit bramble-* of ${name}`, printed)
  })
  await writeFile(join(folder, 'owner'), `${process.pid}\n`)

  const network = options.network ?? (await machineNetwork({ teardown: (end) => ending.unshift(end) }))
  const plug = network.plug(id, options.dhcp)
  ending.unshift(() => plug.remove())
  const ownDisk = await machineDisk(root, folder, options.lossyDisk)
  ending.unshift(() => ownDisk.remove())
  const disk = (inside: string) => `/proc/${ownDisk.holder}/root${ownDisk.root}${inside}`
  await writeFile(disk('/etc/hostname'), `${name}\n`)
  await writeFile(disk('/etc/hosts'), `127.0.0.1 localhost\n127.0.1.1 ${name}\n`)
  await writeFile(disk('/etc/machine-id'), `${options.machineID ?? randomBytes(16).toString('hex')}\n`)
  if (options.boardSerial !== undefined) await writeFile(disk('/etc/machine-serial'), `${options.boardSerial}\n`)
  if (options.dhcp) await enableNetworkd(disk(''))
  await options.prepare?.(disk(''))
  if (options.lossyDisk !== undefined) await ownDisk.sync()

  let running: ChildProcess | undefined
  let initPid: number | undefined
  let boots = 0
  let starts = 0
  let booting: Promise<void> | undefined
  let over = false
  const console = join(folder, 'console')
  ending.unshift(async () => {
    over = true
    if (initPid !== undefined) await tryRun('journalctl --sync', { withinMs: 10_000 })
    await kill()
    await booting?.catch(() => undefined)
    printed = await brambleOutput(disk('/var/log/journal'))
    await removeControlGroups(id)
  })

  const kill = async () => {
    const last = running
    if (last === undefined) return
    // Where its process 1 has just ended by itself, systemd-nspawn must not boot it again.
    if (initPid === undefined || !isKilled(initPid)) last.kill('SIGKILL')
    await ended(last)
  }

  const start = async (): Promise<ChildProcess> => {
    await removeControlGroups(id)
    const groups = await controlGroups(id, options.memoryBytes)
    const namespace = await plug.fresh()
    if (over) throw new Gone(`The test of ${name} is over`)
    const log = await open(console, 'a')
    const child = spawn(
      'setpriv',
      [
        '--pdeathsig',
        'KILL',
        'nsenter',
        `--mount=/proc/${ownDisk.holder}/ns/mnt`,
        `--net=${namespace}`,
        'sh',
        '-c',
        joinAndBoot,
        'sh',
      ]
        .concat(groups.join(' '), 'systemd-nspawn', '--quiet', '--directory', ownDisk.root, '--boot')
        .concat('--register=no', '--keep-unit', '--machine', id, '--hostname', name, '--capability=all')
        .concat('--system-call-filter=@default add_key keyctl bpf perf_event_open', '--resolv-conf=off')
        .concat('--network-namespace-path=/proc/self/ns/net', `--bind=${ownDisk.docker}:/var/lib/docker`)
        .concat((options.binds ?? []).map(([here, there]) => `--bind=${here}:${there}`)),
      {
        stdio: ['ignore', log.fd, log.fd],
        env: { PATH: process.env['PATH'], SYSTEMD_NSPAWN_API_VFS_WRITABLE: 'network', SYSTEMD_LOG_LEVEL: 'warning' },
      },
    )
    await log.close()
    running = child
    starts++
    child.once('exit', (status) => {
      running = undefined
      initPid = undefined
      if (status === rebootStatus && !over) void boot().catch(() => undefined)
    })
    initPid = await within('it has a process 1', () => initOf(child), bootMs)
    return child
  }

  /** Started, and systemd has done all it had to. A machine that ends meanwhile is not waited for. */
  const boot = (): Promise<void> => {
    booting = (async () => {
      const child = await start()
      const alive = () => {
        if (running !== child) throw new Gone(`The machine ${name} ended while it booted`)
      }
      await eventually(
        `${name} boots`,
        async () => {
          alive()
          const { stdout } = await tryRun('systemctl is-system-running --wait', { withinMs: bootMs })
          alive()
          return /^(running|degraded)/.test(stdout)
        },
        { withinMs: bootMs, everyMs: 50, giveUp: (error) => error instanceof Gone },
      )
      boots++
    })()
    return booting
  }

  const within = async <T>(
    what: string,
    look: () => Promise<T | undefined | false> | T | undefined | false,
    withinMs: number,
  ): Promise<T> => {
    try {
      return await eventually(what, look, { withinMs, everyMs: 25, giveUp: (error) => error instanceof Gone })
    } catch (error) {
      throw new Error(`${name}: ${what}\n${await tailOf(console)}`, { cause: error })
    }
  }

  const tryRun = (text: string, { withinMs = 60_000, input }: RunOptions = {}): Promise<Outcome> => {
    if (initPid === undefined) throw new Error(`The machine ${name} is off`)
    // timeout: a command that outlives its deadline would hold up the machine's shutdown.
    return command(
      'nsenter',
      ['--target', String(initPid), '--all', 'env', '-i', '--chdir=/', ...environment].concat(
        ...['timeout', '--kill-after=2', String(withinMs / 1000), 'sh', '-c', text],
      ),
      { withinMs: withinMs + 5_000, ...(input === undefined ? {} : { input }) },
    )
  }

  const path = (inside: string) => {
    if (initPid === undefined) throw new Error(`The machine ${name} is off`)
    return `/proc/${initPid}/root${inside}`
  }
  const docker = () => new Dockerode({ socketPath: path('/run/docker.sock'), host: undefined, protocol: 'http' })
  const off = async (withinMs = 100_000) => {
    await within('it is off', () => running === undefined, withinMs)
  }
  const booted = async (wanted: number, withinMs = bootMs) => {
    await within(`boot ${wanted} is complete`, () => boots >= wanted, withinMs)
  }

  return {
    name,
    address: plug.address,
    mac: plug.mac,
    hostAddress: network.hostAddress,
    get boots() {
      return boots
    },
    get starts() {
      return starts
    },
    get initPid() {
      return initPid
    },
    get dockerSocket() {
      return path('/run/docker.sock')
    },
    docker,
    path,
    disk,
    tryRun,
    async run(text, more) {
      const { code, stdout, stderr } = await tryRun(text, more)
      if (code !== 0) throw new Error(`In ${name}, "${text}" ended with ${code}:\n${stdout}${stderr}`)
      return stdout
    },
    async copyIn(from, to) {
      await mkdir(dirname(path(to)), { recursive: true })
      await cp(from, path(to), { recursive: true })
    },
    async write(to, text, mode = 0o644) {
      await mkdir(dirname(path(to)), { recursive: true })
      await writeFile(path(to), text, { mode })
    },
    async journal(unit) {
      if (initPid !== undefined) await tryRun('journalctl --sync')
      return commandOrThrow('journalctl', [
        ...['--directory', initPid === undefined ? disk('/var/log/journal') : path('/var/log/journal')],
        ...['--unit', unit, '--output', 'short-monotonic', '--no-pager', '--quiet'],
      ])
    },
    importImage: (image) => importBusybox(docker(), image),
    async reboot(withinMs = bootMs) {
      const next = boots + 1
      await tryRun('systemctl reboot')
      await booted(next, withinMs)
    },
    booted,
    async powerOff(withinMs) {
      await tryRun('systemctl poweroff')
      await off(withinMs)
    },
    off,
    async cutPower() {
      await ownDisk.losePower()
      await kill()
      await ownDisk.mountAgain()
    },
    async powerOn() {
      if (running !== undefined) throw new Error(`The machine ${name} is on already`)
      await boot()
    },
    unplug: () => plug.pull(),
    plugIn: () => plug.put(),
    losePackets: () => plug.lose(),
  }
}

class Gone extends Error {}

/** Into the machine's control groups, which become the root of what it sees, then boot. */
const joinAndBoot = 'for g in $1; do echo $$ >"$g/cgroup.procs"; done; shift; exec "$@"'

const environment = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root', 'LANG=C.UTF-8']

/** It has no link but that of the network, and waits for no router of IPv6. */
async function enableNetworkd(disk: string): Promise<void> {
  const network = '[Match]\nName=host0\n[Network]\nDHCP=ipv4\nIPv6AcceptRA=no\n[DHCPv4]\nUseHostname=no\n'
  await writeFile(join(disk, 'etc/systemd/network/10-host0.network'), network)
  await commandOrThrow('systemctl', ['--root', disk, 'enable', '--quiet', 'systemd-networkd.service'])
}

/** The child of systemd-nspawn that is process 1 where it lives. */
async function initOf(child: ChildProcess): Promise<number | undefined> {
  if (child.exitCode !== null) throw new Gone(`systemd-nspawn ended at once with ${child.exitCode}`)
  const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  for (const pid of children.trim().split(' ').filter(Boolean)) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
    const program = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')
    if (/^NSpid:.*\s1$/m.test(status) && program.trim() === 'systemd') return Number(pid)
  }
  return undefined
}

/** The lines that the programs of this project printed over all boots; none where the machine has never written its journal. */
async function brambleOutput(journal: string): Promise<string> {
  const { stdout } = await command('journalctl', [
    ...['--directory', journal, '--unit', 'bramble-*', '--output', 'cat', '--no-pager', '--quiet'],
  ])
  return stdout
}

/** False: there is no such process. */
function isKilled(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

async function tailOf(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(() => '')).split('\n').slice(-30).join('\n')
}
