/** Parses the command line of `bramble-controller`. */

import type { Command } from '../../daemon/process/command.ts'
import { type PrintText, readArguments, type Values } from '../../daemon/process/command-line.ts'
import { bashCompletion } from '../../daemon/process/completion.ts'
import { version } from '../../daemon/process/version.ts'
import type { EtcdFlags } from '../configuration/etcd-configuration.ts'
import { controllerProgram } from './command-table.ts'

type RunValues = Values<(typeof controllerProgram)['options']>

/** The options of `run`. Undefined: the configuration file or the default decides. */
export type ControllerFlags = {
  readonly dataDir: string
  readonly config: string | undefined
  readonly apiPort: number | undefined
  readonly mqttPort: number | undefined
  readonly bindAddress: string | undefined
  readonly advertiseAddress: string | undefined
  readonly hosts: readonly string[]
  readonly kubeconfig: string | undefined
  readonly logFormat: RunValues['log-format']
  readonly logLevel: RunValues['log-level']
  /** undefined: as without any of its options. */
  readonly etcd?: EtcdFlags
  readonly auditLogPath: string | undefined
  readonly auditLogMaxSize: number | undefined
  readonly auditLogMaxBackup: number | undefined
  readonly auditLogMaxAge: number | undefined
  readonly keepStoreFormat: boolean
}

export type ControllerCommandLine =
  | { readonly want: 'run' | 'check'; readonly flags: ControllerFlags }
  | {
      readonly want: (typeof commands)[number]
      readonly argv: readonly string[]
    }
  | PrintText

const commands = [
  'token',
  'card',
  'certificates',
  'backup',
  'restore',
  'checkpoints',
  'kubeconfig',
  'service-account-key',
  'secrets',
  'store',
  'join-control-plane',
  'login-link',
  'dashboard',
  'top',
  'updates',
  'maintenance',
  'volumes',
  'inventory',
  'notify',
  'homeassistant',
  'broker',
  'simulate',
] as const

/** `argv`: what follows the program's name. */
export function readControllerCommandLine(argv: readonly string[]): ControllerCommandLine {
  const [first, ...rest] = argv
  const command = commands.find((one) => one === first)
  if (command !== undefined) return { want: command, argv: rest }
  if (first === 'completion') return completion(rest)
  const read = readArguments(controllerProgram, first === 'run' ? rest : first === 'help' ? ['--help'] : argv)
  if (read.want !== 'act') return read
  if (read.values.version) return { want: 'help', text: `bramble-controller ${version}\n` }
  return { want: read.values.check ? 'check' : 'run', flags: flagsOf(read.values) }
}

function flagsOf(values: RunValues): ControllerFlags {
  return {
    dataDir: values['data-dir'],
    config: values.config,
    apiPort: values['api-port'],
    mqttPort: values['mqtt-port'],
    bindAddress: values['bind-address'],
    advertiseAddress: values['advertise-address'],
    hosts: values.host,
    kubeconfig: values.kubeconfig,
    logFormat: values['log-format'],
    logLevel: values['log-level'],
    etcd: etcdFlagsOf(values),
    auditLogPath: values['audit-log-path'],
    auditLogMaxSize: values['audit-log-maxsize'],
    auditLogMaxBackup: values['audit-log-maxbackup'],
    auditLogMaxAge: values['audit-log-maxage'],
    keepStoreFormat: values['keep-store-format'],
  }
}

type EtcdOption = 'etcd-servers' | 'etcd-cafile' | 'etcd-certfile' | 'etcd-keyfile' | 'etcd-prefix'

/** The options of a command that are about etcd. */
export function etcdFlagsOf(values: Pick<RunValues, EtcdOption>): EtcdFlags {
  return {
    servers: values['etcd-servers'],
    caFile: values['etcd-cafile'],
    certFile: values['etcd-certfile'],
    keyFile: values['etcd-keyfile'],
    prefix: values['etcd-prefix'],
  }
}

function completion(argv: readonly string[]): PrintText {
  const read = readArguments<Command['options'], Command['forms']>(controllerProgram.commands.completion, argv)
  return read.want === 'act' ? { want: 'help', text: bashCompletion(controllerProgram) } : read
}
