/** Docker's version and settings, read once over its socket, on a machine that may not have it. */

import { TooLate, withDeadline } from '../../../daemon/deadline.ts'
import { isDenied, isMissing } from '../../../daemon/errors.ts'
import { engineReader } from '../../adapters/docker/connection.ts'
import type { JsonShape, Kept } from '../../adapters/docker/json-reader.ts'
import type { DockerFacts, DockerSilent } from '../docker.ts'
import type { BridgeNetwork } from '../docker-firewall.ts'

const versionShape = { fields: { Version: 'text' } } as const satisfies JsonShape
const settingsShape = {
  fields: {
    Driver: 'text',
    CgroupDriver: 'text',
    CgroupVersion: 'text',
    LiveRestoreEnabled: 'flag',
    DockerRootDir: 'text',
    SecurityOptions: { list: 'text' },
    FirewallBackend: { fields: { Driver: 'text' } },
  },
} as const satisfies JsonShape

const networksShape = {
  list: {
    fields: {
      Name: 'text',
      Driver: 'text',
      Internal: 'flag',
      IPAM: { fields: { Config: { list: { fields: { Subnet: 'text' } } } } },
      Options: {
        fields: {
          'com.docker.network.bridge.enable_ip_masquerade': 'text',
          'com.docker.network.bridge.gateway_mode_ipv4': 'text',
        },
      },
    },
  },
} as const satisfies JsonShape

const answerMs = 3_000
/** Docker 20.10 takes 20 to 40 s for its settings where names of registries cannot be resolved. It is well otherwise. */
const settingsMs = 60_000

export async function askDocker(socketPath: string): Promise<DockerFacts | DockerSilent> {
  const answers = engineReader(socketPath)
  try {
    const { Version } = await withDeadline(answerMs, undefined, (signal) =>
      answers.read('/version', versionShape, signal),
    )
    if (Version === undefined) return 'refuses'
    const [info, networks] = await Promise.all([
      withDeadline(settingsMs, undefined, (signal) => answers.read('/info', settingsShape, signal)).catch(
        () => undefined,
      ),
      withDeadline(answerMs, undefined, (signal) => answers.read('/networks', networksShape, signal)).catch(
        () => undefined,
      ),
    ])
    return {
      version: Version,
      hasSettings: info !== undefined,
      storageDriver: info?.Driver ?? 'an unknown driver',
      cgroupDriver: info?.CgroupDriver ?? 'an unknown driver',
      cgroupVersion: info?.CgroupVersion ?? '1',
      liveRestore: info?.LiveRestoreEnabled ?? false,
      rootDirectory: info?.DockerRootDir ?? '/var/lib/docker',
      securityOptions: info?.SecurityOptions ?? [],
      firewallBackend: info?.FirewallBackend?.Driver,
      networks: networks?.filter(isTranslated).map(bridgeOf),
    }
  } catch (error) {
    return error instanceof TooLate ? 'hangs' : silenceOf(error)
  }
}

type Network = Kept<typeof networksShape>[number]

/** A network of another mode than `nat` has addresses that others have routes to. */
function isTranslated({ Driver, Internal, Options = {} }: Network): boolean {
  const mode = Options['com.docker.network.bridge.gateway_mode_ipv4'] ?? 'nat'
  const isOff = Options['com.docker.network.bridge.enable_ip_masquerade'] === 'false'
  return Driver === 'bridge' && Internal !== true && !isOff && mode === 'nat'
}

function bridgeOf({ Name = '', IPAM }: Network): BridgeNetwork {
  const subnets = (IPAM?.Config ?? []).flatMap(({ Subnet = '' }) => (Subnet.includes('.') ? [Subnet] : []))
  return { name: Name, subnets }
}

function silenceOf(error: unknown): DockerSilent {
  if (isMissing(error)) return 'absent'
  return isDenied(error) ? 'denied' : 'refuses'
}
