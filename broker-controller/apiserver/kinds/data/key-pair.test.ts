import { generateKeyPairSync } from 'node:crypto'
import { test } from 'tap'
import { authorityCertificate } from '../../../../certs/authority.ts'
import { anApi } from '../../../testing/api-in-memory.ts'
import { keyPairProblem } from './key-pair.ts'

function aKeyPair() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return { certificate: authorityCertificate(privateKey, Date.UTC(2026, 0, 1)), key }
}

const pem = (label: string, body = 'AAAA') => `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`

test('a certificate and the key of another do not belong together', async (t) => {
  const { certificate, key } = aKeyPair()
  const { key: other } = aKeyPair()
  t.equal(keyPairProblem(certificate, key), undefined)
  t.equal(keyPairProblem(`A text before it\n${pem('X')}${certificate}${pem('CERTIFICATE')}`, key), undefined)
  t.equal(keyPairProblem(certificate, other), 'tls: private key does not match public key')
})

test('what is missing or cannot be parsed is named, in the words of Go', async (t) => {
  const { certificate, key } = aKeyPair()
  t.equal(keyPairProblem('x', key), 'tls: failed to find any PEM data in certificate input')
  t.equal(keyPairProblem(key, key), 'tls: failed to find "CERTIFICATE" PEM block in certificate input')
  t.equal(keyPairProblem(certificate, ''), 'tls: failed to find any PEM data in key input')
  t.match(keyPairProblem(certificate, certificate), /^tls: failed to find PEM block with type ending in "PRIVATE KEY"/)
  t.equal(keyPairProblem(pem('CERTIFICATE'), key), 'tls: failed to parse certificate')
  t.equal(keyPairProblem(certificate, pem('EC PRIVATE KEY')), 'tls: failed to parse private key')
  t.equal(keyPairProblem(certificate, pem('PRIVATE KEY', '!!')), 'tls: failed to parse private key')
})

test('a Secret with a key of another certificate is created with a warning', async (t) => {
  const { ask } = await anApi(t)
  const { certificate } = aKeyPair()
  const { key } = aKeyPair()
  const body = {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, type: 'kubernetes.io/tls' },
    stringData: { 'tls.crt': certificate, 'tls.key': key },
  }
  const made = await ask('POST', '/api/v1/namespaces/default/secrets', { body })
  t.equal(made.code, 201)
  t.same(made.warnings, ['tls: private key does not match public key'])
})
