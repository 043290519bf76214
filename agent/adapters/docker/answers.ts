/** Docker's answers about containers and the daemon → the runtime's types. */
import { canonicalIPv6 } from '../../../api/text/ip-address.ts'
import { isObject, parseJson } from '../../../api/text/json.ts'
import type { ContainerIdentity, EngineRuntime, RuntimeContainer, RuntimeInfo } from '../../runtime/runtime.ts'
import type { JsonShape, Kept } from './json-reader.ts'
import { ownLabels, sandboxOf } from './labels.ts'
import { plainText, shortened } from './refusal-text.ts'

/** What is kept of the inspection of a container. */
export const containerShape = {
  fields: {
    Id: 'text',
    Created: 'text',
    Image: 'text',
    LogPath: 'text',
    State: {
      fields: {
        Status: 'text',
        ExitCode: 'number',
        OOMKilled: 'flag',
        Error: 'prose',
        StartedAt: 'text',
        FinishedAt: 'text',
        Pid: 'number',
      },
    },
    Config: { fields: { Image: 'text', Labels: { fields: ownLabels }, Tty: 'flag' } },
    NetworkSettings: {
      fields: { Networks: { map: { fields: { IPAddress: 'text', GlobalIPv6Address: 'text', MacAddress: 'text' } } } },
    },
    HostConfig: { fields: { Devices: { list: { fields: { PathOnHost: 'text', PathInContainer: 'text' } } } } },
    GraphDriver: { fields: { Data: { fields: { UpperDir: 'text' } } } },
  },
} as const satisfies JsonShape

export function containerOf(
  found: Kept<typeof containerShape>,
  { id, identity, imageID }: { readonly id: string; readonly identity: ContainerIdentity; readonly imageID: string },
): RuntimeContainer {
  const { State = {}, Config = {}, Created = '', NetworkSettings, HostConfig, GraphDriver, LogPath } = found
  // A Docker with the containerd image store reports no folder.
  const layer = GraphDriver?.Data?.UpperDir
  const networks = Object.values(NetworkSettings?.Networks ?? {})
  const [ip] = networks.flatMap((network) => network?.IPAddress || [])
  const [ipv6] = networks.flatMap((network) => canonicalIPv6(network?.GlobalIPv6Address ?? '') ?? [])
  const [mac] = networks.flatMap((network) => validMac.exec(network?.MacAddress ?? '')?.[0].toLowerCase() ?? [])
  return {
    id,
    identity,
    sandboxID: sandboxOf(Config.Labels ?? {}),
    image: Config.Image ?? '',
    imageID,
    state: stateOf(State.Status ?? ''),
    exitCode: State.ExitCode ?? 0,
    oomKilled: State.OOMKilled ?? false,
    error: plainText(shortened(State.Error ?? '')),
    createdAt: Created,
    startedAt: instant(State.StartedAt ?? ''),
    finishedAt: instant(State.FinishedAt ?? ''),
    ip,
    ...(ipv6 !== undefined && { ipv6 }),
    ...(mac !== undefined && { mac }),
    devices: (HostConfig?.Devices ?? []).flatMap(({ PathOnHost: source, PathInContainer: target }) =>
      source === undefined ? [] : [{ source, target: target ?? source }],
    ),
    ...(State.Pid !== undefined && State.Pid > 0 && { pid: State.Pid }),
    ...(layer && { layerPath: layer }),
    ...(LogPath && { logPath: LogPath }),
  }
}

const validMac = /^[\da-f]{2}(:[\da-f]{2}){5}$/i

function stateOf(status: string): RuntimeContainer['state'] {
  switch (status) {
    case 'created':
    case 'running':
    case 'paused':
    case 'restarting':
    case 'exited':
      return status
    default: // dead, removing
      return 'dead'
  }
}

/** Docker reports the year 1 for an event that has not happened. */
function instant(text: string): string | undefined {
  return text.startsWith('0001-') || text === '' ? undefined : text
}

/** What is kept of `/info`. */
export const infoShape = {
  fields: {
    ServerVersion: 'text',
    DockerRootDir: 'text',
    CgroupVersion: 'text',
    Driver: 'text',
    KernelVersion: 'text',
    DefaultRuntime: 'text',
    Runtimes: { map: { fields: { status: { map: 'prose' } } } },
    SecurityOptions: { list: 'text' },
    FirewallBackend: { fields: { Driver: 'text' } },
    MemoryLimit: 'flag',
    SwapLimit: 'flag',
    PidsLimit: 'flag',
    CpuCfsQuota: 'flag',
    CpuCfsPeriod: 'flag',
  },
} as const satisfies JsonShape

/** Whether the engine has a runtime of this name. */
export function hasRuntime(info: { readonly [name: string]: unknown }, handler: string): boolean {
  const runtimes = info['Runtimes']
  return typeof runtimes === 'object' && runtimes !== null && Object.hasOwn(runtimes, handler)
}

/** Where the engine reports what a runtime can do (since API 1.44; moby's api/types/system/runtime.go). */
const featuresKey = 'org.opencontainers.runtime-spec.features'

function handlersOf(info: { readonly [name: string]: unknown }): readonly EngineRuntime[] {
  const runtimes = info['Runtimes']
  if (!isObject(runtimes)) return []
  const kernel = String(info['KernelVersion'])
  const handler = (name: string, runtime: string): EngineRuntime => ({
    name,
    recursiveReadOnlyMounts: hasRecursiveReadOnly(runtimes[runtime], kernel),
    userNamespaces: false, // the engine maps users of all containers or of none (userns-remap), never of one pod
  })
  const named = Object.keys(runtimes)
    .sort()
    .map((name) => handler(name, name))
  return [handler('', String(info['DefaultRuntime'])), ...named]
}

/** The runtime has the mount option `rro`, and the kernel mount_setattr(2), since 5.12. */
function hasRecursiveReadOnly(runtime: unknown, kernel: string): boolean {
  const status = isObject(runtime) ? runtime['status'] : undefined
  const text = isObject(status) ? status[featuresKey] : undefined
  const features = typeof text === 'string' ? parseJson(text) : undefined
  const options = isObject(features) ? features['mountOptions'] : undefined
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10))
  return Array.isArray(options) && options.includes('rro') && (major > 5 || (major === 5 && minor >= 12))
}

export function infoOf(info: { readonly [name: string]: unknown }): RuntimeInfo {
  const guards = info['SecurityOptions']
  const firewall = info['FirewallBackend'] // since API 1.49
  const backend = isObject(firewall) ? firewall['Driver'] : undefined
  return {
    ...(typeof backend === 'string' && { firewallBackend: backend }),
    ...(Array.isArray(guards) ? { appArmor: guards.some((guard) => /^name=apparmor\b/.test(String(guard))) } : {}),
    version: `docker://${info['ServerVersion']}`,
    rootDirectory: String(info['DockerRootDir']),
    cgroupVersion: String(info['CgroupVersion'] ?? '1'),
    storageDriver: String(info['Driver']),
    handlers: handlersOf(info),
    // A feature that the engine does not report is present.
    memoryLimit: info['MemoryLimit'] !== false,
    swapLimit: info['SwapLimit'] !== false,
    pidsLimit: info['PidsLimit'] !== false,
    cpuCfsQuota: info['CpuCfsQuota'] !== false && info['CpuCfsPeriod'] !== false,
  }
}
