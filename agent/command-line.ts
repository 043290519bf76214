/** What was typed after `bramble-agent` → what to do. */
import { type LogFormat, type LogLevel, logFormats } from '../daemon/log.ts'
import { readOptions } from '../daemon/process/options.ts'

export const defaults = {
  dataDir: '/var/lib/bramble/agent',
  dockerSocket: '/var/run/docker.sock',
  root: '/',
} as const

/** `join` takes them too. */
export const runOptions = {
  'data-dir': { type: 'string' },
  config: { type: 'string' },
  'node-name': { type: 'string' },
  'docker-socket': { type: 'string' },
  'healthz-port': { type: 'string' },
  root: { type: 'string' },
  'log-format': { type: 'string' },
  'log-level': { type: 'string' },
  check: { type: 'boolean' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

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
  /** Only look whether everything needed to run is there. */
  readonly check: boolean
}

export type CommandLine =
  | { readonly want: 'run'; readonly request: RunRequest }
  | { readonly want: 'join' | 'first-boot' | 'doctor'; readonly argv: readonly string[] }
  | { readonly want: 'help' | 'version' }
  | { readonly want: 'refuse'; readonly why: string }

export function readCommandLine(argv: readonly string[]): CommandLine {
  const [first, ...rest] = argv
  if (first === 'join' || first === 'first-boot' || first === 'doctor') return { want: first, argv: rest }
  return readRun(first === 'run' ? rest : argv)
}

const logLevels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug']

export function readRun(argv: readonly string[]): CommandLine {
  const read = readOptions(argv, { options: runOptions })
  if (!read.ok) return refuse(read.why)
  const { values } = read.value
  if (values.help) return { want: 'help' }
  if (values.version) return { want: 'version' }
  const logFormat = logFormats.find((format) => format === values['log-format'])
  if (values['log-format'] !== logFormat) {
    return refuse(`--log-format must be one of ${logFormats.join(', ')}, not ${values['log-format']}`)
  }
  const logLevel = logLevels.find((level) => level === (values['log-level'] ?? 'info'))
  if (logLevel === undefined) return refuse(`--log-level must be one of ${logLevels.join(', ')}`)
  const port = values['healthz-port']
  if (port !== undefined && !(/^\d+$/.test(port) && Number(port) <= 65535)) {
    return refuse(`--healthz-port must be a port from 0 to 65535, not ${port}`)
  }
  return {
    want: 'run',
    request: {
      dataDir: values['data-dir'] ?? defaults.dataDir,
      configPath: values.config,
      nodeName: values['node-name'],
      dockerSocket: values['docker-socket'] ?? defaults.dockerSocket,
      healthzPort: port === undefined ? undefined : Number(port),
      root: values.root ?? defaults.root,
      logFormat,
      logLevel,
      check: values.check ?? false,
    },
  }
}

function refuse(why: string): CommandLine {
  return { want: 'refuse', why }
}

export const help = `Usage: bramble-agent [run] [options]
       bramble-agent join https://HOST:PORT --token ID.SECRET --ca-hash sha256:HEX [options]
       bramble-agent first-boot [options]
       bramble-agent doctor [--fix] [-o json] [options]

Makes this machine a node: reports how it is, and runs in Docker the pods that are bound to it.

  --data-dir DIR        where its identity and its last wanted pods are kept (${defaults.dataDir})
  --config FILE         an AgentConfiguration, with the kubelet's names for its fields
  --node-name NAME      refuse to run as any other node
  --docker-socket PATH  where Docker listens (${defaults.dockerSocket})
  --healthz-port PORT   where the local endpoint listens on 127.0.0.1 (10248; 0: any that is free)
  --root DIR            where /proc, /sys and /etc of the machine are read (${defaults.root})
  --log-format FORMAT   json, text, or journal for systemd's (text on a terminal, else json)
  --log-level LEVEL     error, warn, info or debug (info)
  --check               read the configuration and the identity, say what is wrong, and end
  --version             print the version and end
  --help                this text

'bramble-agent join --help' tells how a machine becomes a node. 'first-boot' does so by itself, with the bramble.yaml of the boot
partition, however long it takes; it knows --data-dir, --root, --log-format and --log-level.
'bramble-agent doctor' looks at the machine, and says what is wrong and what to do about it.
`
