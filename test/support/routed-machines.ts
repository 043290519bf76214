/**
 * A fleet with a network of its own: machines on one link, each a network namespace with an engine and an agent in it, and a
 * stranger on the same link. The controller is on this host.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { startDockerd, type TestDockerd, whyNoDockerd } from './dockerd.ts'
import {
  type AgentOptions,
  type Controller,
  type ControllerOptions,
  joinFleet,
  startAgent,
  startController,
  type Teardown,
  temporaryFolder,
} from './fleet.ts'
import { command, commandOrThrow, inSpace, type Outcome } from './machine-commands.ts'
import { type MachineNetwork, machineNetwork } from './machine-network.ts'
import { ownRoot } from './own-root.ts'
import { whyNoRules } from './own-space.ts'
import { image } from './pods.ts'
import type { Program } from './program.ts'

export type Space = {
  /** Its name, as of `ip netns`. */
  readonly space: string
  readonly address: string
  /** What a program prints in its network namespace. Rejects when it fails. */
  run(...line: readonly string[]): Promise<string>
  /** The same, for a program that may fail. */
  tryRun(...line: readonly string[]): Promise<Outcome>
}

export type RoutedMachine = Space & {
  readonly name: string
  readonly dataDir: string
  readonly docker: TestDockerd
  /** Starts its agent; waits for nothing. `changes`: what it finds in place of what is there. */
  startAgent(changes?: Pick<AgentOptions, 'env'> & { readonly dockerSocket?: string }): Promise<Program>
  /** The log of the agent that was started last. */
  agentLines(): Program['lines']
}

export type RoutedMachines = {
  readonly folder: string
  readonly network: MachineNetwork
  readonly controller: Controller
  /** Another in its place, once it has ended: the same data and ports, with these settings in place of its own. */
  controllerAgain(settings?: ControllerOptions['settings']): Promise<Controller>
  readonly first: RoutedMachine
  readonly second: RoutedMachine
  /** On the same link, and no node. */
  readonly stranger: Space
  /** `sh -c` in a container of a pod, by kubectl. */
  within(pod: string, script: string): Promise<Outcome>
  /** `sh -c` with the files of this host in the network of a pod of `default`: no agent takes part. */
  inNetworkOf(pod: string, script: string): Promise<Outcome>
}

/** For `test(name, { skip: whyNoRoutedMachines() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoRoutedMachines(): string | false {
  return whyNoDockerd() || whyNoRules()
}

/** pi-1 and pi-2 have joined; their agents are not started. */
export async function routedMachines(
  t: Teardown,
  settings: {
    readonly controller?: ControllerOptions['settings'] | ((network: MachineNetwork) => ControllerOptions['settings'])
    readonly agents?: AgentOptions['settings']
    /** Agents find the interfaces of their machine below /sys, too. */
    readonly seesLinks?: boolean
  } = {},
): Promise<RoutedMachines> {
  const folder = await temporaryFolder(t)
  const network = await machineNetwork(t)
  const ofController = typeof settings.controller === 'function' ? settings.controller(network) : settings.controller
  const served = {
    dataDir: join(folder, 'controller'),
    settings: { podNetwork: 'routed', ...ofController },
    address: network.hostAddress,
  }
  const places = [await plugged(t, network), await plugged(t, network)] as const
  const starting = startController(t, served)
  const machine = async (name: string, place: Space): Promise<RoutedMachine> => {
    const docker = await startDockerd(t, { space: place.space, withRules: true })
    // As Docker leaves it where the machine did not forward packets before.
    await place.run('iptables', '--wait', '--policy', 'FORWARD', 'DROP')
    await docker.importImage(image)
    const dataDir = join(folder, name)
    await joinFleet(await starting, name, dataDir, place.space)
    const root = settings.seesLinks === true ? await ownRoot(t, place.space) : undefined
    const agents = settings.agents ?? {}
    const options = { dataDir, dockerSocket: docker.socket, space: place.space, root, settings: agents }
    let agent: Program | undefined
    return {
      ...{ ...place, name, dataDir, docker },
      startAgent: async (changes) => (agent = await startAgent(t, { ...options, ...changes })),
      agentLines: () => agent?.lines ?? [],
    }
  }
  const [controller, first, second] = await Promise.all([
    starting,
    machine('pi-1', places[0]),
    machine('pi-2', places[1]),
  ])
  const ports = { apiPort: Number(new URL(controller.apiUrl).port), mqttPort: controller.mqttPort }
  return {
    folder,
    network,
    controller,
    controllerAgain: (more) => startController(t, { ...served, ...ports, settings: { ...served.settings, ...more } }),
    first,
    second,
    async inNetworkOf(pod, script) {
      const pids = await Promise.all([first, second].map(({ docker }) => sandboxPid(docker, pod)))
      const pid = pids.find((one) => one !== undefined)
      if (pid === undefined) throw new Error(`Pod ${pod} runs on no machine`)
      return await command('nsenter', [`--net=/proc/${pid}/ns/net`, 'sh', '-c', script])
    },
    stranger: await plugged(t, network),
    within: (pod, script) => controller.tryKubectl('exec', pod, '--', 'sh', '-c', script),
  }
}

/** PID of the process that holds the network of a pod of `default`; undefined: the pod is not on this machine. */
export async function sandboxPid({ docker }: TestDockerd, pod: string): Promise<number | undefined> {
  const label = [`io.kubernetes.pod.name=${pod}`, 'io.kubernetes.docker.type=podsandbox']
  const [sandbox] = await docker.listContainers({ filters: JSON.stringify({ label }) })
  return sandbox && (await docker.getContainer(sandbox.Id).inspect()).State.Pid
}

/** One more place on the link. Gone when the test ends. */
export async function plugged(t: Teardown, network: MachineNetwork): Promise<Space> {
  const space = `br-${randomBytes(4).toString('hex')}`
  const plug = network.plug(space)
  t.teardown(() => plug.remove())
  await plug.fresh()
  const line = (...words: readonly string[]): [string, readonly string[]] => {
    const [file = '', ...args] = inSpace(space, ...words)
    return [file, args]
  }
  return {
    space,
    address: plug.address,
    run: (...words) => commandOrThrow(...line(...words)),
    tryRun: (...words) => command(...line(...words)),
  }
}
