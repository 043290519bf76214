import { createSecureContext } from 'node:tls'
import { test } from 'tap'
import { connectionFailure } from './connection-failure.ts'

const own = { validFrom: new Date('2026-01-01T00:00:00Z'), validTo: new Date('2027-01-01T00:00:00Z') }
const now = Date.parse('2026-06-01T00:00:00Z')
const coded = (code: string | number) => Object.assign(new Error('failed'), { code })

test('each certificate problem has its own remedy', async (t) => {
  t.match(connectionFailure(coded('CERT_HAS_EXPIRED'), own, now).remedy, /restarting the controller/)
  t.match(connectionFailure(coded('CERT_NOT_YET_VALID'), own, now).remedy, /clock is behind/)
  t.match(connectionFailure(coded('SELF_SIGNED_CERT_IN_CHAIN'), own, now).remedy, /another authority/)
  t.match(connectionFailure(coded('ERR_TLS_CERT_ALTNAME_INVALID'), own, now).remedy, /--host/)
  t.match(connectionFailure(coded('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'), own, now).remedy, /Join again/)
  t.match(connectionFailure(coded(5), own, now).remedy, /does not accept this node/)
})

test("the node's own certificate or clock explains a server that closes the connection", async (t) => {
  const hungUp = coded('ECONNRESET')
  t.match(connectionFailure(hungUp, own, Date.parse('2027-02-01T00:00:00Z')), {
    kind: 'own certificate expired',
    remedy: /2027-01-01.*asks for a new one by itself/,
  })
  t.match(connectionFailure(hungUp, own, 0), { kind: 'clock', remedy: /1970-01-01/ })
})

test('an invalid key is not reported as a network failure', async (t) => {
  for (const damaged of ['-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n', 'x']) {
    try {
      createSecureContext({ key: damaged })
      t.fail('OpenSSL accepts it')
    } catch (error) {
      t.match(connectionFailure(error as Error, own, now), { kind: 'own identity', remedy: /Join again/ })
    }
  }
})

test('network failures are of one kind', async (t) => {
  const kinds = ['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ECONNRESET'].map(
    (code) => connectionFailure(coded(code), own, now).kind,
  )
  t.same(new Set(kinds), new Set(['network']))
})

test('the refusals of TLS and of MQTT have a kind each, under which they are logged once', async (t) => {
  for (const [code, kind, remedy] of [
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'other authority', /set up again/],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'own certificate expired', /asks for a new one by itself/],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED', 'own certificate revoked', /Join again/],
    ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'own certificate refused', /Join again/],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'own certificate missing', /Join again/],
    ['EAI_AGAIN', 'network', /name server/],
    ['ENETUNREACH', 'network', /no route/],
    [2, 'identifier', /another machine/],
    [3, 'network', /not ready yet/],
    [4, 'not authorized', /Join again/],
    [5, 'not authorized', /Join again/],
    [6, 'network', /Is the controller running/],
  ] as const) {
    t.match(connectionFailure(coded(code), own, now), { kind, remedy }, String(code))
  }
  t.match(connectionFailure(new Error('closed'), own, now), { kind: 'network' })
})

test('a certificate is valid in its first and in its last millisecond', async (t) => {
  const kindAt = (ms: number) => connectionFailure(coded('ECONNRESET'), own, ms).kind
  const [from, to] = [own.validFrom.getTime(), own.validTo.getTime()]
  t.same(
    [kindAt(from - 1), kindAt(from), kindAt(to), kindAt(to + 1)],
    ['clock', 'network', 'network', 'own certificate expired'],
  )
  t.match(connectionFailure(coded('ECONNRESET'), own, from - 60_000).remedy, /The clock shows 2025-12-31 23:59, which/)
})
