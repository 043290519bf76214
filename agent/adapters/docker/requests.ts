/** Requests that create containers and sandboxes in Docker. */
import type Dockerode from 'dockerode'
import { meetsNameServer } from '../../../api/network/host-port-address.ts'
import { sandboxImage } from '../../pods/images/sandbox-image.ts'
import type {
  ContainerOptions,
  ContainerSecurity,
  LogLimits,
  PortMapping,
  SandboxOptions,
} from '../../runtime/runtime.ts'
import { labelsOf } from './labels.ts'
import type { AttachableNetwork } from './network.ts'

/** Only the agent restarts containers. */
const noRestart = { Name: 'no' }
/** Pods declare their probes. An image's own health check would run in addition, and write to the disk each time. */
const noHealthcheck = { Test: ['NONE'] }
const cpuPeriodUs = 100_000
const leastCpuQuotaUs = 1_000

/** `network`: of the pods; undefined: the engine's own. */
export function sandboxRequest(
  nodeName: string,
  { identity, hostname, domain, hostNetwork, hostIPC, resolver, hosts, sysctls, ports, ip, ipv6 }: SandboxOptions,
  network: Pick<AttachableNetwork, 'name' | 'mode'> | undefined,
): Dockerode.ContainerCreateOptions {
  return {
    Image: sandboxImage,
    Labels: labelsOf(nodeName, identity),
    ...(hostNetwork ? {} : { Hostname: hostname, Domainname: domain }),
    // The pause process handles no other signal: a stop of the engine would wait for its timeout.
    StopSignal: 'SIGKILL',
    ExposedPorts: Object.fromEntries(ports.map((port) => [portKey(port), {}])),
    ...(network !== undefined &&
      ip !== undefined && {
        NetworkingConfig: {
          EndpointsConfig: {
            [network.name]: { IPAMConfig: { IPv4Address: ip, ...(ipv6 !== undefined && { IPv6Address: ipv6 }) } },
          },
        },
      }),
    HostConfig: {
      NetworkMode: hostNetwork ? 'host' : (network?.name ?? 'default'),
      IpcMode: hostIPC ? 'host' : 'shareable',
      ...(resolver === undefined ? {} : resolving(resolver)),
      ExtraHosts: hosts.map(({ ip, name }) => `${name}:${ip}`),
      Sysctls: { ...sysctls },
      PortBindings: bindings(ports, network !== undefined && network.mode !== 'node'),
      CpuShares: 2,
      ReadonlyRootfs: true,
      LogConfig: { Type: 'none', Config: {} },
      RestartPolicy: noRestart,
    },
  }
}

/** An empty list means the machine's settings to Docker: these values mean none. */
function resolving({ servers, searches, options }: NonNullable<SandboxOptions['resolver']>) {
  return {
    Dns: [...servers],
    DnsSearch: searches.length === 0 ? ['.'] : [...searches],
    DnsOptions: options.length === 0 ? ['ndots:1'] : [...options],
  }
}

/** `seccompProfile`: the content of the profile that is requested by name. */
export function containerRequest(
  nodeName: string,
  options: ContainerOptions,
  logs: LogLimits,
  seccompProfile?: string,
): Dockerode.ContainerCreateOptions {
  const { identity, sandboxID, command, args, limits, requests } = options
  const joined = `container:${sandboxID}`
  return {
    Image: options.image,
    Labels: labelsOf(nodeName, identity, sandboxID),
    ...(command === undefined ? {} : { Entrypoint: [...command] }),
    ...(args === undefined ? {} : { Cmd: [...args] }),
    ...(options.workingDir === undefined ? {} : { WorkingDir: options.workingDir }),
    Env: options.env.map(({ name, value }) => `${name}=${value}`),
    ...(options.security.user === undefined ? {} : { User: options.security.user }),
    Tty: options.tty,
    OpenStdin: options.stdin,
    StdinOnce: options.stdinOnce === true,
    Healthcheck: noHealthcheck,
    HostConfig: {
      NetworkMode: joined,
      ...(options.handler === undefined ? {} : { Runtime: options.handler }),
      IpcMode: options.hostIPC ? 'host' : joined,
      ...(options.hostPID ? { PidMode: 'host' } : {}),
      ...rights(options.security, seccompProfile),
      ...(options.shareProcesses ? { PidMode: joined } : {}),
      ...(options.processesOf === undefined ? {} : { PidMode: `container:${options.processesOf}` }),
      CpuShares: requests.cpuShares,
      // Not NanoCpus: Docker refuses more of those than the machine has, Kubernetes does not.
      ...(limits.nanoCPUs === 0
        ? {}
        : {
            CpuPeriod: cpuPeriodUs,
            CpuQuota: Math.max(leastCpuQuotaUs, Math.round((limits.nanoCPUs / 1e9) * cpuPeriodUs)),
          }),
      ...(limits.memoryBytes === 0 ? {} : { Memory: limits.memoryBytes, MemorySwap: limits.memoryBytes }),
      ...(limits.pids === 0 ? {} : { PidsLimit: limits.pids }),
      OomScoreAdj: options.oomScoreAdj,
      Devices: options.devices.map(({ source, target, readOnly }) => ({
        PathOnHost: source,
        PathInContainer: target,
        CgroupPermissions: readOnly ? 'r' : 'rwm',
      })),
      Mounts: options.mounts.map(({ source, target, readOnly, propagation }) => ({
        Type: 'bind',
        Source: source,
        Target: target,
        ReadOnly: readOnly,
        // Private is the engine's own choice, and stated explicitly it refuses mounts that contain its own folders: `/`, or `/var/lib`.
        ...(propagation === 'rprivate' ? {} : { BindOptions: { Propagation: propagation } }),
      })),
      // Stated for each container: what the engine is configured to do may have no limit.
      LogConfig: {
        Type: 'json-file',
        Config: { 'max-size': String(logs.maxBytes), 'max-file': String(logs.maxFiles) },
      },
      RestartPolicy: noRestart,
    },
  }
}

function rights(security: ContainerSecurity, seccompProfile: string | undefined) {
  const { seccomp, appArmor } = security
  return {
    GroupAdd: security.groups.map(String),
    CapAdd: [...security.addCapabilities],
    CapDrop: [...security.dropCapabilities],
    Privileged: security.privileged,
    ReadonlyRootfs: security.readOnlyRootFilesystem,
    SecurityOpt: [
      ...(security.mayGainPrivileges ? [] : ['no-new-privileges:true']),
      ...(seccomp.kind === 'none' ? ['seccomp=unconfined'] : []),
      ...(seccomp.kind === 'own' && seccompProfile !== undefined ? [`seccomp=${seccompProfile}`] : []),
      ...(appArmor.kind === 'none' ? ['apparmor=unconfined'] : []),
      ...(appArmor.kind === 'own' ? [`apparmor=${appArmor.name}`] : []),
      ...Object.entries(security.seLinux).map(([part, value]) => `label=${part}:${value}`),
    ],
  }
}

function portKey({ containerPort, protocol }: PortMapping): string {
  return `${containerPort}/${protocol.toLowerCase()}`
}

/**
 * `isRouted`: at IPv4 addresses only. At IPv6 addresses Docker listens with a proxy, whose connections policies take for the node's own;
 * the agent has rules for them.
 */
function bindings(
  ports: readonly PortMapping[],
  isRouted: boolean,
): { [port: string]: { HostIp: string; HostPort: string }[] } {
  const byPort: { [port: string]: { HostIp: string; HostPort: string }[] } = {}
  for (const port of ports) {
    // Rules of the agent open these.
    if (isRouted && (port.hostIP.includes(':') || meetsNameServer(port.hostPort, port.hostIP))) continue
    const binding = { HostIp: port.hostIP || (isRouted ? '0.0.0.0' : ''), HostPort: String(port.hostPort) }
    byPort[portKey(port)] = [...(byPort[portKey(port)] ?? []), binding]
  }
  return byPort
}
