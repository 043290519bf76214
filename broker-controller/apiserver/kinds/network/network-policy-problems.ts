/** Validates NetworkPolicies (pkg/apis/networking/validation/validation.go; messages as there). */
import { portNameProblem } from '../../../../api/names.ts'
import {
  type IPBlock,
  type NetworkPolicy,
  type NetworkPolicyPeer,
  type NetworkPolicyPort,
  policyTypes,
} from '../../../../api/network/network-policy.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import { isStrictlyWithin, parseAddressBlock } from '../../../../api/text/address-block.ts'
import { portNumberProblems } from '../../../../api/validation/endpoints-validation.ts'
import { problemsWith } from '../../../../api/validation/metadata-validation.ts'
import { selectorProblems } from '../../../../api/validation/scheduling-validation.ts'

/** `spec` with its defaults. */
export function networkPolicyProblems({ spec = {} }: NetworkPolicy): readonly Problem[] {
  return [
    ...selectorProblems('spec.podSelector', spec.podSelector),
    ...(spec.ingress ?? []).flatMap(({ ports, from }, index) =>
      ruleProblems(`spec.ingress[${index}]`, ports, 'from', from),
    ),
    ...(spec.egress ?? []).flatMap(({ ports, to }, index) => ruleProblems(`spec.egress[${index}]`, ports, 'to', to)),
    ...typeProblems('spec.policyTypes', spec.policyTypes ?? []),
  ]
}

function ruleProblems(
  field: string,
  ports: readonly NetworkPolicyPort[] = [],
  side: 'from' | 'to',
  peers: readonly NetworkPolicyPeer[] = [],
): readonly Problem[] {
  return [
    ...ports.flatMap((port, index) => portProblems(`${field}.ports[${index}]`, port)),
    ...peers.flatMap((peer, index) => peerProblems(`${field}.${side}[${index}]`, peer)),
  ]
}

function typeProblems(field: string, types: readonly string[]): readonly Problem[] {
  if (types.length > policyTypes.length) return [invalid(field, types, 'may not specify more than two policyTypes')]
  return types.flatMap((type, index) =>
    policyTypes.some((known) => known === type) ? [] : [notSupported(`${field}[${index}]`, type, policyTypes)],
  )
}

const protocols = ['TCP', 'UDP', 'SCTP']

function portProblems(field: string, { protocol, port, endPort }: NetworkPolicyPort): readonly Problem[] {
  const known = protocol === undefined || protocols.includes(protocol)
  return [
    ...(known ? [] : [notSupported(`${field}.protocol`, protocol, protocols)]),
    ...numberProblems(field, port, endPort),
  ]
}

function numberProblems(
  field: string,
  port: NetworkPolicyPort['port'],
  endPort: NetworkPolicyPort['endPort'],
): readonly Problem[] {
  const ofRange = (because: string) => (endPort === undefined ? [] : [invalid(`${field}.endPort`, endPort, because)])
  if (port === undefined) return ofRange('may not be specified when `port` is not specified')
  if (typeof port === 'string') {
    return [
      ...ofRange('may not be specified when `port` is non-numeric'),
      ...problemsWith(`${field}.port`, port, portNameProblem),
    ]
  }
  return [
    ...portNumberProblems(`${field}.port`, port),
    ...(endPort !== undefined && endPort < port
      ? [invalid(`${field}.endPort`, port, 'must be greater than or equal to `port`')]
      : []),
    ...(endPort === undefined ? [] : portNumberProblems(`${field}.endPort`, endPort)),
  ]
}

function peerProblems(
  field: string,
  { podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer,
): readonly Problem[] {
  const selects = podSelector !== undefined || namespaceSelector !== undefined
  return [
    ...(podSelector === undefined ? [] : selectorProblems(`${field}.podSelector`, podSelector)),
    ...(namespaceSelector === undefined ? [] : selectorProblems(`${field}.namespaceSelector`, namespaceSelector)),
    ...(ipBlock === undefined ? [] : blockProblems(`${field}.ipBlock`, ipBlock)),
    ...(selects || ipBlock !== undefined ? [] : [required(field, 'must specify a peer')]),
    ...(selects && ipBlock !== undefined ? [forbidden(field, 'may not specify both ipBlock and another peer')] : []),
  ]
}

const noRange = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

function blockProblems(field: string, { cidr = '', except = [] }: IPBlock): readonly Problem[] {
  if (cidr === '') return [required(`${field}.cidr`)]
  const block = parseAddressBlock(cidr)
  if (block === undefined) return [invalid(`${field}.cidr`, cidr, noRange)]
  return except.flatMap((text, index) => {
    const part = parseAddressBlock(text)
    if (part === undefined) return [invalid(`${field}.except[${index}]`, text, noRange)]
    if (isStrictlyWithin(part, block)) return []
    return [invalid(`${field}.except[${index}]`, text, 'must be a strict subset of `cidr`')]
  })
}
