/** The policies of a message as a node uses them: their values go into packet filters, so each is checked. */
import { type Decoded, decode } from '../../../api/decode.ts'
import { dnsLabelProblem, dnsSubdomainProblem, portNameProblem } from '../../../api/names.ts'
import {
  type PeerSetState,
  PeerSetStateSchema,
  type PoliciesMessage,
  type PolicyPortState,
  type PolicyRuleState,
  type PolicyState,
  PolicyStateSchema,
} from '../../../api/network/node-policies.ts'
import { anything, integer, list, object, text } from '../../../api/schema.ts'
import { requirementsOf } from '../../../api/selectors.ts'
import { isIPv4 } from '../../../api/text/ip-address.ts'
import { isObject } from '../../../api/text/json.ts'
import type { Received } from './received-network.ts'

const EnvelopeSchema = object({
  epoch: text,
  version: integer,
  namespaces: list(text),
  sets: list(anything),
  policies: list(anything),
})

/**
 * A policy that a later version describes otherwise, or that has a value which is none, closes its namespace, whose policies are then
 * not all known. A set that cannot be used is left out: rules allow none of its addresses. Never throws.
 */
export function decodePolicies(input: unknown): Decoded<Received<PoliciesMessage>> {
  const envelope = decode(EnvelopeSchema, input)
  if (!envelope.ok) return envelope
  const { epoch, version, namespaces } = envelope.value
  const policies: PolicyState[] = []
  const problems: string[] = []
  const closed = new Set<unknown>()
  for (const item of envelope.value.policies) {
    const decoded = decode(PolicyStateSchema, item)
    if (decoded.ok && isUsable(decoded.value)) policies.push(decoded.value)
    else {
      problems.push(`policy ${nameIn(item)}`)
      const namespace = isObject(item) ? item['namespace'] : undefined
      // Of whichever namespace it is.
      if (typeof namespace === 'string') closed.add(namespace)
      else for (const one of namespaces) closed.add(one)
    }
  }
  const sets: PeerSetState[] = []
  for (const item of envelope.value.sets) {
    const decoded = decode(PeerSetStateSchema, item)
    if (decoded.ok && isUsableSet(decoded.value)) sets.push(decoded.value)
    else problems.push(`set ${nameIn(item)}`)
  }
  const known = namespaces.filter((name) => dnsLabelProblem(name) === undefined && !closed.has(name))
  const message = {
    ...{ epoch, version, sets },
    namespaces: known,
    policies: policies.filter(({ namespace }) => !closed.has(namespace)),
  }
  return { ok: true, value: { message, problems }, unknownFields: [] }
}

function nameIn(item: unknown): string {
  const { namespace = '', name } = isObject(item) ? item : {}
  return JSON.stringify(`${namespace}/${name}`.slice(0, 320))
}

const setName = /^[0-9a-f]{1,64}$/

function isUsableSet({ name, kind, elements }: PeerSetState): boolean {
  return setName.test(name) && elements.every(kind === 'address' ? isIPv4 : isSocket)
}

function isUsable({ namespace, name, podSelector, ingress = [], egress = [] }: PolicyState): boolean {
  return (
    dnsLabelProblem(namespace) === undefined &&
    dnsSubdomainProblem(name) === undefined &&
    requirementsOf(podSelector)?.ok === true &&
    [...ingress, ...egress].every(isUsableRule)
  )
}

function isUsableRule({ peers, ports = [], destinations = [] }: PolicyRuleState): boolean {
  const sets = [...(peers?.sets ?? []), ...destinations]
  return sets.every((name) => setName.test(name)) && (peers?.ranges ?? []).every(isRange) && ports.every(isUsablePort)
}

/** `10.0.0.0-10.0.0.255` */
function isRange(range: string): boolean {
  const [first = '', last = '', ...more] = range.split('-')
  return more.length === 0 && isIPv4(first) && isIPv4(last)
}

/** `10.244.1.5 . tcp . 8080` */
function isSocket(element: string): boolean {
  const [ip = '', protocol = '', port = '', ...more] = element.split(' . ')
  return more.length === 0 && isIPv4(ip) && /^(tcp|udp|sctp)$/.test(protocol) && isPort(Number(port))
}

function isUsablePort({ port, endPort, name }: PolicyPortState): boolean {
  const named = name === undefined || portNameProblem(name) === undefined
  return named && [port, endPort].every((one) => one === undefined || isPort(one)) && (port ?? 0) <= (endPort ?? 65_535)
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535
}
