/** `bramble-agent join`: what was typed → joining → whether and how to run. */
import { dnsSubdomainProblem } from '../../api/names.ts'
import type { HardwareIdentity } from '../../api/node/hardware-identity.ts'
import type { Clock } from '../../daemon/clock.ts'
import { storyOf } from '../../daemon/log.ts'
import { type PrintText, printText, readArguments, refuse } from '../../daemon/process/command-line.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { joinRow, runOptions } from '../commands/command-table.ts'
import { diskShortageRemedy } from '../eviction/disk-shortages.ts'
import { JoinError } from './failures.ts'
import { identityPath, readIdentity } from './identity.ts'
import { join } from './join.ts'
import type { JoinNeeds, JoinRequest } from './join-request.ts'
import { joinTerms } from './terms.ts'

export type JoinCommandNeeds = {
  readonly hostname: string
  /** Reads the machine's marks below this root folder. */
  readonly readHardware: (root: string) => Promise<HardwareIdentity>
  /** As `JoinNeeds.obstacleTo`, on the machine with these places. */
  readonly obstacleOn: (places: JoinPlaces) => JoinNeeds['obstacleTo']
  /** The process number of the agent that runs on this data directory, if one does. */
  readonly runningAgent: (dataDir: string) => Promise<number | undefined>
  /** Whether systemd starts the agent of this data directory when its identity is written. */
  readonly isStartedBySystemd: (root: string, dataDir: string) => boolean
  /** What the agent will evict pods for when it starts: sentences without the last full stop. */
  readonly diskShortages: (places: JoinPlaces) => Promise<readonly string[]>
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly defaults: { readonly dataDir: string; readonly root: string; readonly dockerSocket: string }
}

/** What was typed of the agent that will run. */
export type JoinPlaces = {
  readonly dataDir: string
  readonly config: string | undefined
  readonly dockerSocket: string
  readonly root: string
}

/** `runArgs`: joined, now run with these arguments. Without them: end with `exitCode`. */
export type JoinCommandResult = { readonly exitCode: number; readonly runArgs?: readonly string[] }

/** `argv`: what follows `join`. Never rejects for what was typed or for what the network does. */
export async function joinCommand(argv: readonly string[], needs: JoinCommandNeeds): Promise<JoinCommandResult> {
  const { stdout, stderr } = needs
  const read = readArgumentsOfJoin(argv, needs)
  if (read.want !== 'join') return { exitCode: printText(read, needs) }
  const { request, root, run, runArgs } = read
  const { nodeName, dataDir } = request
  try {
    const pid = await needs.runningAgent(dataDir)
    const formerName = await nameBefore(dataDir)
    const isRenamed = formerName !== undefined && formerName !== nodeName
    if (pid !== undefined && isRenamed) throw runsAsAnother(pid, formerName, dataDir)
    const hardware = await needs.readHardware(root)
    const print = (line: string) => stdout(`${line}\n`)
    await join(request, {
      hardware,
      clock: needs.clock,
      signal: needs.signal,
      print,
      obstacleTo: needs.obstacleOn(read.places),
    })
    print(`Joined as node ${nodeName}; the identity is in ${identityPath(dataDir)}`)
    if (isRenamed) print(leftBehind(formerName))
    await warnOfDisks(read.places, needs)
    if (pid === undefined) {
      if (!run) return { exitCode: exitCode.fine }
      if (runArgs.length > 0 || !needs.isStartedBySystemd(root, dataDir)) return { exitCode: exitCode.fine, runArgs }
      print("systemd starts the agent now: 'systemctl status bramble-agent' shows it")
      return { exitCode: exitCode.fine }
    }
    print(`The agent that runs here (process ${pid}) keeps running, and uses the new certificate once it is restarted`)
    return { exitCode: exitCode.fine }
  } catch (error) {
    stderr(`${failureText(error, request, needs.signal)}\n`)
    return { exitCode: exitCode.failed }
  }
}

/** No reason not to join: the machine is a node by now. */
async function warnOfDisks(places: JoinPlaces, { diskShortages, stdout }: JoinCommandNeeds): Promise<void> {
  const shortages = await diskShortages(places).catch(() => [])
  for (const shortage of shortages) stdout(`Warning: ${shortage}\n`)
  if (shortages.length > 0) stdout(`${diskShortageRemedy}\n`)
}

function failureText(error: unknown, { dataDir }: JoinRequest, signal: AbortSignal): string {
  if (error instanceof JoinError) return `Cannot join: ${error.message}.\n${error.remedy}`
  if (signal.aborted) return 'Stopped before this machine had joined; nothing was written.'
  return `Cannot join: ${storyOf(error)}.\nNothing was written to ${dataDir}.`
}

/** Undefined also when the file is damaged: joining replaces it. */
async function nameBefore(dataDir: string): Promise<string | undefined> {
  const identity = await readIdentity(dataDir).catch(() => undefined)
  return identity?.nodeName
}

function runsAsAnother(pid: number, nodeName: string, dataDir: string): JoinError {
  return new JoinError(
    `An agent is running on ${dataDir} as node ${nodeName}: process ${pid}`,
    'Stop it first to give this machine another name, or give another --data-dir to run a second node beside it.',
  )
}

function leftBehind(nodeName: string): string {
  const show = `docker ps --filter label=bramble.dev/node=${nodeName}`
  return `This machine was node ${nodeName} before. Containers of that node were not changed; '${show}' lists them`
}

type ReadArguments =
  | PrintText
  | {
      readonly want: 'join'
      readonly request: JoinRequest
      readonly root: string
      readonly places: JoinPlaces
      readonly run: boolean
      readonly runArgs: readonly string[]
    }

function readArgumentsOfJoin(argv: readonly string[], { hostname, defaults }: JoinCommandNeeds): ReadArguments {
  const read = readArguments(joinRow, argv)
  if (read.want !== 'act') return read
  const {
    values,
    args: [address = ''],
    typed,
  } = read
  const terms = joinTerms({ address, token: values.token, caHash: values['ca-hash'] })
  if ('field' in terms) return refuse(joinRow, `${typedAs[terms.field]} ${terms.message}`)
  const nodeName = (values['node-name'] ?? hostname).trim().toLowerCase()
  const problem = dnsSubdomainProblem(nodeName)
  if (problem !== undefined) {
    return refuse(joinRow, `The node name ${JSON.stringify(nodeName)} ${problem}; give another one with --node-name`)
  }
  const dataDir = values['data-dir'] ?? defaults.dataDir
  // The identity has the name.
  const runArgs = typed.filter(({ name }) => name in runOptions && name !== 'node-name').map(({ argument }) => argument)
  const request = { ...terms, nodeName, dataDir }
  const root = values.root ?? defaults.root
  const dockerSocket = values['docker-socket'] ?? defaults.dockerSocket
  const places = { dataDir, config: values.config, dockerSocket, root }
  return { want: 'join', request, root, places, run: !values['no-run'], runArgs }
}

const typedAs = { address: 'The address', token: '--token', caHash: '--ca-hash' } as const
