/** A pod's specification → the options of its sandbox and of one container. */

import { graceSecondsOf } from '../../../api/pod/pod-deletion.ts'
import { sysctlName } from '../../../api/pod/sysctls.ts'
import type { Container, Pod } from '../../../api/pod.ts'
import { milliValue, quantityToNumber } from '../../../api/quantity.ts'
import type {
  ContainerDevice,
  ContainerIdentity,
  ContainerMount,
  ContainerOptions,
  PortMapping,
  SandboxOptions,
} from '../../runtime/runtime.ts'
import { isSidecar } from '../record/pod-containers.ts'
import { containerHash } from '../record/spec-hash.ts'
import { argumentProblem } from './argument-size.ts'
import { containerEnv, type EnvSources } from './container-env.ts'
import { expand } from './expansion.ts'
import { podHostname, podResolver, type Resolver } from './pod-dns.ts'
import { oomScoreAdj } from './qos.ts'
import { containerSecurity } from './security.ts'

/** Whether options can be made at all, or what is missing in the words of CreateContainerConfigError. */
export type Made<T> = { readonly ok: true; readonly options: T } | { readonly ok: false; readonly message: string }

export type SandboxNeeds = {
  readonly resolver?: Resolver | undefined
  readonly podCIDR?: string | undefined
  /** undefined: the fleet has no network of its own. */
  readonly clusterDomain?: string | undefined
  readonly handler?: string | undefined
  /** Its last address. */
  readonly ip?: string | undefined
  readonly ipv6?: string | undefined
}

export function sandboxOptions(pod: Pod, attempt: number, node: SandboxNeeds = {}): SandboxOptions {
  const hostNetwork = pod.spec.hostNetwork === true
  return {
    identity: { ...podIdentity(pod), kind: 'sandbox', containerName: '', attempt, specHash: '' },
    ...podHostname(pod, node.clusterDomain),
    hostNetwork,
    podCIDR: hostNetwork ? undefined : node.podCIDR,
    hostIPC: pod.spec.hostIPC === true,
    resolver: podResolver(pod, node.resolver, node.clusterDomain),
    hosts: (pod.spec.hostAliases ?? []).flatMap(({ ip, hostnames = [] }) => hostnames.map((name) => ({ ip, name }))),
    sysctls: Object.fromEntries(
      (pod.spec.securityContext?.sysctls ?? []).map(({ name, value }) => [sysctlName(name), value]),
    ),
    ports: hostNetwork ? [] : hostPorts(pod),
    ...(node.handler !== undefined && { handler: node.handler }),
    ...(node.ip !== undefined && !hostNetwork && { ip: node.ip }),
    ...(node.ipv6 !== undefined && !hostNetwork && { ipv6: node.ipv6 }),
  }
}

/** The ports of the node that the pod asks for: with the host's network, every port it names. */
export function hostPorts({ spec }: Pod): readonly PortMapping[] {
  const lasting = [...(spec.initContainers ?? []).filter(isSidecar), ...spec.containers]
  const ports = lasting.flatMap((container) => container.ports ?? [])
  return ports
    .map(
      ({ containerPort, hostPort, protocol, hostIP }): PortMapping => ({
        containerPort,
        hostPort: hostPort ?? (spec.hostNetwork ? containerPort : 0),
        protocol: protocol === 'UDP' || protocol === 'SCTP' ? protocol : 'TCP',
        hostIP: hostIP ?? '',
      }),
    )
    .filter(({ hostPort }) => hostPort > 0)
}

export type ContainerNeeds = EnvSources & {
  readonly sandboxID: string
  /** The runtime of the engine; undefined: its default. */
  readonly handler?: string | undefined
  readonly attempt: number
  readonly memoryCapacityBytes: number
  /** Processes and threads; 0: no limit. */
  readonly podPidsLimit?: number
  /** False: without a profile a container has none, as by the kubelet's default. */
  readonly seccompDefault?: boolean
  readonly mounts: readonly ContainerMount[]
  readonly devices: readonly ContainerDevice[]
  /** The container whose processes it shall see, by id. */
  readonly processesOf?: string | undefined
  /** Where it matters: see `asksForImageUser`. */
  readonly imageUser?: string | undefined
}

export function containerOptions(pod: Pod, container: Container, needs: ContainerNeeds): Made<ContainerOptions> {
  const environment = containerEnv(pod, container, needs)
  if (!environment.ok) return environment
  const secured = containerSecurity(pod, container, needs.imageUser, needs.seccompDefault)
  if (!secured.ok) return secured
  const expanded = (words: readonly string[] | undefined) =>
    words === undefined || words.length === 0 ? undefined : words.map((word) => expand(word, environment.values))
  const words = {
    env: [...environment.values].map(([name, value]) => ({ name, value })),
    command: expanded(container.command),
    args: expanded(container.args),
  }
  const tooLong = argumentProblem(words)
  if (tooLong !== undefined) return { ok: false, message: tooLong }
  const { requests = {}, limits = {} } = container.resources ?? {}
  const cpuRequest = requests['cpu'] ?? limits['cpu']
  return {
    ok: true,
    options: {
      identity: {
        ...podIdentity(pod),
        kind: 'container',
        containerName: container.name,
        attempt: needs.attempt,
        specHash: containerHash(container),
      },
      sandboxID: needs.sandboxID,
      ...(needs.handler !== undefined && { handler: needs.handler }),
      image: container.image ?? '',
      ...words,
      workingDir: container.workingDir,
      tty: container.tty === true,
      stdin: container.stdin === true,
      ...(container.stdinOnce === true && { stdinOnce: true }),
      limits: {
        nanoCPUs: limits['cpu'] === undefined ? 0 : milliValue(limits['cpu']) * 1_000_000,
        memoryBytes: bytesOf(limits['memory']),
        pids: needs.podPidsLimit ?? 0,
      },
      requests: {
        cpuShares: cpuShares(cpuRequest === undefined ? 0 : milliValue(cpuRequest)),
        memoryBytes: bytesOf(requests['memory']),
      },
      ...(pod.spec.shareProcessNamespace ? { shareProcesses: true } : {}),
      ...(needs.processesOf === undefined || seesMore(pod) ? {} : { processesOf: needs.processesOf }),
      oomScoreAdj: oomScoreAdj(pod, container, needs.memoryCapacityBytes),
      mounts: needs.mounts,
      devices: needs.devices,
      hostPID: pod.spec.hostPID === true,
      hostIPC: pod.spec.hostIPC === true,
      security: secured.security,
    },
  }
}

function bytesOf(memory: Parameters<typeof quantityToNumber>[0] | undefined): number {
  return memory === undefined ? 0 : quantityToNumber(memory)
}

/** The processes of the whole pod, or of the machine. */
function seesMore({ spec }: Pod): boolean {
  return spec.shareProcessNamespace === true || spec.hostPID === true
}

/** The kernel takes 2 to 262144; 1024 is one core's worth. */
function cpuShares(millicores: number): number {
  return Math.min(262_144, Math.max(2, Math.floor((millicores * 1024) / 1000)))
}

function podIdentity({
  metadata,
  spec,
}: Pod): Omit<ContainerIdentity, 'kind' | 'containerName' | 'attempt' | 'specHash'> {
  return {
    podNamespace: metadata.namespace ?? 'default',
    podName: metadata.name ?? '',
    podUID: metadata.uid ?? '',
    gracePeriodSeconds: graceSecondsOf({ spec }),
  }
}
