/** No message of the controller and no datagram holds the event loop of the agent for more than 100 ms. */
import { test } from 'tap'
import { decode } from '../api/decode.ts'
import { decodeDesired, decodeReceivedDesired } from '../api/desired.ts'
import { longestPoliciesMessage } from '../api/network/node-policies.ts'
import { longestFleetMessage } from '../api/network/service-endpoints.ts'
import { longestFrame, SessionRequestSchema } from '../api/sessions.ts'
import { type BudgetCase, turnsAboveBudget } from '../daemon/testing/turn-budget.ts'
import { readYamlInTurns } from '../daemon/yaml/yaml-reader.ts'
import { readMdnsMessage } from './network/mdns/mdns-message.ts'
import { decodeNetwork } from './network/messages/received-network.ts'
import { decodePolicies } from './network/messages/received-policies.ts'
import { decodeServices } from './network/messages/received-services.ts'
import { readQuery } from './network/names/dns-query.ts'
import { datagramBytes, readChallenge, readProof } from './network/probes/probe-message.ts'
import { decodeOrders } from './pods/volumes/received-orders.ts'
import { shareMount } from './pods/volumes/share-mount.ts'

const head = { epoch: 'e', version: 1 }
const many = <T>(count: number, item: (number: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, number) => item(number))
const address = (number: number) => `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`

const order = (number: number) => ({
  ...{ kind: 'trash', volume: `pvc-${number}`, uid: `u-${number}`, folder: `default_a_pvc-${number}` },
  ...{ pool: '11111111-1111-4111-8111-111111111111', claim: 'default/a', claimUID: `c-${number}` },
})

/** As many items as the characters allow. */
function largest(characters: number, message: (count: number) => object, item: object): string {
  const count = Math.floor((characters - 2_000) / (JSON.stringify(item).length + 6))
  return JSON.stringify(message(count))
}

function decoding(what: string, body: string, decode: (input: unknown) => unknown): BudgetCase {
  return { what, bytes: body.length, act: async () => decode(JSON.parse(body)) }
}

function manifest(what: string, text: string): BudgetCase {
  return { what, bytes: text.length, act: () => readYamlInTurns(text) }
}

function reading(what: string, datagram: Buffer, read: (bytes: Buffer) => unknown): BudgetCase {
  return { what, bytes: datagram.length, act: async () => many(20, () => read(datagram)) }
}

const peer = (number: number) => ({
  ...{ name: `pi-${number}`, podCIDR: `${address(number * 256)}/24`, address: address(number) },
  ...{ segment: '192.168.1.0/24', probePort: 8473, zone: 'kitchen' },
})
const fleet = { ...head, clusterCIDR: '10.0.0.0/8', serviceCIDR: '10.96.0.0/12', clusterDomain: 'cluster.local' }
const endpoint = (number: number) => ({
  ...{
    ip: address(number),
    pod: `pod-${number}`,
    node: `pi-${number}`,
    ready: true,
    serving: true,
    terminating: false,
  },
})
const service = (name: string, endpoints: readonly object[]) => ({
  ...{ namespace: 'default', name, type: 'ClusterIP', clusterIPs: ['10.96.0.9'] },
  ports: [{ port: 80, protocol: 'TCP' }],
  ...{ internalTrafficPolicy: 'Cluster', externalTrafficPolicy: 'Cluster' },
  endpoints: [{ ports: [{ port: 80, protocol: 'TCP' }], addresses: endpoints }],
})
const policy = (number: number) => ({
  ...{ namespace: 'default', name: `p${number}`, podSelector: { matchLabels: { app: `a${number}` } } },
  ingress: [{ peers: { sets: [number.toString(16)], ranges: ['10.0.0.0-10.0.0.255'] } }],
})
const socket = (number: number) => `${address(number)} . tcp . ${1 + (number % 65_535)}`
const set = (kind: string, elements: readonly string[]) => ({
  ...head,
  namespaces: [],
  policies: [],
  sets: [{ name: 'a', kind, elements }],
})
const pod = (number: number) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `pod-${number}`, namespace: 'default', uid: `uid-${number}` } },
  spec: { nodeName: 'pi-1', containers: [{ name: 'main', image: 'image:1' }] },
})
const nas = { kind: 'nfs', server: '10.0.0.5', path: '/backups' }
const mountOption = (number: number) => `o${number % 10}`
const data = (number: number) => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: `s${number}`, namespace: 'default', uid: `u${number}` } },
  data: Object.fromEntries(many(500, (key) => [`k${key}`, 'QUJD'])),
})

const manifests = [
  manifest('a manifest of the most words', `[${'a,'.repeat(21_000)}]`),
  manifest('a manifest of the longest text', `a: |\n${'  a line\n'.repeat(110_000)}`),
]

function messages(): readonly BudgetCase[] {
  const ofFleet = longestFleetMessage
  const ofPolicies = longestPoliciesMessage
  return [
    decoding(
      'network',
      largest(ofFleet, (count) => ({ ...fleet, nodes: many(count, peer) }), peer(10_000)),
      decodeNetwork,
    ),
    decoding(
      'services, many',
      largest(
        ofFleet,
        (count) => ({ ...head, services: many(count, (n) => service(`s${n}`, [])) }),
        service('s9999', []),
      ),
      decodeServices,
    ),
    decoding(
      'services, endpoints of one',
      largest(ofFleet, (count) => ({ ...head, services: [service('a', many(count, endpoint))] }), endpoint(99_999)),
      decodeServices,
    ),
    decoding(
      'policies, many',
      largest(
        ofPolicies,
        (count) => ({ ...head, namespaces: ['default'], sets: [], policies: many(count, policy) }),
        policy(9_999),
      ),
      decodePolicies,
    ),
    decoding(
      'policies, a set of addresses',
      largest(ofPolicies, (count) => set('address', many(count, address)), { a: address(2 ** 20) }),
      decodePolicies,
    ),
    decoding(
      'policies, a set of ports',
      largest(ofPolicies, (count) => set('port', many(count, socket)), { a: socket(2 ** 20) }),
      decodePolicies,
    ),
    decoding(
      'orders for volumes',
      largest(ofFleet, (count) => ({ ...head, store: 's', orders: many(count, order) }), order(9_999)),
      decodeOrders,
    ),
    decoding(
      'a session about a backup on a NAS',
      largest(
        longestFrame.request,
        (count) => ({
          backup: { list: { path: 'pv/nas', nas: { share: { ...nas, mountOptions: many(count, mountOption) } } } },
        }),
        { o: mountOption(0) },
      ),
      (input) => {
        const decoded = decode(SessionRequestSchema, input)
        const share = decoded.ok ? decoded.value.backup?.list?.nas?.share : undefined
        if (share === undefined) throw new Error('it is not decoded')
        return shareMount(share)
      },
    ),
    // A node has at most 110 pods, as the kubelet's default.
    decoding('desired, pods', JSON.stringify({ ...head, pods: many(110, pod) }), decodeDesired),
    decoding(
      'desired, Secrets',
      JSON.stringify({ ...head, pods: many(110, pod), secrets: many(20, data) }),
      decodeDesired,
    ),
    decoding(
      'desired, contents by name',
      JSON.stringify(byName(many(110, pod), many(20, data))),
      decodeReceivedDesired,
    ),
    decoding(
      'desired, pods that cannot be decoded',
      JSON.stringify({ ...head, pods: many(110, (number) => ({ ...pod(number), spec: { containers: number } })) }),
      decodeDesired,
    ),
  ]
}

function byName(pods: readonly object[], secrets: readonly object[]) {
  const names = { pods: pods.map((_, index) => `pod-${index}`), secrets: secrets.map((_, index) => `secret-${index}`) }
  const all = [...names.pods, ...names.secrets]
  return { ...head, names, contents: Object.fromEntries([...pods, ...secrets].map((one, index) => [all[index], one])) }
}

/** Names that point to one another, and as many records as the length allows. */
function datagrams(): readonly BudgetCase[] {
  const asked = (bytes: number, counts: readonly number[]) => {
    const message = Buffer.alloc(bytes)
    for (const [index, count] of counts.entries()) message.writeUInt16BE(count, 4 + index * 2)
    let at = 12
    for (let label = 0; label < 126; label++) at = message.writeUInt8(0x61, message.writeUInt8(1, at))
    at = message.writeUInt8(0, at) + 4
    // A pointer to the name, then type, class, time to live and length.
    for (; at + 12 <= bytes; at += 12) message.writeUInt16BE(0xc00c, at)
    return message
  }
  const challenge = Buffer.alloc(datagramBytes, 0x31)
  challenge.write('BRc1')
  const proof = Buffer.alloc(datagramBytes)
  proof.write('BRp1')
  return [
    reading('a question of DNS', asked(65_535, [1, 0, 0, 4]), readQuery),
    reading('a message of mDNS, questions', asked(9_000, [256, 0, 0, 0]), readMdnsMessage),
    reading('a message of mDNS, records', asked(9_000, [1, 255, 0, 0]), readMdnsMessage),
    reading('a challenge', challenge, readChallenge),
    reading('a proof', proof, readProof),
  ]
}

async function* each(cases: readonly BudgetCase[]): AsyncGenerator<BudgetCase> {
  yield* cases
}

test('no message of the controller holds the event loop for longer than its budget', async (t) => {
  const { count, above } = await turnsAboveBudget(each(messages()))
  t.same(above, [])
  t.equal(count, 12)
})

test('twenty datagrams of the largest size hold the event loop within its budget', async (t) => {
  const { count, above } = await turnsAboveBudget(each(datagrams()))
  t.same(above, [])
  t.equal(count, 5)
})

test('no manifest of a static pod holds the event loop for longer than its budget', async (t) => {
  const { count, above } = await turnsAboveBudget(each(manifests))
  t.same(above, [])
  t.equal(count, 2)
})
