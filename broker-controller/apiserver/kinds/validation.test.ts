import { test } from 'tap'
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import type { Secret } from '../../../api/secret.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { newKey } from '../../../certs/authority.ts'
import { createClientCSR } from '../../../certs/client-csr.ts'
import { causes, create, fields, update } from '../../testing/admitting.ts'

test('taints are unique by key and effect', async (t) => {
  const node = { ...aNode(), metadata: { name: 'pi' } }
  const tainted = (...taints: { key: string; effect: 'NoSchedule' | 'NoExecute'; value?: string }[]) =>
    fields(() => update('nodes', node, { ...node, spec: { taints } }))
  t.same(tainted({ key: 'a', effect: 'NoSchedule' }, { key: 'a', effect: 'NoExecute' }), [])
  t.same(tainted({ key: 'a', effect: 'NoSchedule', value: '1' }, { key: 'a', effect: 'NoSchedule' }), [
    'spec.taints[1]',
  ])
  t.same(tainted({ key: '', effect: 'NoSchedule' }, { key: 'a b', effect: 'NoSchedule', value: '-' }), [
    'spec.taints[0].key',
    'spec.taints[1].key',
    'spec.taints[1].value',
  ])
  const known = { ...node, spec: { providerID: 'a' } }
  t.same(
    fields(() => update('nodes', known, { ...node, spec: { providerID: 'b' } })),
    ['spec.providerID'],
  )
})

test('ranges of pods are checked where they are set; a Node that has others from before can still be changed', async (t) => {
  const changed = (podCIDRs: readonly string[], now: readonly string[]) => {
    const spec = (ranges: readonly string[]) =>
      ranges[0] === undefined ? {} : { podCIDR: ranges[0], podCIDRs: ranges }
    const [old, next] = [aNode({ name: 'pi', spec: spec(podCIDRs) }), aNode({ name: 'pi', spec: spec(now) })]
    return causes(() => update('nodes', old, { ...next, spec: { ...next.spec, unschedulable: true } }))
  }
  const two = ['10.1.0.0/24', '10.2.0.0/24']
  t.same(changed(two, two), [])
  t.match(changed([], two), [/^spec.podCIDRs: Invalid value: .* no more than one CIDR for each IP family/])
  t.same(changed(two, ['10.1.0.0/24']), [
    'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
  ])
})

test('Secret data are bytes, and immutable objects cannot change', async (t) => {
  const secret = (over: Partial<Secret>): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'default' },
    ...over,
  })
  const made = create('secrets', secret({ data: { a: 'MQ==', b: 'Mg==' }, stringData: { b: 'ü' } }))
  t.same(made, secret({ type: 'Opaque', data: { a: 'MQ==', b: 'w7w=' } }))
  t.same(
    fields(() => create('secrets', secret({ data: { 'a/b': '' } }))),
    ['data[a/b]'],
  )
  t.same(
    fields(() => update('secrets', made, secret({ type: 'other' }))),
    ['type'],
  )
  const login = (json: string) => Buffer.from(json).toString('base64')
  const wants = (type: string, data: Secret['data'] = {}) =>
    fields(() => create('secrets', secret({ type: `kubernetes.io/${type}`, data })))
  t.same(wants('dockerconfigjson'), ['data[.dockerconfigjson]'])
  for (const wrong of ['nonsense', '[]', 'null']) {
    t.same(wants('dockerconfigjson', { '.dockerconfigjson': login(wrong) }), ['data[.dockerconfigjson]'])
  }
  t.ok(create('secrets', secret({ type: 'kubernetes.io/dockercfg', data: { '.dockercfg': login('{}') } })))
  t.same(wants('tls', { 'tls.crt': '' }), ['data[tls.key]'])
  t.same(wants('ssh-auth', { 'ssh-privatekey': '' }), ['data[ssh-privatekey]'])
  t.same(wants('basic-auth'), ['data[username]', 'data[password]'])
  t.ok(create('secrets', secret({ type: 'kubernetes.io/basic-auth', data: { username: 'YQ==' } })))
  t.same(wants('service-account-token'), ['metadata.annotations[kubernetes.io/service-account.name]'])
  const frozen = secret({ type: 'Opaque', data: { a: 'MQ==' }, immutable: true })
  t.same(
    fields(() => update('secrets', frozen, secret({ type: 'Opaque', data: {} }))),
    ['immutable', 'data'],
  )

  const map = (over: Partial<ConfigMap>): ConfigMap => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'm', namespace: 'default' },
    ...over,
  })
  t.same(
    fields(() => create('configmaps', map({ data: { a: '1' }, binaryData: { a: 'MQ==' } }))),
    ['binaryData[a]'],
  )
  t.same(
    causes(() => create('configmaps', map({ data: { a: 'x'.repeat(1024 * 1024 + 1) } }))),
    ['[]: Too long: may not be more than 1048576 bytes'],
  )
  const annotations = { a: 'x'.repeat(256 * 1024) }
  t.same(
    causes(() => create('configmaps', map({ metadata: { name: 'm', namespace: 'default', annotations } }))),
    ['metadata.annotations: Too long: may not be more than 262144 bytes'],
  )
})

test('a certificate request has the name of its requester, whatever it claims', async (t) => {
  const pem = Buffer.from(createClientCSR({ user: 'ann', groups: [] }, newKey())).toString('base64')
  const asks = (spec: object): CertificateSigningRequest => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'node-csr-aB_c' },
    spec: { request: pem, signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: ['client auth'], ...spec },
    status: { certificate: 'LS0t' },
  })
  const made = create('certificatesigningrequests', asks({ username: 'system:node:pi', groups: ['system:nodes'] }))
  t.match(made, { spec: { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] } })
  t.same(made.status, {})
  const refused = fields(() =>
    create('certificatesigningrequests', asks({ request: 'MQ==', signerName: 'x', usages: [], expirationSeconds: 1 })),
  )
  t.same(refused, ['spec.request', 'spec.signerName', 'spec.usages', 'spec.expirationSeconds'])
  const wrong = (spec: object) => causes(() => create('certificatesigningrequests', asks(spec)))
  t.match(wrong({ signerName: 'here/any' }), [/should be a domain with at least two segments separated by dots$/])
  t.match(wrong({ signerName: 'example.com/a/b' }), [/must be a fully qualified domain and path of the form/])
  t.match(wrong({ signerName: 'kubernetes.io/legacy-unknown' }), [/the legacy signerName is not allowed/])
  t.match(wrong({ usages: ['client auth', 'clientAuth'] }), [/^spec.usages\[1\]: Unsupported value: "clientAuth"/])
  const issued = { ...made, status: { certificate: 'LS0t' } }
  t.same(
    fields(() => update('certificatesigningrequests', issued, { ...made, status: { certificate: 'LS0u' } })),
    ['status.certificate'],
  )
  const text = Buffer.from(pem, 'base64').toString()
  const other = createClientCSR({ user: 'eve', groups: [] }, newKey())
  const refusalOf = (request: string) =>
    causes(() => create('certificatesigningrequests', asks({ request: Buffer.from(request).toString('base64') })))
  for (const request of [text, `Certificate Request:\n${text}`, `${text}${other}`]) {
    t.ok(create('certificatesigningrequests', asks({ request: Buffer.from(request).toString('base64') })))
  }
  const label = 'CERTIFICATE REQUEST'
  t.match(refusalOf('-----BEGIN CERTIFICATE REQUEST-----\n'), [/PEM block type must be CERTIFICATE REQUEST/])
  t.match(refusalOf(text.replaceAll(label, 'CERTIFICATE')), [/PEM block type must be/])
  t.match(refusalOf(`-----BEGIN ${label}-----\nMA==\n-----END ${label}-----\n`), [/it is not a PKCS#10 request/])
  const lines = text.trimEnd().split('\n')
  const signed = Buffer.from(lines.slice(1, -1).join(''), 'base64')
  const forged = signed.fill(signed.readUInt8(60) ^ 1, 60, 61).toString('base64')
  t.match(refusalOf([lines[0], forged, lines.at(-1)].join('\n')), [/spec.request: Invalid value/])
  const { spec } = update('certificatesigningrequests', made, asks({ username: 'eve', signerName: 'example.com/a' }))
  t.same(spec, made['spec'], 'an update leaves it as it was')
})
