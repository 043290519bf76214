import { type Test, test } from 'tap'
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import { administrator, bootstrappersGroup, type Identity, mastersGroup, nodeIdentity } from '../../../api/identity.ts'
import { encodeToken } from '../../../api/node/bootstrap-token.ts'
import { newKey } from '../../../certs/authority.ts'
import { createCSR } from '../../../certs/csr.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { refuseTooManyRequests } from './signer-rights.ts'

const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const secret = '0123456789abcdef'

test('a token reads the requests that it made, and no others', async (t) => {
  const { as, ask } = await tokens(t, 'aaaaaa', 'bbbbbb')
  t.match(await ask('POST', path, { body: aRequest('mine'), ...as('aaaaaa') }), { code: 201 })
  t.match(await ask('GET', `${path}/mine`, as('aaaaaa')), { code: 200 })
  t.match(await ask('GET', `${path}/mine`, as('bbbbbb')), { code: 403 })
  t.match(await ask('GET', path, as('aaaaaa')), { code: 403 }, 'a list has those of others')
  t.match(await ask('GET', `${path}?fieldSelector=metadata.name%3Dmine`, as('bbbbbb')), { code: 403 })
  t.match(await ask('GET', `${path}?watch=1`, as('bbbbbb')), { code: 403 })
})

test('the requester of a certificate request is set from authentication, whatever the body has', async (t) => {
  const { as, ask } = await tokens(t, 'aaaaaa')
  const { spec, ...rest } = aRequest('forged')
  const extra = { 'bramble.dev/proven-node': ['pi-1'] }
  const conditions = [{ type: 'Approved', status: 'True' }]
  const body = { ...rest, spec: { ...spec, username: 'admin', extra }, status: { conditions } }
  const made = await ask('POST', path, { body, ...as('aaaaaa') })
  t.match(made, { code: 201, body: { spec: { username: 'system:bootstrap:aaaaaa' } } })
  t.notOk((made.body['spec'] as { extra?: unknown }).extra)
  t.same(made.body['status'], {})
})

test('a token has a bounded number of pending requests', async (t) => {
  const { as, ask } = await tokens(t, 'aaaaaa', 'bbbbbb')
  for (let made = 0; made < 100; made++) {
    t.equal((await ask('POST', path, { body: aRequest(`r-${made}`), ...as('aaaaaa') })).code, 201)
  }
  const refused = await ask('POST', path, { body: aRequest('too-many'), ...as('aaaaaa') })
  t.match(refused, { code: 429, retryAfterSeconds: 60, body: { message: /100 pending certificate signing requests/ } })
  t.match(await ask('POST', path, { body: aRequest('other'), ...as('bbbbbb') }), { code: 201 })
})

const pem = createCSR({ commonName: 'system:node:pi-1', organization: 'system:nodes', key: newKey() })

function aRequest(name: string) {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
    },
  }
}

async function tokens(t: Test, ...ids: readonly string[]) {
  const { ask, store } = await anApi(t)
  for (const id of ids) {
    await store.create('secrets', encodeToken({ id, secret, usages: ['authentication'], groups: [] }))
  }
  const as = (id: string) => ({ as: 'anonymous', headers: { authorization: `Bearer ${id}.${secret}` } }) as const
  return { ask, as }
}

test('an identity of a token or a node has its own limits, answered requests count as long as they are kept', async (t) => {
  const node = nodeIdentity('pi-1')
  const requests = (count: number, { user }: Identity, isAnswered = false): readonly CertificateSigningRequest[] =>
    Array.from({ length: count }, (_, index) => {
      const { spec, ...rest } = aRequest(`r-${index}`)
      const conditions = [{ type: 'Approved', status: 'True' } as const]
      const status = isAnswered ? { conditions } : {}
      const [apiVersion, kind] = ['certificates.k8s.io/v1', 'CertificateSigningRequest'] as const
      return { ...rest, apiVersion, kind, spec: { ...spec, username: user }, status }
    })
  const refusal = (who: Identity, present: readonly CertificateSigningRequest[]) => {
    try {
      refuseTooManyRequests(who, present)
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : ''
    }
  }
  t.equal(refusal(node, requests(9, node)), undefined)
  t.match(refusal(node, requests(10, node)), /^user "system:node:pi-1" has 10 pending certificate signing requests/)
  t.equal(refusal(node, requests(49, node, true)), undefined)
  t.match(
    refusal(node, requests(50, node, true)),
    /has 50 certificate signing requests, the most it may have: answered/,
  )
  t.equal(refusal(node, requests(100, nodeIdentity('pi-2'))), undefined, 'those of others do not count')
  const token = { user: 'system:bootstrap:aaaaaa', groups: [bootstrappersGroup] }
  t.equal(refusal(token, requests(99, token)), undefined)
  t.match(refusal(token, requests(2000, token, true)), /has 2000 certificate signing requests/)
  t.equal(refusal(administrator, requests(5000, administrator)), undefined)
  const both = { ...node, groups: [...node.groups, mastersGroup] }
  t.equal(refusal(both, requests(5000, both)), undefined, 'an administrator, whatever other groups it has')
})
