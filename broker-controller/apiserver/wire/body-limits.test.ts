import { test } from 'tap'
import {
  bootstrappersGroup,
  type Identity,
  lapsedNodesGroup,
  mastersGroup,
  nodeIdentity,
} from '../../../api/identity.ts'
import { PodSchema } from '../../../api/pod.ts'
import { growth, linearAtMost } from '../../../daemon/testing/growth.ts'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'
import { refusal } from '../../testing/refusal.ts'
import { sentMap } from '../../testing/sent-objects.ts'
import { mostValues, refuseIntricateJson } from './body-limits.ts'
import { readProtobuf } from './protobuf.ts'
import { parseApplyBody } from './request-body.ts'
import { parseYamlBody } from './yaml-body.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const applicant: Identity = { user: 'system:bootstrap:abcdef', groups: [bootstrappersGroup] }
const yamlMap = (keys: number) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n${Array.from({ length: keys }, (_, key) => `  k${key}: v\n`).join('')}`
const ofJson = (text: string) => refusal(() => refuseIntricateJson(Buffer.from(text)))

test('YAML is accepted only from administrators, up to the size that is parsed at once', async (t) => {
  const { ask } = await anApi(t)
  const type = 'application/yaml'
  t.match(await ask('POST', maps, { body: yamlMap(1_000), type }), { code: 201 })
  t.match(await ask('POST', maps, { body: yamlMap(2_000), type }), {
    code: 413,
    body: { reason: 'RequestEntityTooLarge' },
  })
  const csr = 'apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\n'
  t.match(await ask('POST', requests, { body: csr, type, as: applicant }), {
    code: 415,
    body: { message: /send JSON/ },
  })
  t.match(await ask('PUT', '/api/v1/nodes/pi', { body: csr, type, as: nodeIdentity('pi') }), { code: 415 })
})

test('nodes and bootstrap tokens apply JSON only, all others may apply YAML, too', async (t) => {
  const node = nodeIdentity('pi')
  const applied = (as: Identity, body: string) => parseApplyBody(Buffer.from(body), as, parseYamlBody).input
  for (const as of [node, { ...node, groups: [lapsedNodesGroup] }, applicant]) {
    t.equal(
      refusal(() => applied(as, 'a: 1')),
      'UnsupportedMediaType',
    )
    t.same(applied(as, '{"a":1}'), { a: 1 })
  }
  const account = { user: 'system:serviceaccount:web:ci', groups: ['system:serviceaccounts'] }
  for (const as of [{ user: 'eve', groups: ['system:authenticated'] }, account, { ...node, groups: [mastersGroup] }]) {
    t.same(applied(as, 'a: 1'), { a: 1 })
  }
  const { ask } = await anApi(t)
  const type = 'application/apply-patch+yaml'
  t.match(await ask('PATCH', '/api/v1/nodes/pi?fieldManager=pi', { body: 'kind: Node', type, as: node }), {
    code: 415,
    body: { reason: 'UnsupportedMediaType', message: /nodes and bootstrap tokens: send JSON/ },
  })
})

test('of keys that YAML repeats the last one counts, and aliases do not multiply', async (t) => {
  t.same(parseYamlBody('a: 1\na: 2\n'), { a: 2 })
  const lines = Array.from({ length: 20 }, (_, level) => `a${level + 1}: &a${level + 1} [*a${level}, *a${level}]`)
  t.throws(() => parseYamlBody(['a0: &a0 [x]', ...lines].join('\n')), /alias/)
  const cost = growth(500, (keys) => {
    const text = yamlMap(keys)
    return () => parseYamlBody(text)
  })
  t.ok(cost < linearAtMost, `${cost} times for 8 times the keys`)
})

test('a request for a certificate has a lower size limit', async (t) => {
  const { ask } = await anApi(t)
  const metadata = { name: 'csr', annotations: { a: 'x'.repeat(70_000) } }
  t.match(await ask('POST', requests, { body: { metadata }, as: applicant }), { code: 413 })
  t.match(await ask('POST', requests, { body: { metadata } }), { code: 422 }, 'an administrator may send more')
})

test('JSON is bounded in its values and levels before it is parsed', async (t) => {
  const most = `[${'1,'.repeat(mostValues - 2)}1]`
  t.match(ofJson(most), /no refusal/)
  t.equal(ofJson(`[${'1,'.repeat(mostValues)}1]`), 'RequestEntityTooLarge')
  t.equal(ofJson('{"a":['.repeat(51)), 'BadRequest')
  t.match(ofJson(`${'{"a":['.repeat(50)}${']}'.repeat(50)}`), /no refusal/)
  t.match(ofJson(`[${'[],'.repeat(8_000)}[]]`), /no refusal/, 'levels that end do not add up')
  const { ask } = await anApi(t)
  const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":${'['.repeat(200_000)}`
  t.match(await ask('POST', maps, { body }), { code: 400, body: { message: /levels/ } })
})

test('an object does not grow beyond the limit of a body by many patches', async (t) => {
  const { ask } = await anApi(t)
  const data = (letter: string) =>
    Object.fromEntries(Array.from({ length: 10_000 }, (_, key) => [`${letter}${key}`, 'v']))
  t.match(await ask('POST', maps, { body: sentMap({ data: data('a') }) }), { code: 201 })
  const patch = { body: { data: data('b') }, type: patchTypes.merge }
  t.match(await ask('PATCH', `${maps}/settings`, patch), { code: 413, body: { message: /fields and items/ } })
})

test('a JSON patch has as many operations as in Kubernetes', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', maps, { body: sentMap({ data: {} }) })
  const operations = (count: number) =>
    Array.from({ length: count }, (_, key) => ({ op: 'add', path: `/data/k${key}`, value: 'v' }))
  const patch = (count: number) => ({ body: operations(count), type: patchTypes.json })
  t.match(await ask('PATCH', `${maps}/settings`, patch(10_000)), { code: 200 })
  t.match(await ask('PATCH', `${maps}/settings`, patch(10_001)), { code: 413, body: { message: /maximum operations/ } })
})

test('the content of strings is not counted, whatever it looks like', async (t) => {
  t.match(ofJson(JSON.stringify({ text: '{[,:"\\'.repeat(100_000) })), /no refusal/)
  t.match(ofJson('"\\'), /no refusal/, 'a text without an end is for the parser to refuse')
  t.match(ofJson('"'), /no refusal/)
})

test('protobuf is bounded in its values: an empty item takes two bytes', async (t) => {
  const envelope = (kind: string, raw: Buffer) => {
    const typeMeta = Buffer.concat([field(1, Buffer.from('v1')), field(2, Buffer.from(kind))])
    return Buffer.concat([Buffer.from('k8s\0'), field(1, typeMeta), field(2, raw)])
  }
  const containers = (count: number) => envelope('Pod', field(2, Buffer.alloc(2 * count, Buffer.from([0x12, 0]))))
  t.match(
    refusal(() => readProtobuf(containers(10), PodSchema)),
    /no refusal/,
  )
  t.equal(
    refusal(() => readProtobuf(containers(mostValues), PodSchema)),
    'RequestEntityTooLarge',
  )
})

function field(number: number, value: Buffer): Buffer {
  const length: number[] = []
  for (let rest = value.length; ; rest >>>= 7) {
    length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest)
    if (rest <= 0x7f) break
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), value])
}
