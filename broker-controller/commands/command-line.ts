/** What was typed → what is wanted. */
import { readOptions } from '../../daemon/process/options.ts'

export const defaultDataDir = '/var/lib/bramble/controller'

/** What a flag was not given for is undefined: the configuration file or the default decides. */
export type Flags = {
  readonly dataDir: string
  readonly config: string | undefined
  readonly apiPort: string | undefined
  readonly mqttPort: string | undefined
  readonly bindAddress: string | undefined
  readonly advertiseAddress: string | undefined
  readonly hosts: readonly string[]
  readonly kubeconfig: string | undefined
  readonly logFormat: string | undefined
  readonly logLevel: string | undefined
}

export type CommandLine =
  | { readonly want: 'run' | 'check'; readonly flags: Flags }
  | { readonly want: 'token' | 'certificates' | 'backup' | 'restore' | 'checkpoints'; readonly argv: readonly string[] }
  | { readonly want: 'help' | 'version' }
  | { readonly want: 'refuse'; readonly why: string }

/** Each has a command line and a help of its own. */
const commands = ['token', 'certificates', 'backup', 'restore', 'checkpoints'] as const

/** `argv`: what follows the program's name. */
export function readCommandLine(argv: readonly string[]): CommandLine {
  const [first, ...more] = argv
  const command = commands.find((one) => one === first)
  if (command !== undefined) return { want: command, argv: more }
  const read = readOptions(argv, optionsConfig)
  if (!read.ok) return { want: 'refuse', why: read.why }
  const { values, positionals } = read.value
  if (values.help || positionals[0] === 'help') return { want: 'help' }
  if (values.version) return { want: 'version' }
  if (positionals.length > 1 || (positionals[0] ?? 'run') !== 'run') {
    return { want: 'refuse', why: `Not understood: ${positionals.join(' ')}` }
  }
  const flags = {
    dataDir: values['data-dir'],
    config: values.config,
    apiPort: values['api-port'],
    mqttPort: values['mqtt-port'],
    bindAddress: values['bind-address'],
    advertiseAddress: values['advertise-address'],
    hosts: values.host ?? [],
    kubeconfig: values.kubeconfig,
    logFormat: values['log-format'],
    logLevel: values['log-level'],
  }
  return { want: values.check ? 'check' : 'run', flags }
}

const optionsConfig = {
  allowPositionals: true,
  options: {
    'data-dir': { type: 'string', default: defaultDataDir },
    config: { type: 'string' },
    'api-port': { type: 'string' },
    'mqtt-port': { type: 'string' },
    'bind-address': { type: 'string' },
    'advertise-address': { type: 'string' },
    host: { type: 'string', multiple: true },
    kubeconfig: { type: 'string' },
    'log-format': { type: 'string' },
    'log-level': { type: 'string' },
    check: { type: 'boolean', default: false },
    version: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
} as const

export const help = `Usage: bramble-controller [run] [options]
       bramble-controller token create|list|delete …
       bramble-controller certificates [revoke|rollover …]
       bramble-controller backup [FILE|FOLDER]
       bramble-controller restore FILE
       bramble-controller checkpoints [close|approve …]

The control plane of a fleet: Kubernetes API for kubectl, MQTT broker for the nodes, and what decides between them.

  --data-dir DIR            where the authority, the store and the kubeconfig live (${defaultDataDir})
  --config FILE             a ControllerConfiguration in YAML; flags go before it
  --api-port PORT           the Kubernetes API (6443); 0 picks a free one
  --mqtt-port PORT          the MQTT broker (8883); 0 picks a free one
  --bind-address ADDRESS    where both listen (all addresses)
  --advertise-address HOST  the address other machines are told to use (the first of this machine)
  --host NAME               a further name or address for the server certificate; may be repeated
  --kubeconfig FILE         writes the administrator's kubeconfig there too (DIR/kubeconfig)
  --log-format FORMAT       json, text, or journal for systemd's (text on a terminal, json elsewhere)
  --log-level LEVEL         error, warn, info or debug (info)
  --check                   reads the configuration, tells what is wrong with it, and ends
  --version                 prints the version
  --help                    prints this text

'bramble-controller token --help' tells how machines are let in.
`
