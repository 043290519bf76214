/** A controller and agents as real processes in a temporary folder, with the real kubectl in front. */

import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ownAddresses } from './addresses.ts'
import { inSpace, longestMs } from './machine-commands.ts'
import { refuseWarnings } from './process-warnings.ts'
import { type LogLine, type Program, startProgram } from './program.ts'
import { endOfAgent } from './volumes.ts'
import { eventually } from './wait.ts'

const repository = fileURLToPath(new URL('../../../', import.meta.url))
const run = promisify(execFile)

export type Teardown = { teardown(end: () => Promise<unknown>): void }

export type Outcome = { readonly code: number; readonly stdout: string; readonly stderr: string }

export type Controller = {
  readonly program: Program
  readonly dataDir: string
  readonly kubeconfig: string
  readonly apiUrl: string
  readonly mqttPort: number
  readonly caHash: string
  /** kubectl with the administrator's kubeconfig: what it printed. Throws when it fails. */
  kubectl(...args: readonly string[]): Promise<string>
  /** The same, with something on its standard input. */
  kubectlWith(input: string, ...args: readonly string[]): Promise<string>
  /** The same, for a command that may fail. */
  tryKubectl(...args: readonly string[]): Promise<Outcome>
  /** Resolves when these nodes have registered and are Ready. */
  nodesReady(...names: readonly string[]): Promise<void>
  /** `bramble-controller …` as an administrator types it. */
  command(...args: readonly string[]): Promise<Outcome>
  /** The printed join line's arguments after `bramble-agent`. */
  joinLine(...args: readonly string[]): Promise<readonly string[]>
}

/** A folder of its own, removed at the end. */
export async function temporaryFolder(t: Teardown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-test-'))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

export type ControllerOptions = {
  readonly dataDir: string
  readonly settings?: Readonly<Record<string, unknown>>
  readonly apiPort?: number
  readonly mqttPort?: number
  /** Address of its ports. Default: a loopback address. */
  readonly address?: string
  /** Added to the environment of this process. */
  readonly env?: NodeJS.ProcessEnv
  /** A configuration file that is there; default: one with `settings`. */
  readonly config?: string
  /** Where others reach it, through a load balancer; default: at `address`. */
  readonly advertised?: string
  /** Another one of several controllers leads; 'perhaps': the first to start leads. */
  readonly standsBy?: true | 'perhaps'
  /** Process IDs of its own, as on another machine: others cannot see that it has ended. Only SIGKILL ends it. */
  readonly ownPids?: true
}

/** By data directory: a controller that starts again has those it had. */
const prefixes = new Map<string, Promise<string>>()

/**
 * Addresses of one fleet alone: several run on this machine at once, their engines' bridges exist side by side, and
 * none may take a controller's ports while it is stopped.
 */
async function addressesFor(dataDir: string): Promise<{ readonly pods: string; readonly controller: string }> {
  const prefix = prefixes.get(dataDir) ?? ownAddresses()
  prefixes.set(dataDir, prefix)
  return { pods: `${await prefix}.0/20`, controller: (await prefix).replace(/^10\.(.*)/, '127.$1.1') }
}

/** Starts a controller and waits until both its ports are open; that of the API, where it stands by. */
export async function startController(t: Teardown, options: ControllerOptions): Promise<Controller> {
  const { dataDir, settings = {}, apiPort = 0, mqttPort = 0 } = options
  const addresses = await addressesFor(dataDir)
  const { address = addresses.controller, config = `${dataDir}.yaml` } = options
  const { advertised = address } = options
  const written = options.config === undefined ? config : `${dataDir}.unused`
  await writeFile(
    written,
    JSON.stringify({
      apiVersion: 'bramble.dev/v1alpha1',
      kind: 'ControllerConfiguration',
      clusterCIDR: addresses.pods,
      // Tests of the network of pods turn it on: several fleets run on this machine, and one has its rules and routes.
      podNetwork: 'node',
      ...settings,
    }),
  )
  const program = startProgram(
    [
      ...(options.ownPids ? ['unshare', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'] : []),
      ...[controllerCommand, 'run'],
      ...['--data-dir', dataDir, '--config', config, '--log-format', 'json', '--bind-address', address],
      ...['--advertise-address', advertised, '--api-port', String(apiPort), '--mqtt-port', String(mqttPort)],
    ],
    (end) => t.teardown(end),
    options.env,
  )
  const messages = ['Controller ready', 'Controller stands by']
  const awaited = messages.slice(options.standsBy === true ? 1 : 0, options.standsBy === undefined ? 1 : 2)
  const ready = await Promise.any(awaited.map((message) => program.logged(message)))
  const kubeconfig = fact(ready, 'kubeconfig')
  const cache = join(dataDir, '..', 'kube-cache')
  const tryKubectl = (args: readonly string[], input?: string) =>
    outcome('kubectl', ['--kubeconfig', kubeconfig, '--cache-dir', cache, ...args], input)
  const kubectl = async (args: readonly string[], input?: string) => {
    const { code, stdout, stderr } = await tryKubectl(args, input)
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} failed: ${stderr}`)
    return stdout
  }
  const command = (...args: readonly string[]) => outcome(controllerCommand, args)
  return {
    program,
    dataDir,
    kubeconfig,
    apiUrl: fact(ready, 'api'),
    mqttPort: options.standsBy ? mqttPort : Number(new URL(fact(ready, 'mqtt')).port),
    caHash: fact(ready, 'caHash'),
    kubectl: (...args) => kubectl(args),
    kubectlWith: (input, ...args) => kubectl(args, input),
    tryKubectl: (...args) => tryKubectl(args),
    async nodesReady(...names) {
      const nodes = names.map((name) => `node/${name}`)
      const wait = ['wait', '--for=condition=Ready', ...nodes, '--timeout=10s']
      await eventually(`${names} Ready`, async () => (await tryKubectl(wait)).code === 0, { withinMs: 120_000 })
    },
    command,
    async joinLine(...args) {
      const made = await command('token', 'create', '--kubeconfig', kubeconfig, '--print-join-command', ...args)
      const line = made.stdout.split('\n').find((one) => one.startsWith('bramble-agent join '))
      if (line === undefined) throw new Error(`No join line: ${made.stdout}${made.stderr}`)
      return line.trim().split(' ').slice(1)
    },
  }
}

/** `bramble-agent …` as typed, to its end. */
export function agentCommand(...args: readonly string[]): Promise<Outcome> {
  return outcome(agentLauncher, args)
}

export type AgentOptions = {
  readonly dataDir: string
  readonly dockerSocket: string
  /** The network namespace that it runs in; default: that of this process. */
  readonly space?: string | undefined
  /** Where it finds the files of the machine; default: those of this host. */
  readonly root?: string | undefined
  readonly settings?: Readonly<Record<string, unknown>>
  /** Added to the environment of this process. */
  readonly env?: NodeJS.ProcessEnv
}

/** Starts an agent that has joined before. */
export async function startAgent(
  t: Teardown,
  { dataDir, dockerSocket, space, root, settings = {}, env = {} }: AgentOptions,
): Promise<Program> {
  const config = `${dataDir}.yaml`
  await writeFile(
    config,
    JSON.stringify({ apiVersion: 'bramble.dev/v1alpha1', kind: 'AgentConfiguration', ...settings }),
  )
  return startProgram(
    inSpace(
      space,
      ...[agentLauncher, 'run', '--data-dir', dataDir, '--config', config, '--docker-socket', dockerSocket],
      ...['--healthz-port', '0', '--log-format', 'json', ...(root === undefined ? [] : ['--root', root])],
    ),
    endOfAgent(t, dataDir),
    env,
  )
}

/** Joins under this name, from this network namespace, without starting. Throws with the output of the command when it fails. */
export async function joinFleet(
  controller: Controller,
  nodeName: string,
  dataDir: string,
  space?: string,
): Promise<void> {
  const line = await controller.joinLine()
  const joining = [...line, '--no-run', '--node-name', nodeName, '--data-dir', dataDir]
  const [file = agentLauncher, ...args] = inSpace(space, agentLauncher, ...joining)
  const joined = await outcome(file, args)
  if (joined.code !== 0) throw new Error(`Joining failed: ${joined.stdout}${joined.stderr}`)
}

const controllerCommand = join(repository, 'scripts/bramble-controller')
/** `bramble-agent` of this tree. */
export const agentLauncher = join(repository, 'scripts/bramble-agent')

async function outcome(file: string, args: readonly string[], input?: string): Promise<Outcome> {
  const ended = await endOf(file, args, input)
  refuseWarnings(`${file} ${args.join(' ')}`, ended.stderr)
  return ended
}

async function endOf(file: string, args: readonly string[], input?: string): Promise<Outcome> {
  const running = run(file, [...args], { timeout: longestMs(args), maxBuffer: 16 * 1024 * 1024 })
  running.child.stdin?.end(input ?? '')
  try {
    return { code: 0, ...(await running) }
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string }
    if (typeof code !== 'number') throw new Error(`${file} ${args.join(' ')} did not end by itself`, { cause: error })
    return { code, stdout: stdout ?? '', stderr: stderr ?? '' }
  }
}

function fact(line: LogLine, name: string): string {
  const value = line[name]
  if (typeof value !== 'string') throw new Error(`The log line "${line.message}" has no ${name}`)
  return value
}
