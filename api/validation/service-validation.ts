/** Validates Services (ValidateService in pkg/apis/core/validation/validation.go; messages as there). */
import { dnsLabelProblem, dnsSubdomainProblem, portNameProblem, qualifiedNameProblem } from '../names.ts'
import {
  isExternallyAccessible,
  needsHealthCheckPort,
  noClusterIP,
  type Service,
  type ServicePort,
  type ServiceSpec,
} from '../network/service.ts'
import { duplicate, forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { parseAddressBlock } from '../text/address-block.ts'
import { ipVersion, isIPAddress } from '../text/ip-address.ts'
import { endpointAddressProblems, ipProblems, portNumberProblems, transportProblems } from './endpoints-validation.ts'
import { labelProblems, problemsWith } from './metadata-validation.ts'
import { repeatedPlaces } from './repeated.ts'

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
/** One day. */
const longestAffinitySeconds = 86_400

/** The service has its defaults; addresses and node ports may be not allocated yet. */
export function serviceProblems(service: Service): readonly Problem[] {
  return [...fieldProblems(service), ...forwardingProblems(service)]
}

/** Nodes forward TCP and UDP: a port of SCTP would be accepted, and no connection to it would ever come through. */
function forwardingProblems({ spec = {} }: Service): readonly Problem[] {
  const { ports = [], clusterIP, type } = spec
  if (clusterIP === noClusterIP || type === 'ExternalName') return []
  const because =
    'nodes forward TCP and UDP only: make the Service headless (`clusterIP: None`), and connect to its pods'
  return ports.flatMap(({ protocol }, index) =>
    protocol === 'SCTP' ? [forbidden(`spec.ports[${index}].protocol`, because)] : [],
  )
}

function fieldProblems({ spec = {} }: Service): readonly Problem[] {
  const { ports = [], selector, externalIPs = [], type } = spec
  const needsPorts = spec.clusterIP !== noClusterIP && type !== 'ExternalName'
  return [
    ...(ports.length === 0 && needsPorts ? [required('spec.ports')] : []),
    ...(type === undefined || types.includes(type) ? [] : [notSupported('spec.type', type, types)]),
    ...typeProblems(spec),
    ...portsProblems(spec),
    ...labelProblems('spec.selector', selector),
    ...affinityProblems(spec),
    ...clusterIPProblems(spec),
    ...externalIPs.flatMap((ip, index) => endpointAddressProblems(`spec.externalIPs[${index}]`, ip)),
    ...balancerProblems(spec),
    ...trafficProblems(spec),
  ]
}

export function serviceChangeProblems(old: Service, now: Service): readonly Problem[] {
  const [before, after] = [old.spec ?? {}, now.spec ?? {}]
  const balanced = before.type === 'LoadBalancer' && after.type === 'LoadBalancer'
  const otherClass = balanced && before.loadBalancerClass !== after.loadBalancerClass
  const checked = needsHealthCheckPort(before) && needsHealthCheckPort(after)
  const otherCheck = checked && before.healthCheckNodePort !== after.healthCheckNodePort
  return [
    ...addressChangeProblems(before, after),
    ...(otherClass ? [invalid('spec.loadBalancerClass', after.loadBalancerClass, 'may not change once set')] : []),
    ...(otherCheck ? [forbidden('spec.healthCheckNodePort', 'field is immutable')] : []),
    ...fieldProblems(now),
    // A Service that an earlier version has taken can still be changed.
    ...(forwardingProblems(old).length > 0 ? [] : forwardingProblems(now)),
  ]
}

/** What is wrong with the status that a load balancer writes (ValidateLoadBalancerStatus). */
export function serviceStatusProblems({ spec = {}, status }: Service): readonly Problem[] {
  const ingress = status?.loadBalancer?.ingress ?? []
  const field = 'status.loadBalancer.ingress'
  if (spec.type !== 'LoadBalancer' && ingress.length > 0) {
    return [forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")]
  }
  return ingress.flatMap(({ ip = '', ipMode, hostname = '' }, index) => {
    const at = `${field}[${index}]`
    const modes = ['Proxy', 'VIP']
    return [
      ...(ip === '' ? [] : ipProblems(`${at}.ip`, ip)),
      ...(ipMode !== undefined && ip === ''
        ? [forbidden(`${at}.ipMode`, 'may not be specified when `ip` is not set')]
        : []),
      ...(ipMode !== undefined && ip !== '' && !modes.includes(ipMode)
        ? [notSupported(`${at}.ipMode`, ipMode, modes)]
        : []),
      ...(hostname === '' ? [] : problemsWith(`${at}.hostname`, hostname, dnsSubdomainProblem)),
      ...(isIPAddress(hostname) ? [invalid(`${at}.hostname`, hostname, 'must be a DNS name, not an IP address')] : []),
    ]
  })
}

function typeProblems(spec: ServiceSpec): readonly Problem[] {
  const { type, clusterIPs = [], ipFamilies = [], ipFamilyPolicy, externalName = '', ports = [] } = spec
  switch (type) {
    case 'LoadBalancer':
    case 'NodePort':
      if (clusterIPs[0] !== noClusterIP) return []
      return [invalid('spec.clusterIPs[0]', noClusterIP, `may not be set to 'None' for ${type} services`)]
    case 'ClusterIP':
      return ports.flatMap(({ nodePort = 0 }, index) =>
        nodePort === 0
          ? []
          : [forbidden(`spec.ports[${index}].nodePort`, "may not be used when `type` is 'ClusterIP'")],
      )
    case 'ExternalName': {
      const because = 'may not be set for ExternalName services'
      // The name may have a dot at its end, which marks it as fully qualified.
      const name = externalName.replace(/\.$/, '')
      return [
        ...(clusterIPs.length > 0 ? [forbidden('spec.clusterIPs', because)] : []),
        ...(ipFamilies.length > 0 ? [forbidden('spec.ipFamilies', because)] : []),
        ...(ipFamilyPolicy !== undefined ? [forbidden('spec.ipFamilyPolicy', because)] : []),
        ...(name === ''
          ? [required('spec.externalName')]
          : problemsWith('spec.externalName', name, dnsSubdomainProblem)),
      ]
    }
    default:
      return []
  }
}

function portsProblems({ ports = [] }: ServiceSpec): readonly Problem[] {
  const names = new Set<string>()
  const numbers = new Set<string>()
  const nodePorts = new Set<string>()
  const isNew = (seen: Set<string>, key: string) => !seen.has(key) && seen.add(key) !== undefined
  return ports.flatMap((port, index) => {
    const field = `spec.ports[${index}]`
    const { name = '', protocol = '', nodePort = 0 } = port
    const repeated = name !== '' && !isNew(names, name)
    return [
      ...(name === '' && ports.length > 1 ? [required(`${field}.name`)] : []),
      ...(name === '' ? [] : problemsWith(`${field}.name`, name, dnsLabelProblem)),
      ...(repeated ? [duplicate(`${field}.name`, name)] : []),
      ...portProblems(field, port),
      ...(nodePort !== 0 && !isNew(nodePorts, `${protocol} ${nodePort}`)
        ? [duplicate(`${field}.nodePort`, nodePort)]
        : []),
      ...(isNew(numbers, `${protocol} ${port.port}`) ? [] : [duplicate(field, { protocol, port: port.port })]),
    ]
  })
}

function portProblems(field: string, { port, protocol, targetPort = port, appProtocol }: ServicePort) {
  const target = `${field}.targetPort`
  return [
    ...portNumberProblems(`${field}.port`, port),
    ...transportProblems(`${field}.protocol`, protocol),
    ...(typeof targetPort === 'number'
      ? portNumberProblems(target, targetPort)
      : problemsWith(target, targetPort, portNameProblem)),
    ...(appProtocol === undefined ? [] : problemsWith(`${field}.appProtocol`, appProtocol, qualifiedNameProblem)),
  ]
}

function affinityProblems({ sessionAffinity = 'None', sessionAffinityConfig }: ServiceSpec): readonly Problem[] {
  const supported = ['ClientIP', 'None']
  const field = 'spec.sessionAffinityConfig'
  if (!supported.includes(sessionAffinity)) return [notSupported('spec.sessionAffinity', sessionAffinity, supported)]
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds
  if (sessionAffinity === 'None' || seconds === undefined) return []
  if (seconds > 0 && seconds <= longestAffinitySeconds) return []
  const because = `must be greater than 0 and less than ${longestAffinitySeconds}`
  return [invalid(`${field}.clientIP.timeoutSeconds`, seconds, because)]
}

/** ValidateServiceClusterIPsRelatedFields. */
function clusterIPProblems(spec: ServiceSpec): readonly Problem[] {
  const { type, clusterIP = '', clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = spec
  if (type === 'ExternalName') return []
  const field = 'spec.clusterIPs'
  const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack']
  const repeated = repeatedPlaces(ipFamilies)
  const problems = [
    ...pairProblems(clusterIP, clusterIPs),
    ...ipFamilies.flatMap((family, index) => [
      ...(family === 'IPv4' || family === 'IPv6'
        ? []
        : [notSupported(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6'])]),
      ...(repeated.has(index) ? [duplicate(`spec.ipFamilies[${index}]`, family)] : []),
    ]),
    ...(ipFamilyPolicy === undefined || policies.includes(ipFamilyPolicy)
      ? []
      : [notSupported('spec.ipFamilyPolicy', ipFamilyPolicy, policies)]),
  ]
  const wrong = clusterIPs.flatMap((ip, index) => {
    if (index === 0 && ip === noClusterIP) {
      return clusterIPs.length === 1 ? [] : [invalid(field, clusterIPs, "'None' must be the first and only value")]
    }
    return ipProblems(`${field}[${index}]`, ip)
  })
  const many = clusterIPs.length > 2 ? [invalid(field, clusterIPs, 'may only hold up to 2 values')] : []
  if (wrong.length > 0 || clusterIP === noClusterIP) return [...problems, ...wrong, ...many]
  const families = clusterIPs.map((ip) => `IPv${ipVersion(ip)}`)
  const sameFamily = new Set(families).size < families.length
  const mismatches = families.flatMap((family, index) => {
    const expected = ipFamilies[index] ?? family
    if (expected === family) return []
    const because = `expected an ${expected} value as indicated by \`ipFamilies[${index}]\``
    return [invalid(`${field}[${index}]`, clusterIPs[index], because)]
  })
  return [
    ...problems,
    ...many,
    ...(sameFamily ? [invalid(field, clusterIPs, 'may specify no more than one IP for each IP family')] : []),
    ...mismatches,
  ]
}

/** `clusterIP` is the first of `clusterIPs`. */
function pairProblems(clusterIP: string, clusterIPs: readonly string[]): readonly Problem[] {
  const field = 'spec.clusterIPs'
  if (clusterIP === '') {
    return clusterIPs.length === 0
      ? []
      : [invalid(field, clusterIPs, 'must be empty when `clusterIP` is not specified')]
  }
  if (clusterIPs.length === 0) return [required(field)]
  return clusterIPs[0] === clusterIP ? [] : [invalid(field, clusterIPs, 'first value must match `clusterIP`')]
}

function balancerProblems(spec: ServiceSpec): readonly Problem[] {
  const { type, loadBalancerSourceRanges: ranges = [], allocateLoadBalancerNodePorts, loadBalancerClass } = spec
  const only = "may only be used when `type` is 'LoadBalancer'"
  const isOne = type === 'LoadBalancer'
  const field = 'spec.LoadBalancerSourceRanges'
  return [
    ...(ranges.length > 0 && !isOne ? [forbidden(field, only)] : []),
    ...ranges.flatMap((range, index) => rangeProblems(`${field}[${index}]`, range.trim())),
    ...(allocateLoadBalancerNodePorts !== undefined && !isOne
      ? [forbidden('spec.allocateLoadBalancerNodePorts', only)]
      : []),
    ...(loadBalancerClass !== undefined && !isOne ? [forbidden('spec.loadBalancerClass', only)] : []),
    ...(loadBalancerClass !== undefined && isOne
      ? problemsWith('spec.loadBalancerClass', loadBalancerClass, qualifiedNameProblem)
      : []),
  ]
}

function rangeProblems(field: string, range: string): readonly Problem[] {
  if (parseAddressBlock(range) !== undefined) return []
  return [invalid(field, range, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
}

function trafficProblems(spec: ServiceSpec): readonly Problem[] {
  const { externalTrafficPolicy: outside = '', internalTrafficPolicy: inside, trafficDistribution } = spec
  const { healthCheckNodePort = 0 } = spec
  const policies = ['Cluster', 'Local']
  const distributions = ['PreferClose']
  const field = 'spec.externalTrafficPolicy'
  const external = isExternallyAccessible(spec)
  const strayCheck = healthCheckNodePort !== 0 && !needsHealthCheckPort(spec)
  const checkBecause = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
  return [
    ...(outside !== '' && !external
      ? [invalid(field, outside, 'may only be set for externally-accessible services')]
      : []),
    ...(external && !policies.includes(outside) ? [notSupported(field, outside, policies)] : []),
    ...(strayCheck ? [invalid('spec.healthCheckNodePort', healthCheckNodePort, checkBecause)] : []),
    ...(healthCheckNodePort === 0 ? [] : portNumberProblems('spec.healthCheckNodePort', healthCheckNodePort)),
    ...(inside === undefined || policies.includes(inside)
      ? []
      : [notSupported('spec.internalTrafficPolicy', inside, policies)]),
    ...(trafficDistribution === undefined || distributions.includes(trafficDistribution)
      ? []
      : [notSupported('spec.trafficDistribution', trafficDistribution, distributions)]),
  ]
}

/** validateUpgradeDowngradeClusterIPs and validateUpgradeDowngradeIPFamilies. */
function addressChangeProblems(before: ServiceSpec, after: ServiceSpec): readonly Problem[] {
  if (before.type === 'ExternalName' || after.type === 'ExternalName') return []
  const [had, has] = [before.clusterIPs ?? [], after.clusterIPs ?? []]
  if (before.clusterIP === noClusterIP && after.clusterIP === noClusterIP) return []
  if (had.length > 0 && has.length === 0) {
    return [invalid('spec.clusterIPs[0]', has, 'primary clusterIP can not be unset')]
  }
  const changed = had.findIndex((ip, index) => index < has.length && has[index] !== ip)
  const [family, newFamily] = [before.ipFamilies?.[0], after.ipFamilies?.[0]]
  return [
    ...(changed >= 0 ? [invalid(`spec.clusterIPs[${changed}]`, has, 'may not change once set')] : []),
    ...(family !== undefined && newFamily !== undefined && family !== newFamily
      ? [invalid('spec.ipFamilies[0]', after.ipFamilies, 'may not change once set')]
      : []),
    ...releaseProblems(after.ipFamilyPolicy, 'clusterIP', had, has),
    ...releaseProblems(after.ipFamilyPolicy, 'ipFamily', before.ipFamilies, after.ipFamilies),
  ]
}

function releaseProblems(
  policy: string | undefined,
  what: string,
  had: readonly string[] = [],
  has: readonly string[] = [],
): readonly Problem[] {
  if (had.length < 2 || has.length !== 1 || policy === 'SingleStack') return []
  return [invalid('spec.ipFamilyPolicy', policy, `must be set to 'SingleStack' when releasing the secondary ${what}`)]
}
