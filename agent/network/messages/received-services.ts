/** The Services of a message as a node uses them: their values go into packet filters and names, so each is checked. */
import { type Decoded, decode } from '../../../api/decode.ts'
import { dnsLabelProblem, dnsSubdomainProblem } from '../../../api/names.ts'
import {
  type EndpointAddressState,
  type ServiceState,
  ServiceStateSchema,
  type ServicesMessage,
} from '../../../api/network/service-endpoints.ts'
import { problemText } from '../../../api/problem.ts'
import { decodedLater, integer, list, object, text } from '../../../api/schema.ts'
import { ipv4Rules, ipv6Rules, isAddressOf, isRangeOf, type RuleFamily } from '../rule-family.ts'
import { nameIn, type Received } from './received-network.ts'

const EnvelopeSchema = object({ epoch: text, version: integer, services: list(decodedLater) })

/** A Service that a later version describes otherwise, or that has an invalid value, does not affect the others. Never throws. */
export function decodeServices(input: unknown): Decoded<Received<ServicesMessage>> {
  const envelope = decode(EnvelopeSchema, input)
  if (!envelope.ok) return envelope
  const services: ServiceState[] = []
  const problems: string[] = []
  for (const item of envelope.value.services) {
    const decoded = decode(ServiceStateSchema, item)
    const problem = decoded.ok
      ? serviceProblem(decoded.value)
      : decoded.problems.slice(0, 3).map(problemText).join(', ')
    if (decoded.ok && problem === undefined) services.push(decoded.value)
    else problems.push(`Service ${nameIn(item)}: ${problem}`)
  }
  const { epoch, version } = envelope.value
  return { ok: true, value: { message: { epoch, version, services }, problems }, unknownFields: [] }
}

/**
 * Limits of one Service over both families: pairs of one of its addresses and a port, and of an endpoint and a port.
 * The lists of a 1.5 MB object, which the API accepts, multiply to more than the memory of a node, and the checkpoint
 * would restore them at each start.
 */
const mostPairs = { ofAddresses: 10_000, ofEndpoints: 100_000 }

function nameProblem({ namespace, name, loadBalancerNode, externalName }: ServiceState): string | undefined {
  if (dnsLabelProblem(namespace) !== undefined || dnsLabelProblem(name) !== undefined) return 'a name is not valid'
  if (loadBalancerNode !== undefined && dnsSubdomainProblem(loadBalancerNode) !== undefined)
    return 'the node of the load balancer is not valid'
  if (externalName !== undefined && dnsSubdomainProblem(externalName.toLowerCase().replace(/\.$/, '')) !== undefined)
    return 'the external name is not valid'
  return undefined
}

/** undefined: every value is one that packet filters and names can have. */
function serviceProblem(service: ServiceState): string | undefined {
  const ofNames = nameProblem(service)
  if (ofNames !== undefined) return ofNames
  const { ports, affinitySeconds = 1, healthCheckNodePort, ipv6 } = service
  const endpoints = [...service.endpoints, ...(ipv6?.endpoints ?? [])]
  const numbers = [healthCheckNodePort, ...ports.flatMap(({ port, nodePort }) => [port, nodePort])]
  const named = [...ports, ...endpoints.flatMap((set) => set.ports)]
  const all = [...numbers, ...endpoints.flatMap((set) => set.ports.map(({ port }) => port))]
  if (!all.every((port) => port === undefined || (port >= 1 && port <= 65_535))) return 'a port is not valid'
  if (!named.every((port) => isLabel(port.name))) return 'the name of a port is not valid'
  const addresses = addressesIn(service).length + (ipv6 === undefined ? 0 : addressesIn(ipv6).length)
  if (addresses * ports.length > mostPairs.ofAddresses) return 'it has too many addresses and ports'
  const endpointCount = endpoints.reduce((sum, set) => sum + set.addresses.length, 0)
  if (endpointCount * ports.length > mostPairs.ofEndpoints) return 'it has too many endpoints and ports'
  if (affinitySeconds < 1 || affinitySeconds > 86_400) return 'affinitySeconds is not valid'
  return familyProblem(service, ipv4Rules) ?? (ipv6 && familyProblem(ipv6, ipv6Rules))
}

type OfFamily = Pick<ServiceState, 'clusterIPs' | 'externalIPs' | 'loadBalancerIPs' | 'sourceRanges' | 'endpoints'>

function addressesIn({ clusterIPs, externalIPs = [], loadBalancerIPs = [] }: OfFamily): readonly string[] {
  return [...clusterIPs, ...externalIPs, ...loadBalancerIPs]
}

function familyProblem(part: OfFamily, family: RuleFamily): string | undefined {
  const { sourceRanges = [], endpoints } = part
  const name = family.family
  if (!addressesIn(part).every((ip) => isAddressOf(family, ip))) return `an address is not an ${name} address`
  if (!sourceRanges.every((range) => isRangeOf(family, range))) return `a source range is not an ${name} range`
  const areUsable = endpoints.every(({ addresses }) => addresses.every((one) => isUsable(one, family)))
  return areUsable ? undefined : 'an endpoint is not valid'
}

function isUsable(
  { ip, hostname, pod, node, zone = '', zones = [] }: EndpointAddressState,
  family: RuleFamily,
): boolean {
  return (
    isAddressOf(family, ip) &&
    isLabel(hostname) &&
    [pod, node].every((name) => name === undefined || dnsSubdomainProblem(name) === undefined) &&
    [zone, ...zones].every(({ length }) => length <= 253)
  )
}

function isLabel(name: string | undefined): boolean {
  return name === undefined || dnsLabelProblem(name) === undefined
}
