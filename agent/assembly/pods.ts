/** The pods of this node: the pod manager with the adapters it uses, and the node as the board shows it. */
import { machine as unameMachine } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import type { ApiClient } from '../../daemon/api-client.ts'
import type { Log } from '../../daemon/log.ts'
import { checkpointPath, fileCheckpoint } from '../adapters/disk/checkpoint.ts'
import { logLinkFolders } from '../adapters/disk/log-link-folders.ts'
import { networkProbes } from '../adapters/http/network-probes.ts'
import { deviceNumber, findDevices } from '../adapters/kernel/host-devices.ts'
import { hostPlatform } from '../adapters/kernel/host-platform.ts'
import { readHosts, readResolver } from '../adapters/kernel/host-resolver.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { apiService } from '../network/services/api-service.ts'
import type { ControlPlane } from '../node/connection/control-plane.ts'
import type { PodIsolation } from '../pods/admission/pod-isolation.ts'
import { defaultPodManagerSettings, type PodManager, type PodManagerNeeds, podManager } from '../pods/pod-manager.ts'
import type { VolumeStore } from '../pods/volumes/volume-store.ts'
import type { ContainerRuntime } from '../runtime/runtime.ts'
import type { AgentCounters } from '../usage/agent-counters.ts'
import type { AgentBoard } from './board.ts'
import type { AgentMachine } from './machine.ts'
import { networkDecided } from './pod-network-link.ts'

export type PodParts = {
  readonly root: string
  readonly dataDir: string
  readonly board: AgentBoard
  readonly configuration: AgentConfiguration
  readonly nodeName: string
  readonly machine: AgentMachine
  readonly disk: VolumeStore
  readonly runtime: ContainerRuntime
  readonly isolation: PodIsolation
  readonly controlPlane: ControlPlane
  readonly api: Pick<ApiClient, 'post'>
  readonly counters: AgentCounters
  readonly log: Log
}

export function assemblePods(parts: PodParts): PodManager {
  const { root, dataDir, board, configuration, nodeName, machine, runtime, controlPlane, api, counters, log } = parts
  const { boot, clock, date, inventory, random, sensors } = machine
  const uptimeMs = () => sensors.time().uptimeMs
  const pods = podManager(
    {
      runtime,
      volumes: parts.disk,
      hostResolver: () => readResolver(root),
      machineHosts: () => readHosts(root),
      platformProblem: hostPlatform({ root, machine: unameMachine() }),
      devices: { list: () => findDevices(configuration.devices), numberOf: deviceNumber },
      controlPlane,
      api,
      network: networkProbes(),
      date: { nowMs: date.nowMs, uptimeMs },
      isolation: parts.isolation,
      networkDecided: () => networkDecided(board),
      gate: boot.startGate({ clock, uptimeMs, log }),
      checkpoint: fileCheckpoint(checkpointPath(dataDir), log),
      started: counters.podStarted,
      ...(configuration.podLogLinks && { logLinks: logLinkFolders(root, log) }),
      node: nodeOn(board, inventory.machine.memoryBytes),
      clock,
      random,
      log,
    },
    {
      ...defaultPodManagerSettings,
      nodeName,
      podPidsLimit: configuration.podPidsLimit,
      seccompDefault: configuration.seccompDefault,
      ...(configuration.metered && { tokenRenewalMs: meteredTokenRenewalMs }),
      keptDead: keptDead(configuration),
      pulls: configuration.imagePulls,
    },
  )
  board.staticPods.subscribe(pods.staticPods)
  let known = internalIPs(board)
  board.nodeStatus.onChange(() => {
    const found = internalIPs(board)
    if (isDeepStrictEqual(found, known)) return
    known = found
    pods.addressesChanged()
  })
  return pods
}

/** One of each IP family at most. */
function internalIPs(board: AgentBoard): readonly string[] {
  const addresses = board.nodeStatus.get()?.addresses ?? []
  return addresses.flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []))
}

function nodeOn(board: AgentBoard, memoryCapacityBytes: number): PodManagerNeeds['node'] {
  return {
    isKnown: () => board.nodeStatus.get() !== undefined,
    hostIP: () => internalIPs(board)[0],
    otherHostIP: () => internalIPs(board)[1],
    allocatable: () => board.nodeStatus.get()?.allocatable ?? {},
    memoryCapacityBytes: () => memoryCapacityBytes,
    kernelLimits: () => board.runtime.get().info,
    apiService: () => apiService(board.serviceRules.IPv4.get(), board.appliedRules.IPv4.get()),
    isOffNetwork: () => board.networkObstacle.get() !== undefined,
    pressures: () => board.pressures.get() ?? [],
    isShuttingDown: () => board.goingDown.get() !== undefined,
  }
}

/** A renewal costs about 7 KB. Tokens of the API are valid for a year. */
const meteredTokenRenewalMs = 7 * 24 * 3600_000

/** The sync of a pod removes its dead containers at once, as the kubelet does; the collector removes the rest. */
function keptDead({ garbage }: AgentConfiguration): number {
  const { maxPerPodContainer } = garbage.containers
  return maxPerPodContainer < 0 ? Number.POSITIVE_INFINITY : Math.max(1, maxPerPodContainer)
}
