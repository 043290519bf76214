import { test } from 'tap'
import { anonymous, nodeIdentity } from '../../../api/identity.ts'
import { storeMark } from '../../store/store-mark.ts'
import { authenticate, type ClientCertificate, type RequestCredentials } from './authentication.ts'

const nowMs = Date.parse('2026-01-02T03:04:05Z')
const token = { id: 'abcdef', secret: '0123456789abcdef', usages: ['authentication' as const], groups: [] }
const good: ClientCertificate = {
  trusted: true,
  identity: nodeIdentity('pi-01'),
  validSinceMs: nowMs - 1000,
  validUntilMs: nowMs + 1000,
}

const ask = (shown: Partial<RequestCredentials>, expiration?: string) =>
  authenticate(
    { certificate: undefined, authorization: undefined, ...shown },
    {
      nowMs,
      findToken: async (id) =>
        id === token.id ? { ...token, ...(expiration !== undefined && { expiration }) } : undefined,
    },
  )

test('a request without credentials is anonymous', async (t) => {
  t.same(await ask({}), anonymous)
})

test('a valid client certificate identifies the user', async (t) => {
  t.same(await ask({ certificate: good }), {
    user: 'system:node:pi-01',
    groups: ['system:nodes', 'system:authenticated'],
  })
  t.match(await ask({ certificate: good, authorization: 'Bearer nonsense' }), { user: 'system:node:pi-01' })
})

test('an invalid client certificate is rejected with the reason, never treated as absent', async (t) => {
  const expired = { ...good, validUntilMs: nowMs }
  await t.rejects(ask({ certificate: expired }), {
    code: 401,
    message: 'the client certificate expired at 2026-01-02T03:04:05Z; the time here is 2026-01-02T03:04:05Z',
  })
  await t.rejects(ask({ certificate: { ...good, trusted: false } }), { code: 401, message: /not trusted here/ })
  await t.rejects(ask({ certificate: { ...good, identity: undefined } }), { code: 401, message: /has no user name/ })
  t.match(
    await ask({ certificate: expired, authorization: 'Bearer abcdef.0123456789abcdef' }),
    { user: 'system:bootstrap:abcdef' },
    'a token beside it is looked at: that is how a machine whose certificate has ended joins again',
  )
})

test('a node’s certificate from the future may ask for another one, unless any of that node’s was ever revoked', async (t) => {
  const early = { ...good, trusted: false, lapsed: true, validSinceMs: nowMs + 5000, validUntilMs: nowMs + 9000 }
  const shown = { certificate: early, authorization: undefined }
  const needs = { nowMs, findToken: async () => undefined }
  t.match(await authenticate(shown, { ...needs, lapsedWindowMs: 1000 }), {
    user: 'system:node:pi-01',
    groups: ['bramble:lapsed-nodes', 'system:authenticated'],
  })
  await t.rejects(authenticate(shown, needs), { code: 401, message: /is not valid before 2026-01-02T03:04:10Z/ })
  const revoked = (_: string, sinceMs: number) => (sinceMs < nowMs - 1_000_000 ? 'it was stolen' : undefined)
  await t.rejects(authenticate(shown, { ...needs, lapsedWindowMs: 1000, revoked }), { message: 'it was stolen' })
})

test('a revoked certificate is rejected with the reason, and ignored when a token is sent', async (t) => {
  const revoked = (user: string, sinceMs: number) => (sinceMs < nowMs ? `${user} is out` : undefined)
  const needs = { nowMs, revoked, findToken: async () => token }
  const authorization = `Bearer ${token.id}.${token.secret}`
  await t.rejects(authenticate({ certificate: good, authorization: undefined }, needs), {
    code: 401,
    message: 'system:node:pi-01 is out',
  })
  t.match(await authenticate({ certificate: good, authorization }, needs), { user: 'system:bootstrap:abcdef' })
  const younger = { ...good, validSinceMs: nowMs }
  t.match(await authenticate({ certificate: younger, authorization: undefined }, needs), { user: 'system:node:pi-01' })
})

test('a node’s certificate beside a token proves the node’s key, however long ago it ended, unless it was revoked', async (t) => {
  const authorization = `Bearer ${token.id}.${token.secret}`
  const ended = { ...good, trusted: false, lapsed: true, validSinceMs: 1_000, validUntilMs: 2_000 }
  const needs = { nowMs, findToken: async () => token }
  const proven = { 'bramble.dev/proven-node': ['pi-01'] }
  const shown = (certificate: ClientCertificate) => ({ certificate, authorization })
  t.match(await authenticate(shown(ended), needs), { user: 'system:bootstrap:abcdef', extra: proven })
  const without = async (certificate: ClientCertificate, revoked?: () => string) =>
    t.notOk((await authenticate(shown(certificate), { ...needs, ...(revoked && { revoked }) })).extra)
  await without(ended, () => 'it was stolen')
  await without({ ...ended, lapsed: false })
  await without({ ...ended, identity: { user: 'system:node:pi-01', groups: [] } })
})

test('a bootstrap token makes a bootstrapper', async (t) => {
  t.same(await ask({ authorization: 'Bearer abcdef.0123456789abcdef' }), {
    user: 'system:bootstrap:abcdef',
    groups: ['system:bootstrappers', 'system:authenticated'],
  })
})

test('the error for an expired token names its end and the current time; that for a wrong token does not', async (t) => {
  await t.rejects(ask({ authorization: 'Bearer abcdef.0123456789abcdef' }, '2026-01-01T00:00:00Z'), {
    code: 401,
    message: /abcdef expired at 2026-01-01T00:00:00Z; .*2026-01-02T03:04:05Z/,
  })
  await t.rejects(ask({ authorization: 'Bearer abcdef.ffffffffffffffff' }, '2026-01-01T00:00:00Z'), {
    code: 401,
    message: /^(?!.*expired)/,
  })
  for (const authorization of ['Bearer xyz', 'Basic YTpi', 'Bearer']) {
    await t.rejects(ask({ authorization }), { code: 401 }, authorization)
  }
})

test('an expired certificate of a node serves within its window, and a token beside it counts more', async (t) => {
  const needs = { nowMs, findToken: async () => token, lapsedWindowMs: 1000 }
  const ended = (agoMs: number, more: Partial<ClientCertificate> = {}) => ({
    certificate: { ...good, trusted: false, lapsed: true, validUntilMs: nowMs - agoMs, ...more },
    authorization: undefined,
  })
  const lapsed = { user: 'system:node:pi-01', groups: ['bramble:lapsed-nodes', 'system:authenticated'] }
  t.match(await authenticate(ended(0), needs), lapsed, 'the moment it ends')
  t.match(await authenticate(ended(999), needs), lapsed)
  t.match(await authenticate(ended(999, { trusted: true, lapsed: false }), needs), lapsed, 'it ended while connected')
  for (const [why, shown] of [
    ['the window is over', ended(1000)],
    ['not of this authority', ended(1, { lapsed: false })],
    ['no name', ended(1, { identity: undefined })],
    ['no node', ended(1, { identity: { user: 'eve', groups: [] } })],
  ] as const) {
    await t.rejects(authenticate(shown, needs), { code: 401 }, why)
  }
  const authorization = `Bearer ${token.id}.${token.secret}`
  t.match(await authenticate({ ...ended(1), authorization }, needs), { user: 'system:bootstrap:abcdef' })
})

test('a certificate is good from its first moment', async (t) => {
  const needs = { nowMs, findToken: async () => undefined, lapsedWindowMs: 1000 }
  const now = { ...good, trusted: false, lapsed: true, validSinceMs: nowMs }
  await t.rejects(authenticate({ certificate: now, authorization: undefined }, needs), { message: /not trusted here/ })
})

test('a service account is known by its token, and others by theirs', async (t) => {
  const robot = { user: 'system:serviceaccount:default:robot', groups: ['system:serviceaccounts'] }
  const identifyAccount = async (text: string) => (text === 'a.b.c' ? robot : undefined)
  const shown = (authorization: string) =>
    authenticate({ certificate: undefined, authorization }, { nowMs, findToken: async () => token, identifyAccount })
  t.same(await shown('Bearer a.b.c'), robot)
  t.same(await shown('bearer   a.b.c'), robot, 'the scheme has no case (RFC 9110, 11.1)')
  t.match(await shown('Bearer abcdef.0123456789abcdef'), { user: 'system:bootstrap:abcdef' })
  for (const authorization of ['x Bearer a.b.c', 'Bearer a.b.c d', 'Bearera.b.c']) {
    await t.rejects(shown(authorization), { code: 401 }, authorization)
  }
})

test('while a store accepts checkpoints, a node whose certificate is older than the store is marked as such', async (t) => {
  const acceptingStore = '0f8fad5b-d9cb-469f-a165-70867728950e'
  const extraOf = async (
    more: Partial<ClientCertificate>,
    accepting: { acceptingStore?: string } = { acceptingStore },
  ) => {
    const shown = { certificate: { ...good, ...more }, authorization: undefined }
    return (await authenticate(shown, { nowMs, findToken: async () => token, ...accepting })).extra
  }
  const older = { 'bramble.dev/certificate-older-than-store': [acceptingStore] }
  t.same(await extraOf({ serialNumber: '01' }), older)
  const own = `${Buffer.from(storeMark(acceptingStore)).toString('hex')}0102`
  t.equal(await extraOf({ serialNumber: own }), undefined, 'issued by this store')
  t.equal(await extraOf({ serialNumber: '01' }, {}), undefined, 'no store accepts checkpoints')
  t.equal(await extraOf({}), undefined, 'the serial number is not known')
  t.equal(await extraOf({ serialNumber: '01', identity: { user: 'eve', groups: [] } }), undefined, 'no node')
})
