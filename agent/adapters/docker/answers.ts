/** Docker's answers about containers and the daemon → the runtime's types. */
import type Dockerode from 'dockerode'
import type { ContainerIdentity, RuntimeContainer, RuntimeInfo } from '../../pods/runtime/runtime.ts'
import { sandboxOf } from './labels.ts'
import { plainText } from './refusal-text.ts'

export function containerOf(
  { Id, State, Config, Created, NetworkSettings, HostConfig, GraphDriver, LogPath }: Dockerode.ContainerInspectInfo,
  identity: ContainerIdentity,
  imageID: string,
): RuntimeContainer {
  // A Docker with the containerd image store reports no folder.
  const layers: { readonly [name: string]: string | undefined } = GraphDriver?.Data ?? {}
  const layer = layers['UpperDir']
  const [ip] = Object.values(NetworkSettings.Networks).flatMap(({ IPAddress }) => IPAddress || [])
  return {
    id: Id,
    identity,
    sandboxID: sandboxOf(Config.Labels),
    image: Config.Image,
    imageID,
    state: stateOf(State.Status),
    exitCode: State.ExitCode,
    oomKilled: State.OOMKilled,
    error: plainText(State.Error),
    createdAt: Created,
    startedAt: instant(State.StartedAt),
    finishedAt: instant(State.FinishedAt),
    ip,
    devices: (HostConfig.Devices ?? []).map(({ PathOnHost }: { PathOnHost: string }) => PathOnHost),
    ...(State.Pid > 0 && { pid: State.Pid }),
    ...(layer && { layerPath: layer }),
    ...(LogPath && { logPath: LogPath }),
  }
}

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

/** Whether the engine has a runtime of this name. */
export function hasRuntime(info: { readonly [name: string]: unknown }, handler: string): boolean {
  const runtimes = info['Runtimes']
  return typeof runtimes === 'object' && runtimes !== null && Object.hasOwn(runtimes, handler)
}

export function infoOf(info: { readonly [name: string]: unknown }): RuntimeInfo {
  const guards = info['SecurityOptions']
  return {
    ...(Array.isArray(guards) ? { appArmor: guards.some((guard) => /^name=apparmor\b/.test(String(guard))) } : {}),
    version: `docker://${info['ServerVersion']}`,
    rootDirectory: String(info['DockerRootDir']),
    cgroupVersion: String(info['CgroupVersion'] ?? '1'),
    storageDriver: String(info['Driver']),
    // A feature that the engine does not report is present.
    memoryLimit: info['MemoryLimit'] !== false,
    swapLimit: info['SwapLimit'] !== false,
    pidsLimit: info['PidsLimit'] !== false,
    cpuCfsQuota: info['CpuCfsQuota'] !== false && info['CpuCfsPeriod'] !== false,
  }
}
