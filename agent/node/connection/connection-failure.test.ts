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
