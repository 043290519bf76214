/**
 * Loop: the network that the controller publishes → the one that this machine takes part in. A machine that cannot take part, or not
 * without harm to itself, has none: its pods run in the engine's own network, as in a fleet without one, and a condition has the reason. A
 * machine that has been on the network stays there when another program gives it an address of the fleet: pods would be started again with
 * each change. It is looked at again where the fleet gets other ranges.
 */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type BackoffSettings, longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { FleetRanges, MachineRoute } from '../peers/home-networks.ts'
import { engineObstacle, machineObstacle, type NetworkObstacle, type ToolProblem } from './network-obstacle.ts'

/** What may be in the way on this machine. */
export interface GatedMachine {
  /** Takes the network of the machine for this agent. Resolves with the process ID of another agent that has it, else with undefined. */
  claim(): Promise<number | undefined>
  toolProblem(): Promise<ToolProblem | undefined>
  /** The routes of both families, without the default ones. */
  routes(): Promise<readonly MachineRoute[]>
}

export interface SavedObstacle {
  /** Undefined: this machine is on the network, or was never asked to be. Never rejects. */
  load(): Promise<NetworkObstacle | undefined>
  save(obstacle: NetworkObstacle | undefined): Promise<void>
}

export type NetworkGateNeeds = {
  readonly machine: GatedMachine
  readonly saved: SavedObstacle
  readonly reads: {
    /** From the controller or the checkpoint; undefined: the fleet has no network, or it was never received. */
    readonly fleetNetwork: Reader<NetworkMessage | undefined>
    readonly fleetNetworkCurrent: Reader<boolean>
    readonly runtime: Reader<{ readonly info?: { readonly firewallBackend?: string | undefined } | undefined }>
  }
  readonly writes: {
    readonly networkMessage: Cell<NetworkMessage | undefined>
    readonly networkCurrent: Cell<boolean>
    readonly networkObstacle: Cell<NetworkObstacle | undefined>
  }
  readonly clock: Clock
  readonly log: Log
}

export interface NetworkGate extends Loop {
  /** Once, with the checkpoint: before pods start and messages arrive. */
  load(): Promise<void>
  /** A message of the network has arrived, and the machine has its links: what was in the way is looked at again. */
  received(): void
}

/** Without the file the next agent would take part at once. A full disk may have room again. */
const retry: BackoffSettings = { firstMs: 1_000, maxMs: 5 * 60_000 }

export function networkGate({ machine, saved, reads, writes, clock, log }: NetworkGateNeeds): NetworkGate {
  const wake = alarm(clock)
  /** What is in the way on the machine; 'unknown' until it was checked. */
  let found: NetworkObstacle | undefined | 'unknown' = 'unknown'
  /** The ranges of the fleet of which nothing was in the way. */
  let cleared: string | undefined
  /** What was in the way of the engine when it last answered. */
  let engineBefore: NetworkObstacle | undefined
  let isDue = false
  const file = savedState(saved, log)

  const ofEngine = () => {
    const { info } = reads.runtime.get()
    if (info !== undefined) engineBefore = engineObstacle(info.firewallBackend)
    return engineBefore
  }

  /** Until it is decided, the parts of the network have what they had. */
  const apply = () => {
    const message = reads.fleetNetwork.get()
    if (message === undefined || (found === undefined && rangesOf(message) !== cleared)) found = 'unknown'
    if (message !== undefined && found === 'unknown') return
    const obstacle = found === 'unknown' ? undefined : (found ?? ofEngine())
    show(obstacle)
    writes.networkObstacle.set(obstacle)
    writes.networkMessage.set(obstacle === undefined ? message : undefined)
    writes.networkCurrent.set(reads.fleetNetworkCurrent.get())
    wake.ring()
  }

  const show = (obstacle: NetworkObstacle | undefined) => {
    const before = writes.networkObstacle.get()
    if (obstacle?.found === before?.found) return
    if (obstacle !== undefined) log.warn('This machine is not on the network of pods', { ...obstacle })
    else if (reads.fleetNetwork.get() !== undefined) log.info('This machine is on the network of pods')
  }

  const look = async (message: NetworkMessage) => {
    const isOn = found === undefined
    const otherAgent = await machine.claim()
    if (isOn && otherAgent === undefined) return
    const routes = await machine.routes().catch(() => [])
    found = machineObstacle({ otherAgent, tools: await machine.toolProblem(), ranges: message, routes })
    cleared = rangesOf(message)
    apply()
  }

  return {
    name: 'network-gate',
    async load() {
      const message = reads.fleetNetwork.get()
      const onDisk = await file.load()
      if (message === undefined) return
      if (onDisk?.reason === 'FirewallBackend') engineBefore = onDisk
      if (onDisk === undefined || onDisk.reason === 'FirewallBackend') {
        // It was on the network: what may have changed is who else wants it.
        const otherAgent = await machine.claim()
        found = otherAgent === undefined ? undefined : machineObstacle({ otherAgent, ranges: message, routes: [] })
        cleared = rangesOf(message)
      } else found = onDisk
      apply()
    },
    received() {
      isDue = true
      wake.ring()
    },
    async run(signal) {
      const stops = [reads.fleetNetwork, reads.fleetNetworkCurrent, reads.runtime].map((one) => one.onChange(apply))
      try {
        while (!signal.aborted) {
          const message = reads.fleetNetwork.get()
          if (isDue && message !== undefined) {
            isDue = false
            await look(message)
          }
          await file.save(writes.networkObstacle.get())
          if (!isDue) await wake.sleep(file.restMs(), signal)
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

/** What is on disk, and how long to wait before the next attempt to save what is not. */
function savedState(saved: SavedObstacle, log: Log) {
  let onDisk: NetworkObstacle | undefined
  /** One after the other. */
  let failures = 0
  return {
    async load() {
      onDisk = await saved.load()
      return onDisk
    },
    async save(obstacle: NetworkObstacle | undefined) {
      try {
        if (obstacle?.found !== onDisk?.found) await saved.save(obstacle)
        onDisk = obstacle
        failures = 0
      } catch (error) {
        if (failures === 0) log.warn('An obstacle to the network of pods was not saved', { error })
        failures++
      }
    },
    restMs: () => (failures > 0 ? longestBackoffMs(failures - 1, retry) : longestTimerMs),
  }
}

function rangesOf({ clusterCIDR, serviceCIDR, ipv6 }: FleetRanges): string {
  return JSON.stringify([clusterCIDR, serviceCIDR, ipv6?.clusterCIDR, ipv6?.serviceCIDR])
}
