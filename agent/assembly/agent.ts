/** Configuration and identity → adapters → a list of loops, which run until the signal aborts. The loops meet at the board. */
import { hostname as machineName } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../../daemon/log.ts'
import { version } from '../../daemon/process/version.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { notifierLoop, type SystemdNotifier } from '../../daemon/watchdog/systemd-notifier.ts'
import { dockerRuntime } from '../adapters/docker/docker-runtime.ts'
import { hostAddresses } from '../adapters/kernel/node-addresses.ts'
import { mqttControlPlane } from '../adapters/mqtt/mqtt-control-plane.ts'
import type { RunRequest } from '../command-line.ts'
import type { AgentConfiguration } from '../configuration.ts'
import type { AgentIdentity } from '../join/identity.ts'
import { haveOthersToLead, keptServers } from '../node/connection/controller-servers.ts'
import { leaseManager } from '../node/registration/lease-manager.ts'
import { nodeEvents } from '../node/status/node-event.ts'
import { runtimeHealth, runtimeView } from '../node/status/runtime-health.ts'
import { agentCounters } from '../usage/agent-counters.ts'
import { type AgentBoard, openBoard } from './board.ts'
import { assembleContainers } from './containers.ts'
import { assembleLocalEndpoint } from './local-endpoint.ts'
import { type AgentMachine, openMachine } from './machine.ts'
import { assembleMachineHealth } from './machine-health.ts'
import { assembleMembership, openApiLink } from './membership.ts'
import { assembleNetwork, networkGround } from './network.ts'
import { assembleNodeStatus } from './node-status.ts'
import { podNetworkLink } from './pod-network-link.ts'
import { assemblePods } from './pods.ts'
import { assemblePressure } from './pressure.ts'
import { assembleSessions } from './sessions.ts'
import { assembleShutdown, type Farewell, farewell } from './shutdown.ts'
import { readStaticPods } from './static-pods.ts'
import { assembleUpdates } from './updates.ts'
import { assembleVolumes, withOrders } from './volumes.ts'

export type Assembly = {
  readonly request: RunRequest
  readonly configuration: AgentConfiguration
  readonly identity: AgentIdentity
  /** What starts this program, to which arguments are added. */
  readonly command: readonly string[]
  readonly log: Log
  /** Receives readiness and the watchdog ping; undefined when the agent runs without a service manager. */
  readonly service: SystemdNotifier | undefined
}

/** Resolves when every loop has ended after an abort; rejects when one ended by itself. */
export async function runAgent(assembly: Assembly, signal: AbortSignal): Promise<void> {
  const { request, identity, log } = assembly
  const { dataDir, root } = request
  const { certificate, nodeName } = identity
  const machine = await openMachine({ root, dataDir, certificate, log })
  const { rebooted } = machine.boot
  log.info('Agent starting', { node: nodeName, version, controller: identity.mqttUrl, rebooted })
  await runLoops(await agentLoops(assembly, machine), signal, log)
  await machine.boot.stop()
}

async function agentLoops(assembly: Assembly, machine: AgentMachine): Promise<readonly Loop[]> {
  const { request, configuration, identity, command, log, service } = assembly
  const { dataDir, root } = request
  const { nodeName } = identity
  const { boot, clock, inventory, kernel, random, volumes, watch } = machine
  const { clockFor } = watch
  const { board, write } = openBoard()
  const counters = agentCounters()
  const goodbye = farewell({ root, board, clock })
  const link = openApiLink(identity, machine)
  const mqttServers = () => keptServers(link.servers.get()).mqttServers
  const controllerUrls = () => [...keptServers(link.servers.get()).apiServers, ...mqttServers()]
  const othersLead = () => haveOthersToLead(link.servers.get())
  const controlPlane = connection(assembly, machine, goodbye, { mqttServers, othersLead })
  const event = nodeEvents({ controlPlane, clock }, nodeName)
  const ground = networkGround({ root, dataDir }, board)
  const engine = dockerRuntime({
    socketPath: request.dockerSocket,
    nodeName,
    seccompDirectory: join(dataDir, 'seccomp'),
    logs: configuration.containerLogs,
    root,
    podNetwork: podNetworkLink(board, ground, nodeName),
  })
  const health = runtimeView(board.runtime, clock)
  const imageDirectory = () => health.info()?.rootDirectory
  const containers = assembleContainers({ root, volumes, engine, imageDirectory, kernel, event, clock, log })
  const { runtime } = containers
  const engineHealth = runtimeHealth({ runtime, clock: clockFor('runtime-health'), log, writes: write('runtime') })
  const staticPods = await readStaticPods({ write, configuration, nodeName, event, watch, log })
  const places = { root, dataDir, request, configuration, nodeName }
  const shared = { ...places, board, write, machine, controlPlane, event, counters, log }
  const network = await assembleNetwork({ ...shared, ...ground, controllerUrls, engine, link })
  const { disk, orders, claims, figures, loops: volumeLoops } = assembleVolumes({ ...shared, api: link.api })
  const pods = assemblePods({ ...shared, disk, runtime, api: link.api, isolation: network.isolation })
  const pressure = assemblePressure({ ...shared, containers, pods, claims, clock, clockFor })
  const machineHealth = await assembleMachineHealth({ ...shared, health, podNetworkProblem: engine.podNetworkProblem })
  const shutdown = await assembleShutdown({ ...shared, pods, goodbye })
  const status = assembleNodeStatus({
    ...shared,
    inventory,
    addresses: addressesOf(shared, board),
    rebooted: boot.rebooted,
    clock: clockFor('node-status'),
    random,
  })
  const lease: Loop = { name: 'lease', run: leaseManager({ controlPlane, clock: clockFor('lease'), random }).run }
  const membership = assembleMembership({ ...shared, identity, status, pods, volumePools: disk.pools, link })
  const hanging = () => watch.stuck().map((loop) => `loop ${loop} hangs`)
  const {
    endpoint,
    sampler,
    view: shown,
  } = assembleLocalEndpoint({ ...shared, command, link, health, pods, figures, containers, problems: hanging })
  const sessions = assembleSessions({
    ...shared,
    apiUrl: link.url,
    credentials: membership.credentials,
    knownTime: machine.date.knownTime,
    pods,
    runtime,
    engine: engine.streams,
    copies: disk.moves,
    backups: disk.backups,
    view: shown,
    address: () => board.nodeStatus.get()?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
    clock,
  })
  const connect: Loop = {
    name: 'control-plane',
    run: (signal) => {
      const stats = configuration.metered ? {} : { stats: sampler.call }
      const listener = {
        ...membership.listener,
        ...network.listener,
        ...stats,
        session: sessions.requested,
        connected: status.update,
        disconnected: sessions.disconnected,
      }
      return controlPlane.run(withOrders(listener, orders), signal)
    },
  }
  const statusLine = () => {
    const link = controlPlane.connected ? 'connected to' : 'no connection to'
    const node = `Node ${nodeName}: ${pods.pods().length} pods, ${link} ${identity.mqttUrl}`
    const names = board.nameProblem.get()
    return [node, ...health.problems(), ...(names === undefined ? [] : [names])].join('; ')
  }
  /** Ready without the controller: a machine that restarts without a network runs its pods. */
  const view = { ready: health.isChecked, problems: hanging, status: statusLine }
  return [
    ...(service === undefined ? [] : [notifierLoop(service, view, clock, log)]),
    ...[connect, ...membership.loops, ...network.loops, ...staticPods, ...machine.loops, ...pressure, engineHealth],
    ...[...machineHealth, status, lease, pods, orders, ...volumeLoops, ...shutdown, sampler, endpoint, sessions],
    ...assembleUpdates(shared),
  ]
}

function connection(
  { request, configuration, identity, log }: Assembly,
  machine: AgentMachine,
  goodbye: Farewell,
  servers: { readonly mqttServers: () => readonly string[]; readonly othersLead: () => boolean },
) {
  const { clock, date, inventory, random } = machine
  return mqttControlPlane(
    { clock, random, log, leave: goodbye.now },
    {
      ...identity,
      ...servers,
      agentVersion: version,
      bootID: inventory.system.bootID,
      knownTime: date.knownTime,
      root: request.root,
      leaseDurationSeconds: configuration.nodeLeaseDurationSeconds,
      warningsOnly: configuration.metered,
    },
  )
}

type AddressParts = {
  readonly root: string
  readonly nodeName: string
  readonly configuration: AgentConfiguration
  readonly machine: AgentMachine
}

/** Addresses of this machine: both families in a fleet with IPv6, else IPv4. */
function addressesOf(
  { root, nodeName, configuration, machine }: AddressParts,
  board: Pick<AgentBoard, 'networkMessage'>,
) {
  const withIPv6 = () => board.networkMessage.get()?.ipv6 !== undefined
  const settings = { nodeName, hostname: machineName(), nodeIPs: configuration.nodeIPs }
  return hostAddresses({ root, clock: machine.clock, withIPv6 }, settings)
}
