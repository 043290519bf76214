/** DoctorSources on the machine's files, the agent's own adapters, and the network. */
import { access, constants, readFile, readlink, stat, statfs } from 'node:fs/promises'
import { get } from 'node:http'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../daemon/clock.ts'
import { startDeadline, TooLate, within } from '../../../daemon/deadline.ts'
import { codeOf } from '../../../daemon/errors.ts'
import { openLog } from '../../../daemon/log.ts'
import { bootFilePath, parseBootFile } from '../../adapters/disk/boot-file.ts'
import { remoteMountOn } from '../../adapters/disk/remote/remote-mounts.ts'
import { agentOn } from '../../adapters/disk/single-instance.ts'
import { knownTimePath, timeFile } from '../../adapters/disk/time-file.ts'
import { readHardwareIdentity } from '../../adapters/kernel/host-identity.ts'
import { readAllRoutes } from '../../adapters/kernel/host-routes.ts'
import { machineSensors } from '../../adapters/kernel/machine-sensors.ts'
import { hasDockerRules } from '../../adapters/network/docker-rules.ts'
import { readFirewall } from '../../adapters/network/firewall-rules.ts'
import { mdnsPortProblem } from '../../adapters/network/mdns-sockets.ts'
import { readWireguard } from '../../adapters/network/wireguard-link.ts'
import { unitLog } from '../../adapters/systemd/unit-log.ts'
import { isSystemDocker } from '../../health/docker.ts'
import { identityPath, readIdentity } from '../../join/identity.ts'
import { openKnownTime } from '../../node/certificate/known-time.ts'
import type { DockerFacts, DockerSilent } from '../docker.ts'
import type { DoctorRequest } from '../doctor-command.ts'
import {
  type AgentState,
  type ConfigurationReading,
  type DoctorSources,
  type ExaminedMachine,
  type LiveMachine,
  notSaved,
} from '../sources.ts'
import type { SpaceReading } from '../storage.ts'
import { lookAtController } from './controller-probe.ts'
import { readDiskSignals } from './disk-signals.ts'
import { askDocker } from './engine.ts'
import { doctorHealthSource } from './health-source.ts'
import { listeningPorts } from './listening-ports.ts'
import { fixFiles, machineFiles, modeOf } from './machine-files.ts'
import { checkImages } from './stored-images.ts'
import { doctorSystemd } from './systemd.ts'

export type DoctorSettings = {
  readonly request: DoctorRequest
  readonly defaults: { readonly dataDir: string; readonly dockerSocket: string }
  /** Reads the agent's configuration: the file that was requested, or the default one below `root`. */
  readonly readConfiguration: () => Promise<ConfigurationReading>
  readonly limits?: DoctorLimits
}

/** How long a filesystem and the agent are waited for, and images are checked. */
type DoctorLimits = { readonly spaceMs: number; readonly healthMs: number; readonly imagesMs: number }

const usualLimits: DoctorLimits = { spaceMs: 3_000, healthMs: 2_000, imagesMs: 2_500 }

export function doctorSources({ request, defaults, readConfiguration, limits }: DoctorSettings): DoctorSources {
  const { root } = request
  const isLive = root === '/'
  const dataPath = request.dataDir ?? defaults.dataDir
  // A folder that somebody names is that folder; the usual one is the saved machine's.
  const dataDir = request.dataDir ?? join(root, defaults.dataDir)
  const dockerSocket = request.dockerSocket ?? defaults.dockerSocket
  const systemd = doctorSystemd(root)
  const agent = agentState({ dataDir, dataPath, dockerSocket, isLive })
  const nowMs = () => systemClock.wallMs()
  const docker = once<DockerFacts | DockerSilent>(() =>
    isLive ? askDocker(dockerSocket) : Promise.reject(new Error(notSaved)),
  )
  const machine = machineBelow({
    root,
    dataDirectory: dataDir,
    timeSynchronized: systemd.timeSynchronized,
    docker,
    dockerLog: isSystemDocker(dockerSocket) ? unitLog('docker.service', { clock: systemClock }) : undefined,
  })
  return {
    machine,
    live: isLive
      ? liveMachine({ dataDir, dockerSocket, docker, systemd, isClockRight: machine.timeSynchronized, limits })
      : undefined,
    agent,
    configuration: once(readConfiguration),
    nowMs,
    async apply({ steps }) {
      for (const step of steps) {
        if (step.kind === 'reload-logind') await systemd.reloadLogind()
        else await fixFiles(root, step)
      }
    },
  }
}

type MachineNeeds = {
  readonly root: string
  readonly dataDirectory: string
  readonly timeSynchronized: () => Promise<boolean | undefined>
  readonly docker: () => Promise<DockerFacts | DockerSilent>
  readonly dockerLog: (() => Promise<readonly string[]>) | undefined
}

function machineBelow({ root, dataDirectory, timeSynchronized, docker, dockerLog }: MachineNeeds): ExaminedMachine {
  const files = machineFiles(root)
  const plain = machineSensors({ root })
  const isSynchronized = async () => plain.time().synchronized ?? (await timeSynchronized())
  return {
    files,
    health: once(() =>
      doctorHealthSource({ root, dataDirectory, files, timeSynchronized: isSynchronized, docker, dockerLog }),
    ),
    async commandLineFile(path) {
      const [content, mode] = await Promise.all([files.text(path), files.mode(path)])
      return content === undefined || mode === undefined ? undefined : { path, content, mode }
    },
    hardware: () => readHardwareIdentity(root),
    uptimeMs: () => plain.time().uptimeMs,
    timeSynchronized: isSynchronized,
    async cardOf(path) {
      const device = deviceOf((await files.text('/proc/self/mountinfo')) ?? '', path)
      const link = device && (await readlink(join(root, 'sys/dev/block', device)).catch(() => undefined))
      return /\/(mmcblk\d+)(\/|$)/.exec(link ?? '')?.[1]
    },
    hostname: async () => (root === '/' ? hostname() : (await files.text('/etc/hostname'))?.trim()),
    routes: async () => readAllRoutes(root),
    listeners: (ports) => listeningPorts(root, ports),
  }
}

/** The device that holds `path`, as `179:2`: the mount with the longest matching path, and the last of several at one place. */
function deviceOf(mountinfo: string, path: string): string | undefined {
  let longest = 0
  let found: string | undefined
  for (const line of mountinfo.split('\n')) {
    const [, , device, , point = ''] = line.split(' ')
    const leadsThere = point === '/' || point === path || path.startsWith(`${point}/`)
    if (point === '' || !leadsThere || point.length < longest) continue
    longest = point.length
    found = device
  }
  return found
}

const silent = openLog({ level: 'error', format: 'json', write: () => undefined })

type LiveNeeds = {
  readonly dataDir: string
  readonly dockerSocket: string
  readonly docker: () => Promise<DockerFacts | DockerSilent>
  readonly systemd: ReturnType<typeof doctorSystemd>
  /** Undefined: the machine has no source for it. */
  readonly isClockRight: () => Promise<boolean | undefined>
  readonly limits: DoctorLimits | undefined
}

function liveMachine({
  dataDir,
  dockerSocket,
  docker,
  systemd,
  isClockRight,
  limits = usualLimits,
}: LiveNeeds): LiveMachine {
  return {
    space: async (paths) => {
      const readings = await Promise.all(paths.map((path) => spaceOf(path, limits.spaceMs)))
      const seen = new Set<number>()
      return readings.flatMap((one) => {
        if (one === undefined || seen.has(one.device)) return []
        seen.add(one.device)
        return [one.space]
      })
    },
    docker,
    images: (rootDirectory) => checkImages(dockerSocket, rootDirectory, limits.imagesMs),
    diskSignals: readDiskSignals,
    hasDockerChain: hasDockerRules,
    firewallRules: readFirewall,
    mdnsPortProblem,
    wireguard: () => readWireguard(),
    unit: systemd.unit,
    logindDelaySeconds: systemd.logindDelaySeconds,
    agentPid: () => agentOn(dataDir),
    agentHealth: (port) => agentHealth(port, limits.healthMs),
    async controller(identity, hardware) {
      // As the agent judges it: else a wrong clock would be reported as a wrong certificate.
      const isRight = (await isClockRight()) === true
      const knownTime = await openKnownTime({
        file: timeFile(knownTimePath(dataDir)),
        certificate: identity.certificate,
        isClockRight: () => isRight,
        clock: systemClock,
        log: silent,
      })
      return lookAtController(identity, hardware, { knownTime, nowMs: systemClock.wallMs })
    },
  }
}

type Space = { readonly device: number; readonly space: SpaceReading }

/** Undefined: there is nothing at this path. */
async function spaceOf(path: string, withinMs: number): Promise<Space | undefined> {
  // A call on one that does not answer would keep this program from ending.
  const mount = await remoteMountOn(path)
  if (mount !== undefined) throw new Error(`${path} is on a remote file system (${mount.type} at ${mount.path})`)
  const read = Promise.all([stat(path), statfs(path)])
  try {
    const [{ dev }, { bavail, blocks, bsize, files, ffree }] = await within(withinMs, `${path}: no answer`, read)
    const space = {
      path,
      availableBytes: bavail * bsize,
      capacityBytes: blocks * bsize,
      inodes: files,
      inodesFree: ffree,
    }
    return blocks === 0 ? undefined : { device: dev, space }
  } catch (error) {
    if (!['', 'EIO'].includes(codeOf(error)) && !(error instanceof TooLate)) return undefined
    throw new Error(`Cannot ask for the space at ${path}`, { cause: error })
  }
}

function agentHealth(
  port: number,
  withinMs: number,
): Promise<{ readonly status: number; readonly text: string } | undefined> {
  return new Promise((resolve) => {
    const asked = get({ host: '127.0.0.1', port, path: '/healthz', agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        if (text.length < 10_000) text += chunk
      })
      response.on('error', () => resolve(undefined))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    const stop = startDeadline(withinMs, () => asked.destroy())
    asked.on('error', () => resolve(undefined))
    asked.on('close', stop)
  })
}

type AgentPlace = {
  readonly dataDir: string
  readonly dataPath: string
  readonly dockerSocket: string
  readonly isLive: boolean
}

function agentState({ dataDir, dataPath, dockerSocket, isLive }: AgentPlace): AgentState {
  const file = async (path: string, shown: string) => {
    const mode = await modeOf(path)
    return mode === undefined ? undefined : { path: shown, mode }
  }
  return {
    dataPath,
    dockerSocket,
    dataDirectory: () => file(dataDir, dataPath),
    identityFile: () => file(identityPath(dataDir), identityPath(dataPath)),
    async isWritable() {
      if (!isLive || process.getuid?.() !== 0) return undefined
      return access(dataDir, constants.W_OK).then(
        () => true,
        () => false,
      )
    },
    async heldPods() {
      const text = await readFile(bootFilePath(dataDir), 'utf8').catch((error) => {
        if (codeOf(error) === 'ENOENT') return ''
        throw new Error(`Cannot read ${bootFilePath(dataPath)}`, { cause: error })
      })
      return parseBootFile(text).held.map(({ pod }) => pod)
    },
    identity: () => readIdentity(dataDir),
  }
}

/** Calls `ask` once and returns its result to every caller. */
function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined
  return () => {
    answer ??= ask()
    return answer
  }
}
