/** The policies of a message as a node uses them: their values go into packet filters, so each is checked. */
import { type Decoded, decode } from '../../../api/decode.ts'
import { dnsLabelProblem, dnsSubdomainProblem, portNameProblem } from '../../../api/names.ts'
import {
  type PeerSetState,
  type PoliciesMessage,
  type PolicyPortState,
  type PolicyRuleState,
  type PolicyState,
  PolicyStateSchema,
} from '../../../api/network/node-policies.ts'
import { decodedLater, integer, list, object, oneOf, text } from '../../../api/schema.ts'
import { requirementsOf } from '../../../api/selectors.ts'
import { isObject } from '../../../api/text/json.ts'
import { ipv4Rules, ipv6Rules, isAddressOf, type RuleFamily } from '../rule-family.ts'
import { nameIn, type Received } from './received-network.ts'

const EnvelopeSchema = object({
  epoch: text,
  version: integer,
  namespaces: list(text),
  sets: list(decodedLater),
  policies: list(decodedLater),
})

/**
 * A policy that a later version describes otherwise, or that has an invalid value, closes its namespace, whose policies are then
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
    if (decoded.ok && isUsable(decoded.value)) {
      policies.push(decoded.value)
      continue
    }
    problems.push(`policy ${nameIn(item)}`)
    for (const one of closedBy(item, namespaces)) closed.add(one)
  }
  const sets: PeerSetState[] = []
  for (const item of envelope.value.sets) {
    const set = peerSetOf(item)
    if (set !== undefined) sets.push(set)
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

/** A policy without a readable namespace may belong to any: all are closed. */
function closedBy(item: unknown, namespaces: readonly string[]): readonly string[] {
  const namespace = isObject(item) ? item['namespace'] : undefined
  return typeof namespace === 'string' ? [namespace] : namespaces
}

const setName = /^[0-9a-f]{1,64}$/

const PeerSetHeadSchema = object({ name: text, kind: oneOf('address', 'port') })

/** Its elements are most of a message: each is tested once. Undefined: it cannot be used. */
function peerSetOf(item: unknown): PeerSetState | undefined {
  const head = decode(PeerSetHeadSchema, item)
  if (!isObject(item) || !head.ok || !setName.test(head.value.name)) return undefined
  const isSocket = head.value.kind === 'port'
  const elements = stringsIn(item['elements'], (one) => (isSocket ? socket : address).test(one))
  const ipv6Elements = stringsIn(item['ipv6Elements'] ?? [], isSocket ? isIPv6Socket : isIPv6)
  if (elements === undefined || ipv6Elements === undefined) return undefined
  return { ...head.value, elements, ...(item['ipv6Elements'] !== undefined && { ipv6Elements }) }
}

/** Undefined: it is not a list of such texts. */
function stringsIn(value: unknown, isOne: (text: string) => boolean): string[] | undefined {
  const isText = (one: unknown): one is string => typeof one === 'string' && isOne(one)
  return Array.isArray(value) && value.every(isText) ? value : undefined
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
  const { ranges = [], ipv6Ranges = [] } = peers ?? {}
  const areRanges = ranges.every((one) => isRange(one, ipv4Rules)) && ipv6Ranges.every((one) => isRange(one, ipv6Rules))
  return sets.every((name) => setName.test(name)) && areRanges && ports.every(isUsablePort)
}

/** `10.0.0.0-10.0.0.255` */
function isRange(range: string, family: RuleFamily): boolean {
  const [first = '', last = '', ...more] = range.split('-')
  return more.length === 0 && isAddressOf(family, first) && isAddressOf(family, last)
}

const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const ip = `${octet}(?:\\.${octet}){3}`
const address = new RegExp(`^${ip}$`)
/** `10.244.1.5 . tcp . 8080` */
const port = '(?:tcp|udp|sctp) \\. (?:6553[0-5]|655[0-2]\\d|65[0-4]\\d\\d|6[0-4]\\d{3}|[1-5]\\d{4}|[1-9]\\d{0,3})'
const socket = new RegExp(`^${ip} \\. ${port}$`)
const ipv6Socket = new RegExp(`^([0-9a-f:]+) \\. ${port}$`)

function isIPv6(text: string): boolean {
  return isAddressOf(ipv6Rules, text)
}

function isIPv6Socket(text: string): boolean {
  return isIPv6(ipv6Socket.exec(text)?.[1] ?? '')
}

function isUsablePort({ port, endPort, name }: PolicyPortState): boolean {
  const named = name === undefined || portNameProblem(name) === undefined
  return named && [port, endPort].every((one) => one === undefined || isPort(one)) && (port ?? 0) <= (endPort ?? 65_535)
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535
}
