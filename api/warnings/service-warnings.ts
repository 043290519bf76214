/** What is valid in a Service and hardly meant (pkg/api/service/warnings.go). */
import { noClusterIP, type Service } from '../network/service.ts'
import { canonicalIPv6 } from '../text/ip-address.ts'

const deprecatedHints = 'service.kubernetes.io/topology-aware-hints'
const topologyMode = 'service.kubernetes.io/topology-mode'

/** Warnings of a new or changed Service that is valid, with its defaults. */
export function serviceWarnings({ metadata, spec = {} }: Service): readonly string[] {
  const { type, clusterIP = '', clusterIPs = [], externalIPs = [], externalName = '', loadBalancerIP = '' } = spec
  const isSet = clusterIP !== '' && clusterIP !== noClusterIP
  return [
    ...(Object.hasOwn(metadata.annotations ?? {}, deprecatedHints)
      ? [`annotation ${deprecatedHints} is deprecated, please use ${topologyMode} instead`]
      : []),
    ...(isSet ? clusterIPs.flatMap((ip, index) => addressWarnings(`spec.clusterIPs[${index}]`, ip)) : []),
    ...externalIPs.flatMap((ip, index) => addressWarnings(`spec.externalIPs[${index}]`, ip)),
    ...addressWarnings('spec.loadBalancerIP', loadBalancerIP),
    ...(spec.loadBalancerSourceRanges ?? []).flatMap((range, index) =>
      rangeWarnings(`spec.loadBalancerSourceRanges[${index}]`, range),
    ),
    ...(type === 'ExternalName' && externalIPs.length > 0
      ? ['spec.externalIPs is ignored when spec.type is "ExternalName"']
      : []),
    ...(type !== 'ExternalName' && externalName !== ''
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : []),
  ]
}

function addressWarnings(at: string, address: string): readonly string[] {
  const canonical = canonicalIPv6(address)
  return canonical === undefined || canonical === address ? [] : [notCanonical(at, 'address', address, canonical)]
}

function rangeWarnings(at: string, range: string): readonly string[] {
  const [address = '', bits = ''] = range.split('/')
  const canonical = canonicalIPv6(address)
  if (canonical === undefined || canonical === address) return []
  return [notCanonical(at, 'prefix', range, `${canonical}/${bits}`)]
}

function notCanonical(at: string, what: string, text: string, canonical: string): string {
  const forms = `"${text}" is not in RFC 5952 canonical format ("${canonical}")`
  return `${at}: IPv6 ${what} ${forms}, which may cause controller apply-loops`
}
