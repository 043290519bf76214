/** The agent: what was typed → configuration → identity → adapters → managers, running until told to stop. */
import { createHash } from 'node:crypto'
import { mkdir, realpath } from 'node:fs/promises'
import { hostname as machineName } from 'node:os'
import { join } from 'node:path'
import { apiClient } from '../daemon/api-client.ts'
import { systemClock } from '../daemon/clock.ts'
import { ConfigurationError, readConfigurationFile } from '../daemon/configuration-file.ts'
import { type Log, openLog, storyOf } from '../daemon/log.ts'
import { loopWatch } from '../daemon/loop-watch.ts'
import { runLoops } from '../daemon/run.ts'
import { nodeVersion, version } from '../daemon/version.ts'
import { rebootedSince } from './adapters/boot-record.ts'
import { fileCheckpoint } from './adapters/checkpoint.ts'
import { dockerRuntime } from './adapters/docker.ts'
import { findDevices } from './adapters/host-devices.ts'
import { readHardwareIdentity } from './adapters/host-identity.ts'
import { describeMachine, type Inventory, readInventory } from './adapters/host-inventory.ts'
import { readResolver } from './adapters/host-resolver.ts'
import { hostSignals } from './adapters/host-signals.ts'
import { localEndpoint } from './adapters/local-endpoint.ts'
import { mqttControlPlane } from './adapters/mqtt-control-plane.ts'
import { networkProbes } from './adapters/network-probes.ts'
import { hostAddresses } from './adapters/node-addresses.ts'
import { AlreadyRunning, agentOn, lockDirectory } from './adapters/single-instance.ts'
import { volumeStore } from './adapters/volume-store.ts'
import { defaults, help, type RunRequest, readCommandLine, readRun, runOptions } from './command-line.ts'
import {
  type AgentConfiguration,
  AgentConfigurationSchema,
  agentConfiguration,
  emptyConfiguration,
} from './configuration.ts'
import { evictionManager } from './eviction/eviction-manager.ts'
import { reservedBelow } from './eviction/thresholds.ts'
import { type Identity, readIdentity } from './join/identity.ts'
import { leaseManager } from './node/lease-manager.ts'
import { nodeStatusManager } from './node/node-status-manager.ts'
import { registration } from './node/registration.ts'
import { runtimeHealth } from './node/runtime-health.ts'
import type { MachineDevices } from './pods/devices.ts'
import { defaultPodManagerSettings, podManager } from './pods/pod-manager.ts'

/** sysexits.h: wrong usage; wrong configuration, which systemd is told not to start again. */
const exitUsage = 64
const exitConfiguration = 78

/** A loop that is busy with one thing for longer than this hangs: every call it makes has an earlier deadline. */
const hangsAfterMs = 3 * 60_000

async function main(argv: readonly string[]): Promise<number> {
  const line = readCommandLine(argv)
  switch (line.want) {
    case 'help':
      return said(help, 0)
    case 'version':
      return said(`bramble-agent ${version}\n`, 0)
    case 'refuse':
      process.stderr.write(`${line.why}\nTry 'bramble-agent --help'.\n`)
      return exitUsage
    case 'join':
      return joinThenRun(line.argv)
    case 'run':
      return run(line.request)
  }
}

async function joinThenRun(argv: readonly string[]): Promise<number> {
  // Loaded here: it brings the certificate code, which a running agent does without.
  const { joinCommand } = await import('./join/join-command.ts')
  const { exitCode, runArgs } = await joinCommand(argv, {
    hostname: machineName(),
    readHardware: readHardwareIdentity,
    runningAgent: agentOn,
    clock: systemClock,
    signal: stopping.signal,
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
    runOptions,
    defaults,
  })
  if (runArgs === undefined) return exitCode
  const line = readRun(runArgs)
  return line.want === 'run' ? run(line.request) : exitUsage
}

async function run(request: RunRequest): Promise<number> {
  const log = openLog({
    level: request.logLevel,
    format: request.logFormat ?? (process.stdout.isTTY ? 'text' : 'json'),
    write: (line) => void process.stdout.write(line),
  })
  const ready = await prepare(request)
  if ('problem' in ready) {
    process.stderr.write(`${ready.problem}\n`)
    return exitConfiguration
  }
  if (request.check) return said(`Everything is there to run as node ${ready.identity.nodeName}\n`, 0)
  try {
    await mkdir(request.dataDir, { recursive: true, mode: 0o700 })
    const lock = await lockDirectory(request.dataDir)
    const { dataDir } = request
    if (lock.unmarked !== undefined) log.warn('Disk takes no writes, going on', { dataDir, error: lock.unmarked })
    try {
      await runAgent(request, ready.configuration, ready.identity, log)
    } finally {
      await lock.release()
    }
    log.info('Agent stopped', { node: ready.identity.nodeName })
    return 0
  } catch (error) {
    const remedy = error instanceof AlreadyRunning ? { remedy: 'Stop it first, or give another --data-dir' } : {}
    log.error('Agent ended', { error, ...remedy })
    return 1
  }
}

type Prepared =
  | { readonly configuration: AgentConfiguration; readonly identity: Identity }
  | { readonly problem: string }

async function prepare({ configPath, dataDir, nodeName }: RunRequest): Promise<Prepared> {
  try {
    const file =
      configPath === undefined ? undefined : await readConfigurationFile(configPath, AgentConfigurationSchema)
    const configuration = agentConfiguration(file ?? emptyConfiguration, configPath)
    const identity = await readIdentity(dataDir)
    if (identity === undefined) return { problem: notJoined(dataDir) }
    if (nodeName !== undefined && nodeName !== identity.nodeName) {
      return { problem: `This machine joined as node ${identity.nodeName}, not ${nodeName}; to rename it, join again` }
    }
    return { configuration, identity }
  } catch (error) {
    return { problem: error instanceof ConfigurationError ? error.message : storyOf(error) }
  }
}

function notJoined(dataDir: string): string {
  return [
    `This machine has not joined a fleet: there is no identity.json in ${dataDir}.`,
    "On the controller, 'bramble-controller token create --print-join-command' prints the line to run here.",
  ].join('\n')
}

async function runAgent(
  request: RunRequest,
  configuration: AgentConfiguration,
  identity: Identity,
  log: Log,
): Promise<void> {
  const { dataDir, root } = request
  const { nodeName } = identity
  const hostname = machineName()
  const inventory = await readInventory({ root, dataDirectory: dataDir })
  const { machine, system } = inventory
  const rebooted = await rebootedSince(dataDir, system.bootID)
  log.info('Agent starting', { node: nodeName, version, controller: identity.mqttUrl, rebooted })

  const random = Math.random
  const watch = loopWatch(systemClock, hangsAfterMs)
  const controlPlane = mqttControlPlane(
    { clock: systemClock, random, log },
    { ...identity, agentVersion: version, bootID: system.bootID },
  )
  const runtime = dockerRuntime({
    socketPath: request.dockerSocket,
    nodeName,
    seccompDirectory: join(dataDir, 'seccomp'),
  })
  const health = runtimeHealth({ runtime, clock: watch.clockFor('runtime-health'), log, changed: () => status.wake() })
  const eviction = evictionManager(
    {
      signals: hostSignals({ root, dataDirectory: dataDir, imageDirectory: () => health.info()?.rootDirectory }),
      clock: watch.clockFor('eviction'),
      log,
      changed: () => status.wake(),
    },
    { thresholds: configuration.evictionHard, transitionMs: configuration.evictionPressureTransitionMs },
  )
  const status = nodeStatusManager(
    {
      machine,
      system,
      addresses: hostAddresses({ root, clock: systemClock }, { nodeName, hostname, nodeIP: configuration.nodeIP }),
      pressures: eviction.pressures,
      runtime: health,
      devices: async () => counted(await findDevices(configuration.devices)),
      controlPlane,
      clock: watch.clockFor('node-status'),
      random,
      log,
    },
    {
      nodeName,
      agentVersion: nodeVersion,
      maxPods: configuration.maxPods,
      podsPerCore: configuration.podsPerCore,
      reserved: [
        configuration.systemReserved,
        configuration.kubeReserved,
        reservedBelow(configuration.evictionHard, machine),
      ],
      updateMs: configuration.nodeStatusUpdateMs,
      reportMs: configuration.nodeStatusReportMs,
      rebooted,
    },
  )
  const lease = leaseManager({ controlPlane, clock: watch.clockFor('lease'), random }, configuration)
  const pods = podManager(
    {
      runtime,
      volumes: volumeStore(await volumeFolders(dataDir)),
      hostResolver: () => readResolver(root),
      devices: () => findDevices(configuration.devices),
      controlPlane,
      network: networkProbes('kube-probe/1.32'),
      checkpoint: fileCheckpoint(join(dataDir, 'desired.json'), log),
      node: {
        hostIP: () => status.status()?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
        allocatable: () => status.status()?.allocatable ?? {},
        memoryCapacityBytes: () => machine.memoryBytes,
      },
      clock: systemClock,
      random,
      log,
    },
    { ...defaultPodManagerSettings, nodeName },
  )
  const registering = registration({
    api: apiClient({ url: identity.apiUrl, ca: identity.ca, certificate: identity.certificate, key: identity.key }),
    facts: async () => ({
      nodeName,
      hostname,
      operatingSystem: system.operatingSystem,
      architecture: system.architecture,
      hardware: await readHardwareIdentity(root),
      annotations: described(await describeMachine()),
      nodeLabels: configuration.nodeLabels,
      taints: configuration.registerWithTaints,
    }),
    status: status.first,
    registered: status.report,
    clock: systemClock,
    random,
    log,
  })
  const endpoint = localEndpoint(
    {
      view: {
        problems: () => watch.stuck().map((loop) => `loop ${loop} hangs`),
        pods: pods.pods,
        spec: () => machineInfo(inventory),
      },
      log,
    },
    { host: configuration.healthzBindAddress, port: request.healthzPort ?? configuration.healthzPort },
  )

  await runLoops(
    [
      { name: 'control-plane', run: (signal) => controlPlane.run(pods, signal) },
      { name: 'eviction', run: eviction.run },
      { name: 'runtime-health', run: health.run },
      { name: 'node-status', run: status.run },
      { name: 'lease', run: lease.run },
      pods,
      ...(configuration.registerNode ? [{ name: 'registration', run: registering.run }] : []),
      { name: 'local-endpoint', run: endpoint.run },
    ],
    stopping.signal,
    log,
  )
}

/** Memory of its own for each data directory: more than one agent may run on a machine. */
async function volumeFolders(dataDir: string) {
  const dataDirectory = await realpath(dataDir)
  const id = createHash('sha256').update(dataDirectory).digest('hex').slice(0, 12)
  return { dataDirectory, memoryDirectory: join(await realpath('/run'), 'bramble', id) }
}

function counted(devices: MachineDevices) {
  return Object.fromEntries([...devices].map(([resource, paths]) => [resource, paths.length]))
}

function described({ board, processor }: { readonly board?: string; readonly processor?: string }) {
  return {
    ...(board === undefined ? {} : { 'bramble.dev/board': board }),
    ...(processor === undefined ? {} : { 'bramble.dev/processor': processor }),
  }
}

function machineInfo({ machine, system }: Inventory) {
  return {
    num_cores: machine.cpus,
    memory_capacity: machine.memoryBytes,
    machine_id: system.machineID,
    system_uuid: system.systemUUID,
    boot_id: system.bootID,
  }
}

function said(text: string, exitCode: number): number {
  process.stdout.write(text)
  return exitCode
}

/** The first signal ends everything in order, a second one at once. */
const stopping = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.on(name, () => {
    if (stopping.signal.aborted) process.exit(130)
    stopping.abort()
  })
}

process.exit(await main(process.argv.slice(2)))
