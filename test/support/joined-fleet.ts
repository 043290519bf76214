/** A fleet to begin with: a controller, machines that have joined it, and one engine for them all, with `image` in it. */
import { join } from 'node:path'
import type { Test } from 'tap'
import { ownAddresses } from './addresses.ts'
import { startDockerd, type TestDockerd } from './dockerd.ts'
import {
  type AgentOptions,
  type Controller,
  type ControllerOptions,
  joinFleet,
  startAgent,
  startController,
  temporaryFolder,
} from './fleet.ts'
import type { NatNetwork } from './nat-network.ts'
import { image } from './pods.ts'
import type { Program } from './program.ts'

export type FleetOptions = {
  /** Names of its nodes. Default: pi-1. */
  readonly names?: readonly string[]
  readonly controller?: ControllerOptions['settings']
  /** Containers reach the controller, too: at the address of this machine on the engine's bridge. */
  readonly isReachable?: true
  /** Its nodes and their engine are there. */
  readonly network?: NatNetwork
  /** Called with the controller, which others reach at `address` only: what is in front of it there. */
  readonly front?: (controller: Controller, address: string) => Promise<void>
  /** Settings of every agent. */
  readonly agents?: AgentOptions['settings']
}

export type JoinedFleet = {
  readonly folder: string
  readonly docker: TestDockerd
  /** The first one. */
  readonly controller: Controller
  /** Another in its place, once it has ended: the same data and ports. */
  controllerAgain(): Promise<Controller>
  /** Where this node's agent keeps its state. */
  dataDir(name?: string): string
  /** With these settings beside those of every agent. */
  startAgent(name?: string, settings?: AgentOptions['settings']): Promise<Program>
  /** Starts these nodes' agents, all of them when left out, and waits until the controller calls them Ready. */
  startReady(...names: readonly string[]): Promise<readonly [Program, ...Program[]]>
}

export async function joinedFleet(t: Test, options: FleetOptions = {}): Promise<JoinedFleet> {
  const { names = ['pi-1'], agents = {}, network } = options
  const space = network?.space
  const folder = await temporaryFolder(t)
  const engine = async () => {
    const started = await startDockerd(t, { space })
    await started.importImage(image)
    return started
  }
  const known = options.isReachable && (await engine())
  const served = {
    dataDir: join(folder, 'controller'),
    settings: options.controller ?? {},
    ...(network && { address: network.hostAddress }),
    ...(known && { address: `${known.subnet}.1` }),
    ...(options.front && { advertised: (await ownAddresses()).replace(/^10\.(.*)/, '127.$1.9') }),
  }
  const dataDir = (name = 'pi-1') => join(folder, name)
  const joined = async () => {
    const started = await startController(t, served)
    if (served.advertised !== undefined) await options.front?.(started, served.advertised)
    await Promise.all(names.map((name) => joinFleet(started, name, dataDir(name), space)))
    return started
  }
  const [docker, controller] = await Promise.all([known ?? engine(), joined()])
  const ports = { apiPort: Number(new URL(controller.apiUrl).port), mqttPort: controller.mqttPort }
  const start = (name?: string, settings: AgentOptions['settings'] = {}) =>
    startAgent(t, { dataDir: dataDir(name), dockerSocket: docker.socket, space, settings: { ...agents, ...settings } })
  return {
    folder,
    docker,
    controller,
    controllerAgain: () => startController(t, { ...served, ...ports }),
    dataDir,
    startAgent: start,
    async startReady(...some) {
      const [first, ...others] = some.length === 0 ? names : some
      const programs = await Promise.all([start(first), ...others.map((name) => start(name))] as const)
      await Promise.all(programs.map((program) => program.logged('Node status posted')))
      await controller.nodesReady(...(some.length === 0 ? names : some))
      return programs
    },
  }
}
