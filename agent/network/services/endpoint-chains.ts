/** The chains that choose among the endpoints of a port, with or without session affinity. */
import { hostPort } from '../../../api/text/ip-address.ts'
import { inNames, type RuleFamily } from '../rule-family.ts'
import type { RuleChain, RuleElements } from '../rule-set.ts'
import { chainOf, noPiece, type ServicePiece } from './service-piece.ts'
import type { PortEndpoint, UsableEndpoints } from './usable-endpoints.ts'

export type BalancedPort = {
  /** `shop/web/tcp/80` */
  readonly name: string
  readonly protocol: 'tcp' | 'udp'
  /** Undefined: any endpoint for each connection. */
  readonly affinitySeconds: number | undefined
  readonly family: RuleFamily
}

/** As the API bounds `timeoutSeconds` (pkg/apis/core/validation, MaxClientIPServiceAffinitySeconds). */
const longestAffinitySeconds = 86_400

export function endpointChains(port: BalancedPort, { cluster, local, reachable }: UsableEndpoints): ServicePiece {
  if (reachable.length === 0) return noPiece
  const seconds = affinityOf(port)
  const choose = (kind: 'cluster' | 'local', endpoints: readonly PortEndpoint[]) =>
    endpoints.length === 0 ? [] : [[chainOf(kind, port.name), chooser(port, endpoints, seconds)] as const]
  return {
    chains: [
      ...choose('cluster', cluster),
      ...choose('local', local),
      ...(seconds === undefined ? [] : reachable.map((endpoint) => keepingChain(port, endpoint, seconds))),
    ],
    affinitySets:
      seconds === undefined
        ? []
        : reachable.map(
            (endpoint) => [affinitySet(port, endpoint, seconds), clientsFor(port.family, seconds)] as const,
          ),
    elements: reachable.filter(({ isLocal }) => isLocal).map(({ ip }) => ['hairpin-ips', `${ip} . ${ip}`, ''] as const),
  }
}

function affinityOf({ affinitySeconds }: BalancedPort): number | undefined {
  if (affinitySeconds === undefined || !Number.isInteger(affinitySeconds) || affinitySeconds <= 0) return undefined
  return Math.min(affinitySeconds, longestAffinitySeconds)
}

function chooser(port: BalancedPort, endpoints: readonly PortEndpoint[], seconds: number | undefined): RuleChain {
  const choice = `numgen random mod ${endpoints.length}`
  if (seconds === undefined) {
    const targets = endpoints.map((endpoint, index) => `${index} : ${endpoint.ip} . ${endpoint.port}`)
    return {
      rules: [
        `meta l4proto ${port.protocol} dnat ${port.family.ip} addr . port to ${choice} map { ${targets.join(', ')} }`,
      ],
    }
  }
  const targets = endpoints.map((endpoint, index) => `${index} : goto ${endpointChain(port, endpoint)}`)
  return {
    rules: [
      ...endpoints.map(
        (endpoint) =>
          `${port.family.ip} saddr @${affinitySet(port, endpoint, seconds)} goto ${endpointChain(port, endpoint)}`,
      ),
      `${choice} vmap { ${targets.join(', ')} }`,
    ],
  }
}

function keepingChain(port: BalancedPort, endpoint: PortEndpoint, seconds: number): readonly [string, RuleChain] {
  const rules = [
    `update @${affinitySet(port, endpoint, seconds)} { ${port.family.ip} saddr }`,
    `meta l4proto ${port.protocol} dnat to ${hostPort(endpoint.ip, endpoint.port)}`,
  ]
  return [endpointChain(port, endpoint), { rules }]
}

function endpointChain(port: BalancedPort, { ip, port: number }: PortEndpoint): string {
  return chainOf('endpoint', `${port.name}/${inNames(ip)}/${number}`)
}

/** A set cannot change its timeout: another timeout is another set. */
function affinitySet(port: BalancedPort, { ip, port: number }: PortEndpoint, seconds: number): string {
  return `affinity-${port.name}/${inNames(ip)}/${number}/${seconds}`
}

function clientsFor({ address }: RuleFamily, timeoutSeconds: number): RuleElements {
  return { kind: 'set', type: address, flags: ['dynamic', 'timeout'], timeoutSeconds, elements: undefined }
}
