/** Validates Endpoints and EndpointSlices (pkg/apis/core/validation, pkg/apis/discovery/validation). */
import { dnsLabelProblem, dnsSubdomainProblem, labelValueProblem, qualifiedNameProblem } from '../names.ts'
import type { Endpoint, EndpointSlice } from '../network/endpoint-slice.ts'
import type { EndpointAddress, EndpointSubset, Endpoints } from '../network/endpoints.ts'
import { duplicate, invalid, notSupported, type Problem, required } from '../problem.ts'
import { canonicalIPv6, ipVersion, isIPAddress } from '../text/ip-address.ts'
import { labelProblems, problemsWith } from './metadata-validation.ts'

export function endpointsProblems({ subsets = [] }: Endpoints): readonly Problem[] {
  return subsets.flatMap((subset, index) => subsetProblems(`subsets[${index}]`, subset))
}

const most = { endpoints: 1000, addresses: 100, ports: 20_000, hints: 8, topology: 16 } as const

export function endpointSliceProblems({ addressType, endpoints = [], ports = [] }: EndpointSlice): readonly Problem[] {
  const addressTypes = ['FQDN', 'IPv4', 'IPv6']
  const firstOf = new Map(ports.map(({ name = '' }, index) => [name, index] as const).reverse())
  return [
    ...(addressType === '' ? [required('addressType')] : []),
    ...(addressType === '' || addressTypes.includes(addressType)
      ? []
      : [notSupported('addressType', addressType, addressTypes)]),
    ...tooMany('ports', ports.length, most.ports),
    ...ports
      .slice(0, most.ports)
      .flatMap(({ name = '', protocol, appProtocol }, index) => [
        ...(name === '' ? [] : problemsWith(`ports[${index}].name`, name, dnsLabelProblem)),
        ...((firstOf.get(name) ?? index) < index ? [duplicate(`ports[${index}].name`, name)] : []),
        ...transportProblems(`ports[${index}].protocol`, protocol),
        ...appProtocolProblems(`ports[${index}]`, appProtocol),
      ]),
    ...tooMany('endpoints', endpoints.length, most.endpoints),
    ...endpoints
      .slice(0, most.endpoints)
      .flatMap((endpoint, index) => endpointProblems(`endpoints[${index}]`, endpoint, addressType)),
  ]
}

export function endpointSliceChangeProblems(old: EndpointSlice, now: EndpointSlice): readonly Problem[] {
  if (old.addressType === now.addressType) return endpointSliceProblems(now)
  return [...endpointSliceProblems(now), invalid('addressType', now.addressType, 'field is immutable')]
}

export function ipProblems(field: string, ip: string): readonly Problem[] {
  if (isIPAddress(ip)) return []
  return [invalid(field, ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
}

/** The addresses that mean something to one machine only, by their canonical form. */
const specialRanges: readonly { readonly form: RegExp; readonly because: string }[] = [
  { form: /^(127\.|::1$)/, because: 'may not be in the loopback range (127.0.0.0/8, ::1/128)' },
  {
    form: /^(169\.254\.|fe[89ab][0-9a-f]:)/,
    because: 'may not be in the link-local range (169.254.0.0/16, fe80::/10)',
  },
  {
    form: /^(224\.0\.0\.|ff[0-9a-f]2:)/,
    because: 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
  },
]

/** An address to which packets can be sent from another machine (ValidateEndpointIP). */
export function endpointAddressProblems(field: string, ip: string): readonly Problem[] {
  if (!isIPAddress(ip)) return ipProblems(field, ip)
  // An IPv4-mapped address leads to the IPv4 address, in whatever form it is written.
  const plain = (canonicalIPv6(ip) ?? ip).replace(/^::ffff:(?=.*\.)/, '')
  if (plain === '0.0.0.0' || plain === '::') return [invalid(field, ip, `may not be unspecified (${ip})`)]
  return specialRanges.filter(({ form }) => form.test(plain)).map(({ because }) => invalid(field, ip, because))
}

export function portNumberProblems(field: string, port: number): readonly Problem[] {
  return port >= 1 && port <= 65_535 ? [] : [invalid(field, port, 'must be between 1 and 65535, inclusive')]
}

const transports = ['SCTP', 'TCP', 'UDP']

export function transportProblems(field: string, protocol: string | undefined): readonly Problem[] {
  if (protocol === undefined || protocol === '') return [required(field)]
  return transports.includes(protocol) ? [] : [notSupported(field, protocol, transports)]
}

function subsetProblems(field: string, subset: EndpointSubset): readonly Problem[] {
  const { addresses = [], notReadyAddresses = [], ports = [] } = subset
  const isEmpty = addresses.length + notReadyAddresses.length === 0
  return [
    ...(isEmpty ? [required(field, 'must specify `addresses` or `notReadyAddresses`')] : []),
    ...addresses.flatMap((one, index) => addressProblems(`${field}.addresses[${index}]`, one)),
    ...notReadyAddresses.flatMap((one, index) => addressProblems(`${field}.notReadyAddresses[${index}]`, one)),
    ...ports.flatMap(({ name = '', port, protocol, appProtocol }, index) => {
      const at = `${field}.ports[${index}]`
      return [
        ...(name === '' && ports.length > 1 ? [required(`${at}.name`)] : []),
        ...(name === '' ? [] : problemsWith(`${at}.name`, name, dnsLabelProblem)),
        ...portNumberProblems(`${at}.port`, port),
        ...transportProblems(`${at}.protocol`, protocol),
        ...appProtocolProblems(at, appProtocol),
      ]
    }),
  ]
}

function addressProblems(field: string, { ip, hostname = '', nodeName }: EndpointAddress): readonly Problem[] {
  return [
    ...(hostname === '' ? [] : problemsWith(`${field}.hostname`, hostname, dnsLabelProblem)),
    ...(nodeName === undefined ? [] : problemsWith(`${field}.nodeName`, nodeName, dnsSubdomainProblem)),
    ...endpointAddressProblems(`${field}.ip`, ip),
  ]
}

function endpointProblems(field: string, endpoint: Endpoint, addressType: string): readonly Problem[] {
  const { addresses, nodeName, hostname, deprecatedTopology = {}, hints } = endpoint
  const at = `${field}.addresses`
  const topology = `${field}.deprecatedTopology`
  return [
    ...(addresses.length === 0 ? [required(at, 'must contain at least 1 address')] : []),
    ...tooMany(at, addresses.length, most.addresses),
    ...addresses
      .slice(0, most.addresses)
      .flatMap((address, index) => typedAddressProblems(`${at}[${index}]`, address, addressType)),
    ...(nodeName === undefined ? [] : problemsWith(`${field}.nodeName`, nodeName, dnsSubdomainProblem)),
    ...tooMany(topology, Object.keys(deprecatedTopology).length, most.topology),
    ...labelProblems(topology, deprecatedTopology),
    ...(hostname === undefined ? [] : problemsWith(`${field}.hostname`, hostname, dnsLabelProblem)),
    ...hintProblems(`${field}.hints.forZones`, hints?.forZones, labelValueProblem),
    ...hintProblems(`${field}.hints.forNodes`, hints?.forNodes, dnsSubdomainProblem),
  ]
}

function typedAddressProblems(field: string, address: string, addressType: string): readonly Problem[] {
  if (addressType === 'FQDN') {
    const isFull = address.includes('.')
    const short = 'should be a domain with at least two segments separated by dots'
    return isFull
      ? problemsWith(field, address.replace(/\.$/, ''), dnsSubdomainProblem)
      : [invalid(field, address, short)]
  }
  const version = ipVersion(address)
  const isOther = version !== undefined && `IPv${version}` !== addressType
  return [
    ...endpointAddressProblems(field, address),
    ...(isOther ? [invalid(field, address, `must be an ${addressType} address`)] : []),
  ]
}

function hintProblems(
  field: string,
  hints: readonly { readonly name: string }[] = [],
  nameProblem: (name: string) => string | undefined,
): readonly Problem[] {
  const excess = tooMany(field, hints.length, most.hints)
  if (excess.length > 0) return excess
  const names = hints.map(({ name }) => name)
  return names.flatMap((name, index) => [
    ...(names.indexOf(name) < index ? [duplicate(`${field}[${index}].name`, name)] : []),
    ...problemsWith(`${field}[${index}].name`, name, nameProblem),
  ])
}

function appProtocolProblems(field: string, appProtocol: string | undefined): readonly Problem[] {
  return appProtocol === undefined ? [] : problemsWith(`${field}.appProtocol`, appProtocol, qualifiedNameProblem)
}

/** field.TooMany. */
export function tooMany(field: string, count: number, limit: number): readonly Problem[] {
  if (count <= limit) return []
  return [{ field, reason: 'FieldValueInvalid', message: `Too many: ${count}: must have at most ${limit} items` }]
}
