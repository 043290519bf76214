import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { nodeClientSigner, nodeClientUsages } from '../api/certificate-signing-request.ts'
import { newKey, openAuthority } from './authority.ts'
import { createCSR } from './csr.ts'
import { checkNodeCSR, csrProblem, type NodeCSRTerms } from './csr-check.ts'
import { fromPem, toPem } from './der.ts'
import { yearMs } from './issue.ts'
import { openssl, temporaryFolder } from './testing/openssl.ts'
import { signNodeCSR } from './testing/sign-node-csr.ts'

const label = 'CERTIFICATE REQUEST'

function aRequest({ commonName = 'system:node:pi-1', organization = 'system:nodes' } = {}): string {
  return createCSR({ commonName, organization, key: newKey() })
}

function reasonFor(pem: string, terms: Partial<NodeCSRTerms> = {}): string {
  const answer = checkNodeCSR(pem, { signerName: nodeClientSigner, usages: nodeClientUsages, ...terms })
  return answer.ok ? `ok ${answer.nodeName}` : answer.reason
}

test('a request of ours is a good PKCS#10 request to openssl', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const path = join(folder.path, 'node.csr')
  await writeFile(path, aRequest())
  const text = await openssl('req', '-in', path, '-verify', '-noout', '-text', '-nameopt', 'RFC2253')
  t.match(text, /verify OK/)
  t.match(text, /Version: 1 \(0x0\)/)
  t.match(text, /Subject: CN=system:node:pi-1,O=system:nodes/)
  t.match(text, /NIST CURVE: P-256/)
})

test('a node’s request is taken, with or without key encipherment', async (t) => {
  t.equal(reasonFor(aRequest()), 'ok pi-1')
  t.equal(reasonFor(aRequest(), { usages: ['client auth', 'key encipherment', 'digital signature'] }), 'ok pi-1')
  t.equal(reasonFor(aRequest(), { expectedName: 'pi-1' }), 'ok pi-1')
})

test('whatever is not exactly a node’s request is refused, and why', async (t) => {
  t.match(
    reasonFor(aRequest(), { signerName: 'kubernetes.io/kubelet-serving' }),
    /signer kubernetes.io\/kubelet-serving/,
  )
  t.match(reasonFor(aRequest(), { usages: ['digital signature', 'server auth'] }), /usages must be/)
  t.match(reasonFor(aRequest(), { usages: ['digital signature', 'client auth', 'cert sign'] }), /usages must be/)
  t.match(reasonFor(aRequest(), { usages: [] }), /not none/)
  t.match(
    reasonFor(aRequest({ organization: 'system:masters' })),
    /organization must be exactly system:nodes, not system:masters/,
  )
  t.match(
    reasonFor(aRequest({ commonName: 'kubernetes-admin' })),
    /common name must be system:node: and a node's name, not "kubernetes-admin"/,
  )
  t.match(reasonFor(aRequest({ commonName: 'system:node:' })), /common name must be/)
  t.match(reasonFor(aRequest({ commonName: 'system:node:pi/../x' })), /common name must be/)
  t.match(reasonFor(aRequest({ commonName: 'system:node:+' })), /common name must be/)
  t.match(reasonFor(aRequest(), { expectedName: 'pi-2' }), /node pi-2 may not ask for a certificate of node pi-1/)
})

test('requests that openssl made are judged alike', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const [csr, key] = [join(folder.path, 'x.csr'), join(folder.path, 'x.key')]
  const made = async (newkey: readonly string[], subject: string, ...more: string[]) => {
    await openssl('req', '-new', '-nodes', '-newkey', ...newkey, '-keyout', key, '-subj', subject, '-out', csr, ...more)
    return reasonFor(await readFile(csr, 'utf8'))
  }
  const p256 = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
  const node = '/O=system:nodes/CN=system:node:pi-1'
  t.equal(await made(p256, node), 'ok pi-1')
  t.equal(await made(['ec', '-pkeyopt', 'ec_paramgen_curve:P-384'], node, '-sha384'), 'ok pi-1')
  t.equal(await made(['rsa:2048'], node), 'ok pi-1')
  t.match(await made(['rsa:1024'], node), /too weak/)
  t.match(await made(['ec', '-pkeyopt', 'ec_paramgen_curve:secp224r1'], node), /too weak/)
  t.match(await made(p256, node, '-sha1'), /method that is not accepted/)
  for (const name of ['DNS:pi', 'IP:10.0.0.1', 'email:a@b.example', 'URI:spiffe://x'])
    t.match(await made(p256, node, '-addext', `subjectAltName=${name}`), /no DNS, IP, e-mail or URI names/, name)
  t.match(
    await made(p256, `/O=system:nodes/O=system:masters/CN=system:node:pi-1`),
    /exactly system:nodes, not system:nodes, system:masters/,
  )
  t.match(await made(p256, '/CN=system:node:pi-1'), /not none/)
  t.match(await made(p256, `${node}/CN=system:node:pi-2`), /one common name/)
})

test('a request that was tampered with is refused', async (t) => {
  const pem = aRequest()
  const bytes = fromPem(label, pem)
  if (bytes === undefined) return t.fail('not our own PEM')
  const renamed = Buffer.from(bytes.toString('latin1').replace('pi-1', 'pi-2'), 'latin1')
  t.match(reasonFor(toPem(label, renamed)), /signature is not by its own key/)
  for (let at = 0; at < bytes.length; at++) {
    const broken = Buffer.from(bytes)
    broken[at] = (broken[at] ?? 0) ^ 0x01
    if (reasonFor(toPem(label, broken)).startsWith('ok')) t.fail(`byte ${at} may be changed unnoticed`)
    if (reasonFor(toPem(label, bytes.subarray(0, at))).startsWith('ok')) t.fail(`may be cut off at ${at}`)
  }
})

test('garbage is refused and breaks nothing', async (t) => {
  for (const text of [
    '',
    'hello',
    '-----BEGIN CERTIFICATE REQUEST-----',
    `${aRequest()}${aRequest()}`,
    `x${aRequest()}`,
  ])
    t.match(reasonFor(text), /not one PEM block/)
  t.match(reasonFor(toPem('CERTIFICATE', Buffer.from('x'))), /not one PEM block/)
  for (const bytes of [[], [0x30], [0x30, 0x80], [0x30, 0x84, 0xff, 0xff, 0xff, 0xff], [0x30, 0x00], [0x05, 0x00]])
    t.notMatch(reasonFor(toPem(label, Uint8Array.from(bytes))), /^ok/)
  t.notMatch(reasonFor(toPem(label, Buffer.alloc(100_000, 0x30))), /^ok/, 'nested without end')
  t.notMatch(reasonFor(`-----BEGIN ${label}-----${' '.repeat(200_000)}-----END ${label}-----`), /^ok/)
})

test('a signed request is a certificate for its key and name, for as long as asked', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const nowMs = Math.floor(Date.now() / 1000) * 1000
  const authority = await openAuthority(folder.path, nowMs)
  const key = newKey()
  const pem = createCSR({ commonName: 'system:node:pi-1', organization: 'system:nodes', key })
  const lifeMs = (expirationSeconds?: number) => {
    const terms = expirationSeconds === undefined ? { nowMs } : { nowMs, expirationSeconds }
    return Date.parse(new X509Certificate(signNodeCSR(authority, pem, terms)).validTo) - nowMs
  }
  t.equal(lifeMs(), yearMs)
  t.equal(lifeMs(3600), 3600_000)
  t.equal(lifeMs(1), 600_000, 'never under ten minutes')
  t.equal(lifeMs(1e9), yearMs)

  const certificate = new X509Certificate(signNodeCSR(authority, pem, { nowMs }))
  t.ok(certificate.checkPrivateKey(key))
  t.ok(certificate.verify(createPublicKey(authority.key)))
  t.equal(certificate.subject, 'O=system:nodes\nCN=system:node:pi-1')
  const path = join(folder.path, 'node.crt')
  await writeFile(path, certificate.toString())
  const ca = join(folder.path, 'ca.crt')
  t.match(await openssl('verify', '-x509_strict', '-purpose', 'sslclient', '-CAfile', ca, path), 'OK')

  t.throws(() => signNodeCSR(authority, aRequest({ organization: 'x' }), { nowMs }), /Not a node's certificate request/)
})

test('an RSA key is signed too, with the usages it needs', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = join(folder.path, 'rsa.key')
  await writeFile(key, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  const csr = join(folder.path, 'rsa.csr')
  await openssl('req', '-new', '-key', key, '-subj', '/O=system:nodes/CN=system:node:pi-1', '-out', csr)
  const authority = await openAuthority(folder.path, Date.now())
  const path = join(folder.path, 'rsa.crt')
  await writeFile(path, signNodeCSR(authority, await readFile(csr, 'utf8'), { nowMs: Date.now() }))
  const text = await openssl('x509', '-in', path, '-noout', '-text')
  t.match(text, /Digital Signature, Key Encipherment/)
  t.match(await openssl('verify', '-x509_strict', '-CAfile', join(folder.path, 'ca.crt'), path), 'OK')
})

test('a request of more bytes than any needs is refused before it is read', async (t) => {
  const of = (bytes: number) => toPem(label, Buffer.alloc(bytes, 5))
  const tooLarge = 'it has more than 65536 bytes'
  t.equal(csrProblem(of(65_537)), tooLarge)
  t.equal(reasonFor(of(65_537)), tooLarge)
  t.equal(csrProblem(of(65_536)), 'it is not a PKCS#10 request that can be read')
  t.equal(csrProblem(aRequest()), undefined)
})
