/** The agent as a program: command line → configuration and identity → agent → exit status. */

import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { hostname as machineName } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../daemon/clock.ts'
import { withinOr } from '../daemon/deadline.ts'
import { removeUnfinished } from '../daemon/durable-file.ts'
import { codeOf } from '../daemon/errors.ts'
import { type Log, openLog, storyOf } from '../daemon/log.ts'
import { printText } from '../daemon/process/command-line.ts'
import { ConfigurationError, readConfigurationFile } from '../daemon/process/configuration-file.ts'
import { exitCode } from '../daemon/process/exit-code.ts'
import { ownExecutable } from '../daemon/process/own-executable.ts'
import { version } from '../daemon/process/version.ts'
import { openSystemdNotifier } from '../daemon/watchdog/systemd-notifier.ts'
import { checkpointPath, laterFormat } from './adapters/disk/checkpoint.ts'
import { AlreadyRunning, agentOn, lockDirectory } from './adapters/disk/single-instance.ts'
import { readHardwareIdentity } from './adapters/kernel/host-identity.ts'
import { readAllRoutes } from './adapters/kernel/host-routes.ts'
import { runAgent } from './assembly/agent.ts'
import { type RunRequest, readAgentCommandLine } from './command-line.ts'
import { agentDefaults } from './commands/command-table.ts'
import {
  type AgentConfiguration,
  AgentConfigurationSchema,
  agentConfiguration,
  emptyAgentConfiguration,
} from './configuration.ts'
import { diskShortages } from './eviction/disk-shortages.ts'
import { type FoundIdentity, findIdentity, repairIdentity } from './join/identity.ts'
import type { JoinPlaces } from './join/join-command.ts'
import type { FleetRanges } from './network/peers/home-networks.ts'

async function main(argv: readonly string[]): Promise<number> {
  const line = readAgentCommandLine(argv)
  switch (line.want) {
    case 'help':
    case 'refuse':
      return printText(line, output)
    case 'join':
      return joinThenRun(line.argv)
    case 'first-boot':
      return joinAtFirstBoot(line.request)
    case 'doctor':
      return askDoctor(line.argv)
    case 'network':
      return showNetwork(line.argv)
    case 'report':
      return printReport(line.argv)
    case 'run':
      return run(line.request)
  }
}

const output = {
  stdout: (text: string) => void process.stdout.write(text),
  stderr: (text: string) => void process.stderr.write(text),
}

async function joinAtFirstBoot(request: RunRequest): Promise<number> {
  const { dataDir, root } = request
  const log = openOwnLog(request)
  const { firstBoot, firstBootPaths } = await import('./join/first-boot.ts')
  const end = await firstBoot({
    paths: firstBootPaths.map((path) => join(root, path)),
    dataDir,
    hostname: machineName(),
    hardware: await readHardwareIdentity(root),
    obstacleTo: obstacleOn(request),
    clock: systemClock,
    random: Math.random,
    signal: stopping.signal,
    log,
  })
  return end === 'bad-file' ? exitCode.configuration : exitCode.fine
}

function openOwnLog({ logLevel, logFormat }: RunRequest): Log {
  return openLog({
    level: logLevel,
    format: logFormat ?? (process.stdout.isTTY ? 'text' : 'json'),
    write: (line) => void process.stdout.write(line),
  })
}

async function joinThenRun(argv: readonly string[]): Promise<number> {
  // Loaded on demand: it includes the certificate code, which a running agent does not need.
  const { joinCommand } = await import('./join/join-command.ts')
  const { isStartedBySystemd } = await import('./join/packaged-service.ts')
  const joined = await joinCommand(argv, {
    hostname: machineName(),
    readHardware: readHardwareIdentity,
    obstacleOn,
    runningAgent: agentOn,
    isStartedBySystemd,
    diskShortages: readDiskShortages,
    clock: systemClock,
    signal: stopping.signal,
    ...output,
    defaults: agentDefaults,
  })
  if (joined.runArgs === undefined) return joined.exitCode
  const line = readAgentCommandLine(joined.runArgs)
  return line.want === 'run' ? run(line.request) : exitCode.usage
}

/** As the agent will judge its disks. Nothing where Docker does not answer in time, or the configuration is wrong. */
async function readDiskShortages({ dataDir, config, dockerSocket, root }: JoinPlaces): Promise<readonly string[]> {
  const { askDocker } = await import('./doctor/adapters/engine.ts')
  const { readDiskSignals } = await import('./doctor/adapters/disk-signals.ts')
  const [engine, { eviction: thresholds }] = await Promise.all([
    withinOr(dockerAnswerMs, 'hangs' as const, askDocker(dockerSocket)),
    configurationFor(config, root),
  ])
  const imageDirectory = typeof engine === 'string' ? undefined : engine.rootDirectory
  const observed = await readDiskSignals(dataDir, imageDirectory)
  return diskShortages({ thresholds, observed, dataDirectory: dataDir, imageDirectory })
}

/** As the agent will judge this machine. Nothing of a Docker that does not answer in time. */
function obstacleOn({ root, dockerSocket }: Pick<JoinPlaces, 'root' | 'dockerSocket'>) {
  return async (ranges: FleetRanges) => {
    const { askDocker } = await import('./doctor/adapters/engine.ts')
    const { networkToolProblem } = await import('./adapters/network/network-tools.ts')
    const { ownerOfNetwork } = await import('./adapters/network/network-owner.ts')
    const { engineObstacle, machineObstacle } = await import('./network/gate/network-obstacle.ts')
    const [engine, tools, otherAgent, routes] = await Promise.all([
      withinOr(dockerAnswerMs, 'hangs' as const, askDocker(dockerSocket)),
      networkToolProblem(),
      ownerOfNetwork(root),
      readAllRoutes(root),
    ])
    const backend = typeof engine === 'string' ? undefined : engine.firewallBackend
    return machineObstacle({ otherAgent, tools, ranges, routes }) ?? engineObstacle(backend)
  }
}

const dockerAnswerMs = 4_000

async function askDoctor(argv: readonly string[]): Promise<number> {
  stopping.signal.addEventListener('abort', () => process.exit(130))
  const { doctorCommand } = await import('./doctor/doctor-command.ts')
  const { doctorSources } = await import('./doctor/adapters/doctor-sources.ts')
  const { isTTY, columns } = process.stdout
  return doctorCommand(argv, {
    version,
    sourcesFor: (request) =>
      doctorSources({
        request,
        defaults: agentDefaults,
        readConfiguration: () => configurationFor(request.configPath, request.root),
      }),
    ask: process.stdin.isTTY ? askOnTerminal : undefined,
    ...output,
    terminal: { columns: isTTY ? columns : 80, isColoured: isTTY && process.env['NO_COLOR'] === undefined },
  })
}

async function showNetwork(argv: readonly string[]): Promise<number> {
  const { networkCommand } = await import('./network/network-command.ts')
  const { networkSources } = await import('./assembly/network-sources.ts')
  return networkCommand(argv, { sourcesFor: networkSources, defaults: agentDefaults, ...output })
}

async function printReport(argv: readonly string[]): Promise<number> {
  const { reportCommand } = await import('./assembly/report-command.ts')
  return reportCommand(argv, output)
}

/** Without a path: the file that the systemd unit names, if it exists. */
async function configurationFor(asked: string | undefined, root: string) {
  const usual = join(root, '/etc/bramble/agent.yaml')
  const path = asked ?? (existsSync(usual) ? usual : undefined)
  try {
    const file =
      path === undefined ? emptyAgentConfiguration : await readConfigurationFile(path, AgentConfigurationSchema)
    const { healthzPort, multicastDNS, shutdown, pools, ...eviction } = agentConfiguration(file, path)
    const hasMulticastDNS = multicastDNS !== undefined
    const { graceMs, byPriority } = shutdown
    const tableMs = byPriority.reduce((sum, one) => sum + one.graceMs, 0)
    const shutdownMs = graceMs ?? (byPriority.length > 0 ? tableMs : usualShutdownMs)
    const shutdownSeconds = shutdownMs / 1000
    return { path, trouble: undefined, healthzPort, hasMulticastDNS, shutdownSeconds, pools, eviction }
  } catch (error) {
    const { healthzPort, pools, ...eviction } = agentConfiguration(emptyAgentConfiguration)
    const shutdownSeconds = usualShutdownMs / 1000
    return { path, trouble: storyOf(error), healthzPort, hasMulticastDNS: false, shutdownSeconds, pools, eviction }
  }
}

/** The grace period of pods at shutdown if none is configured. */
const usualShutdownMs = 30_000

async function askOnTerminal(question: string): Promise<boolean> {
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}

async function run(request: RunRequest): Promise<number> {
  const log = openOwnLog(request)
  const ready = await prepare(request).catch((error: unknown) => {
    log.error('Agent not started', { error, remedy: 'Check with dmesg whether the disk fails. The agent tries again' })
    return undefined
  })
  if (ready === undefined) return exitCode.failed
  if ('problem' in ready) {
    process.stderr.write(`${ready.problem}\n`)
    return exitCode.configuration
  }
  const { configuration, found } = ready
  const { identity } = found
  if (request.check) return print(`Configuration and identity of node ${identity.nodeName} are valid\n`)
  try {
    await mkdir(request.dataDir, { recursive: true, mode: 0o700 })
    const lock = await lockDirectory(request.dataDir)
    const { dataDir } = request
    if (lock.unmarked !== undefined)
      log.warn('The disk cannot be written; the agent continues', { dataDir, error: lock.unmarked })
    try {
      await removeUnfinished(dataDir)
      await repairIdentity(dataDir, found, log)
      const service = await openSystemdNotifier(process.env, log)
      const command = [ownExecutable, ...process.execArgv, process.argv[1] ?? '']
      await runAgent({ request, configuration, identity, command, log, service }, stopping.signal)
    } finally {
      await lock.release()
    }
    log.info('Agent stopped', { node: identity.nodeName })
    return exitCode.fine
  } catch (error) {
    const remedy = error instanceof AlreadyRunning ? { remedy: 'Stop it first, or give another --data-dir' } : {}
    log.error('Agent ended', { error, ...remedy })
    return exitCode.failed
  }
}

type Prepared =
  | { readonly configuration: AgentConfiguration; readonly found: FoundIdentity }
  | { readonly problem: string }

async function prepare({ configPath, dataDir, nodeName }: RunRequest): Promise<Prepared> {
  try {
    const file =
      configPath === undefined ? undefined : await readConfigurationFile(configPath, AgentConfigurationSchema)
    const configuration = agentConfiguration(file ?? emptyAgentConfiguration, configPath)
    const found = await findIdentity(dataDir)
    if (found === undefined) return { problem: notJoined(dataDir) }
    const joinedAs = found.identity.nodeName
    if (nodeName !== undefined && nodeName !== joinedAs) {
      return { problem: `This machine joined as node ${joinedAs}, not ${nodeName}; to rename it, join again` }
    }
    const later = await laterFormat(checkpointPath(dataDir))
    if (later !== undefined) return { problem: later }
    return { configuration, found }
  } catch (error) {
    if (mayPass(error)) throw error
    return { problem: error instanceof ConfigurationError ? error.message : storyOf(error) }
  }
}

/** A read error of the disk, or a shortage of resources: a later start may succeed. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return passing.includes(codeOf(error)) || mayPass(error.cause)
}

const passing = ['EIO', 'ENOMEM', 'EMFILE', 'ENFILE', 'EAGAIN', 'ESTALE', 'ETIMEDOUT']

function notJoined(dataDir: string): string {
  return [
    `This machine has not joined a fleet: there is no identity.json in ${dataDir}.`,
    "On the controller, 'bramble-controller token create --print-join-command' prints the line to run here.",
  ].join('\n')
}

function print(text: string): number {
  process.stdout.write(text)
  return exitCode.fine
}

/** The first signal stops the agent in order, a second one ends it at once. */
const stopping = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.on(name, () => {
    if (stopping.signal.aborted) process.exit(130)
    stopping.abort()
  })
}

process.exit(await main(process.argv.slice(2)))
