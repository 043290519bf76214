/** The local endpoint: health of the agent, its pods, their resource usage, and metrics. */
import { rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { filesystemUsage } from '../adapters/disk/filesystem-usage.ts'
import { nodeLogs } from '../adapters/disk/node-logs.ts'
import type { EndpointView } from '../adapters/http/endpoint-answers.ts'
import { localEndpoint } from '../adapters/http/local-endpoint.ts'
import { localSocketPath } from '../adapters/http/local-socket.ts'
import { doctorProcess } from '../adapters/kernel/doctor-process.ts'
import type { Inventory } from '../adapters/kernel/host-inventory.ts'
import { machineMetrics } from '../adapters/kernel/machine-metrics.ts'
import { machineStats } from '../adapters/kernel/machine-stats.ts'
import { nodeUsage } from '../adapters/kernel/node-usage.ts'
import type { MqttControlPlane } from '../adapters/mqtt/mqtt-control-plane.ts'
import type { RunRequest } from '../command-line.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { type HealthFigures, healthMetrics } from '../health/health-metrics.ts'
import { liveNetworkLines } from '../network/live-network.ts'
import { certificateDates } from '../node/certificate/certificate-dates.ts'
import type { RuntimeHealth } from '../node/status/runtime-health.ts'
import type { PodManager } from '../pods/pod-manager.ts'
import { probeDurationBuckets } from '../pods/probes/probe-counts.ts'
import type { AgentCounters } from '../usage/agent-counters.ts'
import { withClaims } from '../usage/claim-stats.ts'
import { scrapes } from '../usage/scrapes.ts'
import { type UsageSampler, usageSampler } from '../usage/usage-sampler.ts'
import type { VolumeFigures } from '../usage/volume-metrics.ts'
import type { AgentBoard } from './board.ts'
import { kubeletConfiguration } from './configz.ts'
import type { Containers } from './containers.ts'
import type { AgentMachine } from './machine.ts'
import type { ApiLink } from './membership.ts'

export type LocalEndpointParts = {
  readonly request: RunRequest
  readonly configuration: AgentConfiguration
  /** What starts this program, to which arguments are added. */
  readonly command: readonly string[]
  readonly nodeName: string
  readonly machine: AgentMachine
  readonly health: RuntimeHealth
  readonly pods: PodManager
  readonly containers: Containers
  readonly figures: () => VolumeFigures
  readonly controlPlane: MqttControlPlane
  readonly board: AgentBoard
  readonly counters: AgentCounters
  readonly link: Pick<ApiLink, 'credentials'>
  /** Why the agent is unhealthy; empty if it is healthy. */
  readonly problems: () => readonly string[]
  readonly log: Log
}

export type AssembledEndpoint = {
  readonly endpoint: Loop
  readonly sampler: UsageSampler & Loop
  /** What it shows, also to the controller. */
  readonly view: EndpointView
}

export function assembleLocalEndpoint(parts: LocalEndpointParts): AssembledEndpoint {
  const { request, configuration, nodeName, health, pods, controlPlane, log } = parts
  const { containerList, usage } = parts.containers
  const { clock, inventory, sensors, volumes } = parts.machine
  const { root, dataDir } = request
  const imageDirectory = () => health.info()?.rootDirectory
  const filesystemAt = filesystemUsage()
  const wholeNode = nodeUsage({ root, dataDirectory: dataDir, imageDirectory, filesystemAt })
  const sampler = usageSampler(
    {
      pods: usage,
      node: wholeNode,
      machine: () => machineStats({ root, temperature: sensors.temperature }),
      send: controlPlane.sendStats,
      clock,
      log,
    },
    nodeName,
  )
  const view: EndpointView = {
    problems: parts.problems,
    pods: pods.pods,
    spec: () => machineInfo(inventory),
    summary: async (brief) => {
      const summary = await sampler.summary(brief)
      const time = rfc3339(clock.wallMs())
      return brief ? summary : withClaims(summary, pods.pods(), parts.figures(), time)
    },
    configz: () => kubeletConfiguration(configuration),
    doctor: doctorProcess({ command: parts.command, args: doctorArguments(request) }),
    logs: nodeLogs(root),
    network: () => networkNow(parts.board),
    scrapes: scrapes(
      {
        pods: usage,
        node: wholeNode,
        containers: containerList.containers,
        machine: async () => [
          ...healthMetrics(healthNow(parts)),
          ...(await machineMetrics({ root, filesystemAt }, clock.wallMs())),
        ],
        volumes: parts.figures,
        counts: parts.counters.text,
        certificateTtlSeconds: () => certificateTtlSeconds(parts),
        probes: () => ({ counts: pods.probes(), buckets: probeDurationBuckets }),
        clock,
      },
      { nodeName, ...inventory.machine },
    ),
  }
  const endpoint = localEndpoint(
    { view, log },
    {
      host: configuration.healthzBindAddress,
      port: request.healthzPort ?? configuration.healthzPort,
      socketPath: localSocketPath(volumes.memoryDirectory),
    },
  )

  return { endpoint: { name: 'local-endpoint', run: endpoint.run }, sampler: { ...sampler, name: 'usage' }, view }
}

/** The doctor examines the machine as this agent sees it. */
function doctorArguments({ dataDir, configPath, dockerSocket, root, healthzPort }: RunRequest): readonly string[] {
  const config = configPath === undefined ? [] : ['--config', configPath]
  const port = healthzPort === undefined || healthzPort === 0 ? [] : ['--healthz-port', String(healthzPort)]
  return ['--data-dir', dataDir, '--docker-socket', dockerSocket, '--root', root, ...config, ...port]
}

/** Read for each request. */
function networkNow(board: AgentBoard): AsyncIterable<Uint8Array> {
  const known = {
    message: board.networkMessage.get(),
    obstacle: board.networkObstacle.get(),
    proofs: board.addressProofs.get(),
    silentNodes: { ipv4: board.silentNodes.IPv4.get(), ipv6: board.silentNodes.IPv6.get() },
  }
  return liveNetworkLines(known, board.serviceStates.get()?.services.values() ?? [])
}

function certificateTtlSeconds({ link, machine: { date } }: LocalEndpointParts): number {
  const endMs = certificateDates(link.credentials.get().certificate).validTo.getTime()
  return Number.isNaN(endMs) ? Number.POSITIVE_INFINITY : (endMs - date.estimatedMs()) / 1000
}

/** Read for each scrape. */
function healthNow({ board, machine: { sensors, date } }: LocalEndpointParts): HealthFigures {
  return {
    conditions: board.machineHealth.get()?.conditions ?? [],
    flash: sensors.flash(),
    clock: { synchronized: sensors.time().synchronized, controller: date.controllerClock.difference() },
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
