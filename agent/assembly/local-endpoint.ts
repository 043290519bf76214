/** What may be asked of an agent on its own machine: is it well, which pods, who uses how much. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { filesystemUsage } from '../adapters/disk/filesystem-usage.ts'
import { type LocalEndpoint, localEndpoint } from '../adapters/http/local-endpoint.ts'
import type { Inventory } from '../adapters/kernel/host-inventory.ts'
import { machineMetrics } from '../adapters/kernel/machine-metrics.ts'
import { nodeUsage } from '../adapters/kernel/node-usage.ts'
import type { MqttControlPlane } from '../adapters/mqtt/mqtt-control-plane.ts'
import type { RunRequest } from '../command-line.ts'
import type { AgentConfiguration } from '../configuration.ts'
import type { RuntimeHealth } from '../node/runtime-health.ts'
import type { PodManager } from '../pods/pod-manager.ts'
import type { ContainerRoster } from '../usage/roster.ts'
import { scrapes } from '../usage/scrapes.ts'
import type { PodUsage } from '../usage/usage.ts'
import { type UsageSampler, usageSampler } from '../usage/usage-sampler.ts'

export type LocalEndpointParts = {
  readonly request: RunRequest
  readonly configuration: AgentConfiguration
  readonly nodeName: string
  readonly inventory: Inventory
  readonly health: RuntimeHealth
  readonly pods: PodManager
  readonly usage: PodUsage
  readonly roster: ContainerRoster
  readonly controlPlane: MqttControlPlane
  /** In memory: the socket is beside it. */
  readonly memoryDirectory: string
  /** Why the agent is not well; none when it is. */
  readonly problems: () => readonly string[]
  readonly clock: Clock
  readonly log: Log
}

export type AssembledEndpoint = { readonly endpoint: LocalEndpoint; readonly sampler: UsageSampler }

export function assembleLocalEndpoint(parts: LocalEndpointParts): AssembledEndpoint {
  const { request, configuration, nodeName, inventory, health, pods, usage, roster, controlPlane, clock, log } = parts
  const { root, dataDir } = request
  const imageDirectory = () => health.info()?.rootDirectory
  const filesystemAt = filesystemUsage()
  const wholeNode = nodeUsage({ root, dataDirectory: dataDir, imageDirectory, filesystemAt })
  const sampler = usageSampler(
    {
      pods: usage,
      node: wholeNode,
      send: controlPlane.sendStats,
      clock,
      log,
    },
    nodeName,
  )
  const endpoint = localEndpoint(
    {
      view: {
        problems: parts.problems,
        pods: pods.pods,
        spec: () => machineInfo(inventory),
        summary: sampler.summary,
        scrapes: scrapes(
          {
            pods: usage,
            node: wholeNode,
            containers: roster.containers,
            machine: () => machineMetrics({ root, filesystemAt }, clock.wallMs()),
            clock,
          },
          { nodeName, ...inventory.machine },
        ),
      },
      log,
    },
    {
      host: configuration.healthzBindAddress,
      port: request.healthzPort ?? configuration.healthzPort,
      socketPath: `${parts.memoryDirectory}.sock`,
    },
  )

  return { endpoint, sampler }
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
