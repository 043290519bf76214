import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { test } from 'tap'
import { authorityCertificate } from '../../../certs/authority.ts'
import { aCertificate, anAuthority, tlsSecret } from '../../testing/ingress-objects.ts'
import { checkCertificate } from './certificate-check.ts'

const pemOf = (secret: ReturnType<typeof tlsSecret>, key: string) =>
  Buffer.from(secret.data?.[key] ?? '', 'base64').toString()

test('certificates and key are written as they were parsed, in a file named by its content', async (t) => {
  const authority = anAuthority()
  const secret = aCertificate(authority, 'web', 'a.example')
  const found = checkCertificate(secret)
  if ('problem' in found) return t.fail(found.problem)
  t.match(found.file, /^[0-9a-f]{24}\.pem$/)
  t.ok(new X509Certificate(found.pem).checkHost('a.example'))
  const [certificate, key] = [pemOf(secret, 'tls.crt'), pemOf(secret, 'tls.key')]
  const decorated = tlsSecret('web', `text\nbind :1\n${certificate}${authority.certificate}\nmore`, `# ${key} text`)
  t.same(checkCertificate(decorated), found, 'without text around them, and without a root')
})

test('what HAProxy would refuse is named, with no part of the key', async (t) => {
  const good = aCertificate(anAuthority(), 'web', 'a.example')
  const [certificate, key] = [pemOf(good, 'tls.crt'), pemOf(good, 'tls.key')]
  const other = pemOf(aCertificate(anAuthority(), 'web', 'a.example'), 'tls.key')
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  const curve = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey
  const pem = (one: typeof rsa) => one.export({ type: 'pkcs8', format: 'pem' }).toString()
  const nowMs = Date.now()
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  const cases = [
    [{ ...good, type: 'Opaque' }, /type "Opaque": create it with kubectl create secret tls/],
    [tlsSecret('s', '', key), /no certificate in PEM/],
    [tlsSecret('s', broken, key), /no certificate in PEM/],
    [tlsSecret('s', certificate + broken, key), /certificate in tls.crt that cannot be read/],
    [tlsSecret('s', certificate, ''), /no private key/],
    [tlsSecret('s', certificate, other), /not that of the certificate/],
    [tlsSecret('s', certificate.repeat(11), key), /more than 10 certificates/],
    [tlsSecret('s', certificate.repeat(200), key), /more than 64 KiB/],
    [tlsSecret('s', authorityCertificate(curve, nowMs), pem(curve)), /curve other than/],
    [{ ...good, data: undefined }, /no certificate in PEM/],
  ] as const
  for (const [secret, expected] of cases) {
    const found = checkCertificate(secret as typeof good)
    t.match('problem' in found ? found.problem : 'none', expected)
    t.notMatch(JSON.stringify(found), key.split('\n')[1])
  }
})

// openssl req -x509 -newkey rsa:1024 -sha256 -days 36500 -nodes -subj /CN=weak
const weakKey = `-----BEGIN PRIVATE KEY-----
MIICdQIBADANBgkqhkiG9w0BAQEFAASCAl8wggJbAgEAAoGBALJ21WGX1izAtyrL
/O4JFDqqILDuB3NAK6FfWjH1REjRVJHXlGyCIMRlm5oORKu0Zk4qPV3NnvQv8Eti
htjAOjAZn0dVm6wLI9Vpv3DzxYTup1OWpi2sUndYiQ7A5rStMofHOrgsucYTOPau
UUC7iW51CtrAZtKn+ADVoglbZLUTAgMBAAECgYARhqIF54dc9cAHL+ky5ylZaYO0
XGvW4aJnQpn09gUysXwApo8o6M6W+vOA+Y283wZ8/qDwKVVG3b5XaOGdP6N3E66o
PUDhi3xWxlFQeTl+kXrEl7UYKfFPA9dcG0URyntZbk+1ULlWXkdtceRZkGUkmcHl
/rsD9fxphyJKuFtWgQJBAOe5MEvb2uqaR9reuLZ2GP+XeuZYCoLJcl+a4gZMTpU+
Mun//WG+7KpD0JPDFf6hU2/l6AhmnDt2sTsMTKl8t1ECQQDFKTxFr/RGVFJsqqwL
6M6eqSQqRY0BYddsL+MeJ/XIhAG+y4ez9pbrWjEHjOpuCsA3AQAO/bgN+10lVOhX
7hUjAkBYAGuIE6nS+N6bD4SEvtsFjki9W+g5/Tkzd8Wo8KfTY/jAB1j6GyEUFIcM
5sTem/PtBhoVvqpMpunt6+DdaSDRAkB/fVyWC2M/nwL1dZ9uzAnfmqviEbtOK4Br
WsPYGirakFG4mE+V1Vxdr6KIqVxl79m/N4xcJUBA+kuO+kqLoU5VAkBmbCRrhCz+
3H6aS+vJR51z+kWB8LHjNrD2tDXHWGu8lQOLDGcedPGLK9Yz/jFcMbcGWwc06/UT
vcO47AGyKrsy
-----END PRIVATE KEY-----
`
const weakKeyCertificate = `-----BEGIN CERTIFICATE-----
MIIB/DCCAWWgAwIBAgIUA50Zv4VJgb+hRa3ZMIri4/7OHtwwDQYJKoZIhvcNAQEL
BQAwDzENMAsGA1UEAwwEd2VhazAgFw0yNjExMjMxMDExMjVaGA8yMTI2MTAzMDEw
MTEyNVowDzENMAsGA1UEAwwEd2VhazCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkC
gYEAsnbVYZfWLMC3Ksv87gkUOqogsO4Hc0AroV9aMfVESNFUkdeUbIIgxGWbmg5E
q7RmTio9Xc2e9C/wS2KG2MA6MBmfR1WbrAsj1Wm/cPPFhO6nU5amLaxSd1iJDsDm
tK0yh8c6uCy5xhM49q5RQLuJbnUK2sBm0qf4ANWiCVtktRMCAwEAAaNTMFEwHQYD
VR0OBBYEFNiCBdE4y8wuDMzm4T3EVAb1+J9CMB8GA1UdIwQYMBaAFNiCBdE4y8wu
DMzm4T3EVAb1+J9CMA8GA1UdEwEB/wQFMAMBAf8wDQYJKoZIhvcNAQELBQADgYEA
mC1wp8FzU1I2kAopsPyV66RxDGHndXI7YqZ1b4LP0P7wiqsyuLI4bavS7y9wRvCI
5JU66fUJZhU/o9lGavPQWqh2ETowBDH2RfmJwC74CardiKOZ6lHIP87rbnV+2gra
ERMRlWANUOCS+aqu48AjrcsAspYyXbJWuCM8jDI18CY=
-----END CERTIFICATE-----
`
// openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -sha1 -days 36500 -nodes -subj /CN=weak
const weakSignatureKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgE7c9A4GHE9d4eoF3
LwcS2NPCGPn4oZHNfVx2tQOK84qhRANCAAR8fKdbtI3Hva8FJo0Lgd6eN/059IPO
v4kA/wcheuTb+qJupKsmmzMEgleEKLgYY0QrnA7GKC79285zA33s0EBh
-----END PRIVATE KEY-----
`
const weakSignatureCertificate = `-----BEGIN CERTIFICATE-----
MIIBcjCCARqgAwIBAgIUb3EscTpiWO7Fa97ZgJoL3PpxP8AwCQYHKoZIzj0EATAP
MQ0wCwYDVQQDDAR3ZWFrMCAXDTI2MTEyMzEwMTEyNVoYDzIxMjYxMDMwMTAxMTI1
WjAPMQ0wCwYDVQQDDAR3ZWFrMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfHyn
W7SNx72vBSaNC4Henjf9OfSDzr+JAP8HIXrk2/qibqSrJpszBIJXhCi4GGNEK5wO
xigu/dvOcwN97NBAYaNTMFEwHQYDVR0OBBYEFAsXWv+0XvUDEUS8LPhU3UdY1ffr
MB8GA1UdIwQYMBaAFAsXWv+0XvUDEUS8LPhU3UdY1ffrMA8GA1UdEwEB/wQFMAMB
Af8wCQYHKoZIzj0EAQNHADBEAiAWqMk/I4c60hzPNJJsTEgdjbbwqcklcu7h4wh9
E7FSFAIgVKAuxc0Sv6GkV8VHQrW2BCC8iCLPwPVQWQJnl/UC+yo=
-----END CERTIFICATE-----
`

test('keys and signatures that OpenSSL refuses at security level 2 are refused', async (t) => {
  t.match(checkCertificate(tlsSecret('s', weakKeyCertificate, weakKey)), {
    problem: /RSA key of 1024 bits, not 2048 to 8192/,
  })
  t.match(checkCertificate(tlsSecret('s', weakSignatureCertificate, weakSignatureKey)), {
    problem: /does not use SHA-256/,
  })
})
