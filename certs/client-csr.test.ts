import { X509Certificate } from 'node:crypto'
import { test } from 'tap'
import { newKey, openAuthority } from './authority.ts'
import { checkClientCSR, createClientCSR, issueClient, organizationsOfCSR } from './client-csr.ts'
import { createCSR } from './csr.ts'
import { temporaryFolder } from './testing/openssl.ts'

const usages = ['digital signature', 'client auth']
const reasonFor = (pem: string, asked: readonly string[] = usages) => {
  const answer = checkClientCSR(pem, asked)
  return answer.ok ? undefined : answer.reason
}
const of = (user: string, ...groups: readonly string[]) => createClientCSR({ user, groups }, newKey())

test('a request of a person becomes a client certificate of that name and these groups', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const nowMs = Date.now()
  const authority = await openAuthority(folder.path, nowMs)
  const pem = of('jürgen', 'ops', 'dev')
  const checked = checkClientCSR(pem, usages)
  if (!checked.ok) return t.fail(checked.reason)
  t.match(checked, { user: 'jürgen', groups: ['ops', 'dev'] })
  t.same(organizationsOfCSR(pem), ['ops', 'dev'])
  const notBeforeMs = Math.floor(nowMs / 1000) * 1000
  const made = new X509Certificate(issueClient(authority, checked, { nowMs, expirationSeconds: 3600, notBeforeMs }))
  t.ok(made.verify(new X509Certificate(authority.certificate).publicKey))
  t.same(made.toLegacyObject().subject, { CN: 'jürgen', O: ['ops', 'dev'] })
  t.equal(Date.parse(made.validFrom), notBeforeMs)
  t.equal(Date.parse(made.validTo), Math.floor((nowMs + 3600_000) / 1000) * 1000)
  t.equal(made.ca, false)
})

test('a request for the identity of a machine or of the administrators is refused', async (t) => {
  t.match(reasonFor(of('eve', 'system:masters')), 'organization system:masters is not allowed')
  t.match(reasonFor(of('eve', 'ops', 'system:nodes')), 'organization system:nodes is not allowed')
  t.match(reasonFor(of('eve', 'system:bootstrappers')), 'is not allowed')
  t.match(reasonFor(of('eve', 'bramble:lapsed-nodes')), 'is not allowed')
  t.match(reasonFor(of('system:node:pi-1')), 'is that of a node')
  t.match(reasonFor(of('system:bramble-controller')), 'is that of the controllers')
  t.match(reasonFor(of('')), 'there must be one common name')
  t.match(reasonFor(of('eve'), ['server auth', 'client auth']), 'invalid usage for client certificate: server auth')
  t.match(reasonFor(of('eve'), ['digital signature']), 'missing required usage for client certificate: client auth')
  t.match(reasonFor('nonsense'), 'it is not one PEM block')
  t.equal(reasonFor(createCSR({ commonName: 'eve', organization: 'ops', key: newKey() })), undefined)
})
