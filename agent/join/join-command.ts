/** `bramble-agent join`: what was typed → joining → whether and how to run. */
import type { ParseArgsConfig } from 'node:util'
import { dnsSubdomainProblem } from '../../api/names.ts'
import type { HardwareIdentity } from '../../api/node/hardware-identity.ts'
import type { Clock } from '../../daemon/clock.ts'
import { storyOf } from '../../daemon/log.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { readOptions } from '../../daemon/process/options.ts'
import { JoinError } from './failures.ts'
import { identityPath, readIdentity } from './identity.ts'
import { type JoinRequest, join } from './join.ts'
import { joinTerms } from './terms.ts'

export type JoinCommandNeeds = {
  readonly hostname: string
  /** Reads the machine's marks below this root folder. */
  readonly readHardware: (root: string) => Promise<HardwareIdentity>
  /** The process number of the agent that runs on this data directory, if one does. */
  readonly runningAgent: (dataDir: string) => Promise<number | undefined>
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  /** The options of `run`: they may be given here too, and are handed on. */
  readonly runOptions: NonNullable<ParseArgsConfig['options']>
  readonly defaults: { readonly dataDir: string; readonly root: string }
}

/** `runArgs`: joined, now run with these arguments. Without them: end with `exitCode`. */
export type JoinCommandResult = { readonly exitCode: number; readonly runArgs?: readonly string[] }

/** `argv`: what follows `join`. Never rejects for what was typed or for what the network does. */
export async function joinCommand(argv: readonly string[], needs: JoinCommandNeeds): Promise<JoinCommandResult> {
  const { stdout, stderr } = needs
  const read = readArguments(argv, needs)
  if (read.want === 'help') {
    stdout(help)
    return { exitCode: exitCode.fine }
  }
  if (read.want === 'refuse') {
    stderr(`${read.why}\nTry 'bramble-agent join --help'.\n`)
    return { exitCode: exitCode.usage }
  }
  const { request, root, run, runArgs } = read
  const { nodeName, dataDir } = request
  try {
    const pid = await needs.runningAgent(dataDir)
    const formerName = await nameBefore(dataDir)
    const isRenamed = formerName !== undefined && formerName !== nodeName
    if (pid !== undefined && isRenamed) throw runsAsAnother(pid, formerName, dataDir)
    const hardware = await needs.readHardware(root)
    const tell = (line: string) => stdout(`${line}\n`)
    await join(request, { hardware, clock: needs.clock, signal: needs.signal, tell })
    tell(`Joined as node ${nodeName}; the identity is in ${identityPath(dataDir)}`)
    if (isRenamed) tell(leftBehind(formerName))
    if (pid === undefined) return run ? { exitCode: exitCode.fine, runArgs } : { exitCode: exitCode.fine }
    tell(
      `The agent that runs here (process ${pid}) goes on as it is, and uses the new certificate once it is restarted`,
    )
    return { exitCode: exitCode.fine }
  } catch (error) {
    stderr(`${failureText(error, request, needs.signal)}\n`)
    return { exitCode: exitCode.failed }
  }
}

function failureText(error: unknown, { dataDir }: JoinRequest, signal: AbortSignal): string {
  if (error instanceof JoinError) return `Cannot join: ${error.message}.\n${error.remedy}`
  if (signal.aborted) return 'Stopped before this machine had joined; nothing was written.'
  return `Cannot join: ${storyOf(error)}.\nNothing was written to ${dataDir}.`
}

/** Undefined also when the file is spoiled: joining mends that. */
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
  return `This machine was node ${nodeName} before. What that node still runs is left alone; '${show}' shows it`
}

type ReadArguments =
  | { readonly want: 'help' }
  | { readonly want: 'refuse'; readonly why: string }
  | {
      readonly want: 'join'
      readonly request: JoinRequest
      readonly root: string
      readonly run: boolean
      readonly runArgs: readonly string[]
    }

const joinOptions = {
  token: { type: 'string' },
  'ca-hash': { type: 'string' },
  'no-run': { type: 'boolean' },
  'node-name': { type: 'string' },
  'data-dir': { type: 'string' },
  root: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

function readArguments(argv: readonly string[], needs: JoinCommandNeeds): ReadArguments {
  const { hostname, runOptions, defaults } = needs
  const options: NonNullable<ParseArgsConfig['options']> = { ...runOptions, ...joinOptions }
  const read = readOptions(argv, { options, allowPositionals: true, tokens: true })
  if (!read.ok) return refuse(read.why)
  const { values, positionals, tokens } = read.value
  if (values['help'] === true) return { want: 'help' }
  const [address, ...more] = positionals
  if (address === undefined || more.length > 0) return refuse('Give one address: that of the controller’s API')
  const text = (name: string) => {
    const value = values[name]
    return typeof value === 'string' ? value : undefined
  }
  const terms = joinTerms({ address, token: text('token'), caHash: text('ca-hash') })
  if ('field' in terms) return refuse(`${typedAs[terms.field]} ${terms.message}`)
  const nodeName = (text('node-name') ?? hostname).trim().toLowerCase()
  const problem = dnsSubdomainProblem(nodeName)
  if (problem !== undefined) {
    return refuse(`The node name ${JSON.stringify(nodeName)} ${problem}; give another one with --node-name`)
  }
  const dataDir = text('data-dir') ?? defaults.dataDir
  const runArgs = tokens.flatMap((one) =>
    one.kind === 'option' && one.name in runOptions && one.name !== 'node-name' // the identity knows the name
      ? [one.value === undefined ? `--${one.name}` : `--${one.name}=${one.value}`]
      : [],
  )
  const request = { ...terms, nodeName, dataDir }
  return { want: 'join', request, root: text('root') ?? defaults.root, run: values['no-run'] !== true, runArgs }
}

const typedAs = { address: 'The address', token: '--token', caHash: '--ca-hash' } as const

function refuse(why: string): ReadArguments {
  return { want: 'refuse', why }
}

const help = `Usage: bramble-agent join https://HOST:PORT --token ID.SECRET --ca-hash sha256:HEX [options]

Makes this machine a node of a fleet, then runs as one. 'bramble-controller token create --print-join-command'
prints the line to use. Joining again gives the machine a fresh certificate. A name that a node has already is given to
another machine only after an operator approved it.

  --token ID.SECRET     the token that lets this machine ask for a certificate
  --ca-hash sha256:HEX  the hash of the fleet's authority: nothing is told to a controller that has another
  --node-name NAME      the node's name (this machine's hostname, in lower case)
  --data-dir DIR        where identity.json is kept (/var/lib/bramble/agent)
  --no-run              only join; start the agent later with 'bramble-agent run'
  --root DIR            where /proc, /sys and /etc of the machine are read (/)
  --help                this text

All options of 'bramble-agent run' may be given too.
`
