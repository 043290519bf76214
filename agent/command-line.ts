/** Parses the command line of `bramble-agent`. */
import type { LogFormat, LogLevel } from '../daemon/log.ts'
import type { Command } from '../daemon/process/command.ts'
import { type PrintText, readArguments, type Values } from '../daemon/process/command-line.ts'
import { bashCompletion } from '../daemon/process/completion.ts'
import { version } from '../daemon/process/version.ts'
import { agentDefaults, agentProgram, completionRow, firstBootRow } from './commands/command-table.ts'

export type RunRequest = {
  readonly dataDir: string
  readonly configPath: string | undefined
  /** Must be the name the machine joined with. */
  readonly nodeName: string | undefined
  readonly dockerSocket: string
  readonly healthzPort: number | undefined
  readonly root: string
  readonly logFormat: LogFormat | undefined
  readonly logLevel: LogLevel
  /** Only check configuration and identity. */
  readonly check: boolean
}

export type AgentCommandLine =
  | { readonly want: 'run' | 'first-boot'; readonly request: RunRequest }
  | { readonly want: 'join' | 'doctor' | 'network' | 'report'; readonly argv: readonly string[] }
  | PrintText

/** `argv`: without the program's name. */
export function readAgentCommandLine(argv: readonly string[]): AgentCommandLine {
  const [first, ...rest] = argv
  switch (first) {
    case 'join':
    case 'doctor':
    case 'network':
    case 'report':
      return { want: first, argv: rest }
    case 'first-boot': {
      const read = readArguments(firstBootRow, rest)
      return read.want === 'act' ? { want: first, request: requestOf(read.values) } : read
    }
    case 'completion': {
      const read = readArguments<Command['options'], Command['forms']>(completionRow, rest)
      return read.want === 'act' ? { want: 'help', text: bashCompletion(agentProgram) } : read
    }
    default:
      return readRun(first === 'run' ? rest : first === 'help' ? ['--help'] : argv)
  }
}

function readRun(argv: readonly string[]): AgentCommandLine {
  const read = readArguments(agentProgram, argv)
  if (read.want !== 'act') return read
  if (read.values.version) return { want: 'help', text: `bramble-agent ${version}\n` }
  return { want: 'run', request: requestOf(read.values) }
}

function requestOf(values: Partial<Values<(typeof agentProgram)['options']>>): RunRequest {
  return {
    dataDir: values['data-dir'] ?? agentDefaults.dataDir,
    configPath: values.config,
    nodeName: values['node-name'],
    dockerSocket: values['docker-socket'] ?? agentDefaults.dockerSocket,
    healthzPort: values['healthz-port'],
    root: values.root ?? agentDefaults.root,
    logFormat: values['log-format'],
    logLevel: values['log-level'] ?? 'info',
    check: values.check ?? false,
  }
}
