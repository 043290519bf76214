/** What we ask Docker to make. */
import type Dockerode from 'dockerode'
import type { ContainerOptions, PortMapping, SandboxOptions } from '../pods/runtime.ts'
import { sandboxImage } from '../pods/sandbox-image.ts'
import { labelsOf } from './docker-labels.ts'

/** As the kubelet rotates: 10 Mi, five files. */
const logs = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '5' } }
/** The agent restarts containers, nobody else. */
const noRestart = { Name: 'no' }
const cpuPeriodUs = 100_000
const leastCpuQuotaUs = 1_000

export function sandboxRequest(
  nodeName: string,
  { identity, hostname, hostNetwork, ports }: SandboxOptions,
): Dockerode.ContainerCreateOptions {
  return {
    Image: sandboxImage,
    Labels: labelsOf(nodeName, identity),
    ...(hostNetwork ? {} : { Hostname: hostname }),
    // It knows no other: an engine that stops would wait for it in vain.
    StopSignal: 'SIGKILL',
    ExposedPorts: Object.fromEntries(ports.map((port) => [portKey(port), {}])),
    HostConfig: {
      NetworkMode: hostNetwork ? 'host' : 'default',
      IpcMode: 'shareable',
      PortBindings: bindings(ports),
      CpuShares: 2,
      ReadonlyRootfs: true,
      LogConfig: { Type: 'none', Config: {} },
      RestartPolicy: noRestart,
    },
  }
}

export function containerRequest(nodeName: string, options: ContainerOptions): Dockerode.ContainerCreateOptions {
  const { identity, sandboxID, command, args, limits, requests } = options
  const joined = `container:${sandboxID}`
  return {
    Image: options.image,
    Labels: labelsOf(nodeName, identity, sandboxID),
    ...(command === undefined ? {} : { Entrypoint: [...command] }),
    ...(args === undefined ? {} : { Cmd: [...args] }),
    ...(options.workingDir === undefined ? {} : { WorkingDir: options.workingDir }),
    Env: options.env.map(({ name, value }) => `${name}=${value}`),
    Tty: options.tty,
    OpenStdin: options.stdin,
    HostConfig: {
      NetworkMode: joined,
      IpcMode: joined,
      CpuShares: requests.cpuShares,
      // Not NanoCpus: Docker refuses more of those than the machine has, Kubernetes does not.
      ...(limits.nanoCPUs === 0
        ? {}
        : {
            CpuPeriod: cpuPeriodUs,
            CpuQuota: Math.max(leastCpuQuotaUs, Math.round((limits.nanoCPUs / 1e9) * cpuPeriodUs)),
          }),
      ...(limits.memoryBytes === 0 ? {} : { Memory: limits.memoryBytes, MemorySwap: limits.memoryBytes }),
      OomScoreAdj: options.oomScoreAdj,
      Mounts: options.mounts.map(({ source, target, readOnly, propagation }) => ({
        Type: 'bind',
        Source: source,
        Target: target,
        ReadOnly: readOnly,
        BindOptions: { Propagation: propagation },
      })),
      LogConfig: logs,
      RestartPolicy: noRestart,
    },
  }
}

function portKey({ containerPort, protocol }: PortMapping): string {
  return `${containerPort}/${protocol.toLowerCase()}`
}

function bindings(ports: readonly PortMapping[]): { [port: string]: { HostIp: string; HostPort: string }[] } {
  const byPort: { [port: string]: { HostIp: string; HostPort: string }[] } = {}
  for (const port of ports) {
    const binding = { HostIp: port.hostIP, HostPort: String(port.hostPort) }
    byPort[portKey(port)] = [...(byPort[portKey(port)] ?? []), binding]
  }
  return byPort
}
