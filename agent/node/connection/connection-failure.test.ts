import { createSecureContext } from 'node:tls'
import { test } from 'tap'
import { linkTrouble } from './connection-failure.ts'

const own = { validFrom: new Date('2026-01-01T00:00:00Z'), validTo: new Date('2027-01-01T00:00:00Z') }
const now = Date.parse('2026-06-01T00:00:00Z')
const coded = (code: string | number) => Object.assign(new Error('failed'), { code })

test('each way a certificate may not fit has its own remedy', async (t) => {
  t.match(linkTrouble(coded('CERT_HAS_EXPIRED'), own, now).remedy, /restarting the controller/)
  t.match(linkTrouble(coded('CERT_NOT_YET_VALID'), own, now).remedy, /clock is behind/)
  t.match(linkTrouble(coded('SELF_SIGNED_CERT_IN_CHAIN'), own, now).remedy, /another authority/)
  t.match(linkTrouble(coded('ERR_TLS_CERT_ALTNAME_INVALID'), own, now).remedy, /--host/)
  t.match(linkTrouble(coded('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'), own, now).remedy, /Join again/)
  t.match(linkTrouble(coded(5), own, now).remedy, /does not accept this node/)
})

test('our own certificate or clock explains a server that just hangs up', async (t) => {
  const hungUp = coded('ECONNRESET')
  t.match(linkTrouble(hungUp, own, Date.parse('2027-02-01T00:00:00Z')), {
    kind: 'own certificate expired',
    remedy: /2027-01-01.*asks for a new one by itself/,
  })
  t.match(linkTrouble(hungUp, own, 0), { kind: 'clock', remedy: /1970-01-01/ })
})

test('a key that is none is not the network’s fault', async (t) => {
  for (const spoiled of ['-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n', 'x']) {
    try {
      createSecureContext({ key: spoiled })
      t.fail('OpenSSL takes it')
    } catch (error) {
      t.match(linkTrouble(error as Error, own, now), { kind: 'own identity', remedy: /Join again/ })
    }
  }
})

test('troubles of the network are of one kind', async (t) => {
  const kinds = ['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ECONNRESET'].map(
    (code) => linkTrouble(coded(code), own, now).kind,
  )
  t.same(new Set(kinds), new Set(['network']))
})
