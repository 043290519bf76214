/** The settings of etcd for a command: those given to it, or those of the controller that runs. */
import { decode } from '../../../api/decode.ts'
import { parseJson } from '../../../api/text/json.ts'
import { ConfigurationError, readConfigurationFile } from '../../../daemon/process/configuration-file.ts'
import {
  type ControllerConfigurationFile,
  ControllerConfigurationSchema,
  emptyControllerConfiguration,
} from '../../configuration/configuration.ts'
import { type EtcdFlags, type EtcdSettings, etcdSettings } from '../../configuration/etcd-configuration.ts'
import { adminSocketPath, requestSettings } from '../connection/admin-socket.ts'

/** undefined: neither the file nor the options name servers of etcd. Rejects with ConfigurationError. */
export async function givenEtcdSettings(
  config: string | undefined,
  flags: EtcdFlags,
): Promise<EtcdSettings | undefined> {
  const file =
    config === undefined
      ? emptyControllerConfiguration
      : await readConfigurationFile(config, ControllerConfigurationSchema)
  return checked(flags, file)
}

/**
 * Settings of the controller that runs on this data directory; options take precedence. undefined: none runs, or its store
 * is not in etcd.
 */
export async function runningEtcdSettings(
  dataDir: string,
  flags: EtcdFlags,
  signal: AbortSignal,
): Promise<EtcdSettings | undefined> {
  const settings = await requestSettings(adminSocketPath(dataDir), signal)
  const decoded = decode(ControllerConfigurationSchema, parseJson(settings ?? ''))
  return decoded.ok ? checked(flags, decoded.value) : undefined
}

/** Where the settings name no servers, and so the objects are in a file. */
export function refuseLonePrefix({ prefix }: EtcdFlags): void {
  if (prefix === undefined) return
  throw new Error(
    `--etcd-prefix: ${prefix} has no effect without servers of etcd: give --etcd-servers, or --config with a file that has etcdServers`,
  )
}

function checked(flags: EtcdFlags, file: ControllerConfigurationFile): EtcdSettings | undefined {
  const problems: string[] = []
  const settings = etcdSettings(flags, file, problems)
  if (problems.length > 0) throw new ConfigurationError('The configuration is not valid:', problems)
  return settings
}
