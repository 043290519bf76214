/** A fleet of two machines, each with an engine of its own, which can be killed as a whole; the line of the first one can be cut. */
import { join } from 'node:path'
import type { Test } from 'tap'
import { startDockerd, type TestDockerd, whyNoDockerd } from './dockerd.ts'
import {
  type AgentOptions,
  type Controller,
  type ControllerOptions,
  joinFleet,
  startAgent,
  startController,
  temporaryFolder,
} from './fleet.ts'
import { type NatNetwork, natNetwork, whyNoNat } from './nat-network.ts'
import { image } from './pods.ts'
import type { Program } from './program.ts'

export const machineNames = ['pi-1', 'pi-2'] as const

export type TestMachine = {
  readonly name: string
  readonly docker: TestDockerd
  /** Starts its engine, if it is not running, and its agent. */
  start(): Promise<Program>
  /** SIGKILL for its agent, its engine and all containers. */
  cutPower(): Promise<void>
}

export type TwoMachines = {
  readonly folder: string
  readonly network: NatNetwork
  readonly controller: Controller
  /** Another in its place, once it has ended: the same data and ports. */
  controllerAgain(): Promise<Controller>
  readonly first: TestMachine
  readonly second: TestMachine
}

/** For `test(name, { skip: whyNoTwoMachines() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoTwoMachines(): string | false {
  return whyNoDockerd() || whyNoNat()
}

/** Both have joined and are Ready. */
export async function twoMachines(
  t: Test,
  settings: { readonly controller: ControllerOptions['settings']; readonly agents: AgentOptions['settings'] },
): Promise<TwoMachines> {
  const folder = await temporaryFolder(t)
  const network = await natNetwork(t)
  const served = {
    dataDir: join(folder, 'controller'),
    settings: settings.controller ?? {},
    address: network.hostAddress,
  }
  const starting = startController(t, served)
  const machine = async (name: string, space?: string): Promise<TestMachine> => {
    const dataDir = join(folder, name)
    const docker = await startDockerd(t, { space })
    await docker.importImage(image)
    await joinFleet(await starting, name, dataDir, space)
    let agent: Program | undefined
    let isOn = true
    return {
      name,
      docker,
      async start() {
        if (!isOn) await docker.start()
        isOn = true
        agent = await startAgent(t, { dataDir, dockerSocket: docker.socket, space, settings: settings.agents ?? {} })
        return agent
      },
      async cutPower() {
        isOn = false
        agent?.kill('SIGKILL')
        await agent?.ended
        await docker.cutPower()
      },
    }
  }
  const [controller, first, second] = await Promise.all([
    starting,
    machine(machineNames[0], network.space),
    machine(machineNames[1]),
  ])
  const ports = { apiPort: Number(new URL(controller.apiUrl).port), mqttPort: controller.mqttPort }
  await Promise.all([first.start(), second.start()])
  await controller.nodesReady(...machineNames)
  return {
    folder,
    network,
    controller,
    controllerAgain: () => startController(t, { ...served, ...ports }),
    first,
    second,
  }
}
