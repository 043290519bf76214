import { test } from 'tap'
import { anonymous, nodeIdentity } from '../../../api/identity.ts'
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
