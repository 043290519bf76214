import { test } from 'tap'
import {
  type BootstrapToken,
  decodeToken,
  encodeToken,
  formatToken,
  judgeToken,
  parseToken,
  tokenFrom,
  tokenRefusal,
} from './bootstrap-token.ts'

const now = Date.parse('2026-05-01T12:00:00Z')

function aToken(more: Partial<BootstrapToken> = {}): BootstrapToken {
  return { id: 'abcdef', secret: '0123456789abcdef', usages: ['authentication', 'signing'], groups: [], ...more }
}

test('a token is six characters, a dot and sixteen', async (t) => {
  t.same(parseToken('abcdef.0123456789abcdef'), { id: 'abcdef', secret: '0123456789abcdef' })
  for (const wrong of ['', 'abcdef', 'abcdef.0123456789abcde', 'ABCDEF.0123456789abcdef', 'abcdef.0123456789abcdef\n'])
    t.equal(parseToken(wrong), undefined, JSON.stringify(wrong))
})

test('a token made of random bytes has the form of a token', async (t) => {
  const bytes = Uint8Array.from({ length: 40 }, (_, i) => (i * 37) % 256)
  t.ok(parseToken(formatToken(tokenFrom(bytes))))
  t.throws(() => tokenFrom(new Uint8Array(40).fill(255)), 'bytes that favour some letters are not used')
})

test('a token comes out of its Secret as it went in, with the keys Kubernetes gives them', async (t) => {
  const token = aToken({
    expiration: '2026-05-02T12:00:00Z',
    description: 'for the café’s Pis',
    groups: ['system:bootstrappers:a'],
  })
  const secret = encodeToken(token)
  t.match(secret, {
    metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
  })
  t.same(Object.keys(secret.data ?? {}).sort(), [
    'auth-extra-groups',
    'description',
    'expiration',
    'token-id',
    'token-secret',
    'usage-bootstrap-authentication',
    'usage-bootstrap-signing',
  ])
  t.same(decodeToken(secret), token)
  t.same(decodeToken(encodeToken(aToken())), aToken())
})

test('a Secret that contradicts itself holds no token', async (t) => {
  const secret = encodeToken(aToken())
  t.equal(decodeToken({ ...secret, type: 'Opaque' }), undefined)
  t.equal(decodeToken({ ...secret, metadata: { name: 'bootstrap-token-zzzzzz' } }), undefined, 'another id in its name')
  t.equal(decodeToken({ ...secret, data: { ...secret.data, 'token-secret': '!' } }), undefined, 'not base64')
  t.equal(decodeToken(encodeToken(aToken({ groups: ['system:masters'] }))), undefined, 'a group no token may give')
})

test('a token is judged by its secret, its use and its expiry, in this order', async (t) => {
  const shown = { id: 'abcdef', secret: '0123456789abcdef' }
  t.same(judgeToken(aToken({ groups: ['system:bootstrappers:a'] }), shown, now), {
    verdict: 'ok',
    user: 'system:bootstrap:abcdef',
    groups: ['system:bootstrappers', 'system:bootstrappers:a'],
  })
  t.same(judgeToken(undefined, shown, now), { verdict: 'unknown' })
  t.same(judgeToken(aToken(), { ...shown, secret: '0123456789abcdeg' }, now), { verdict: 'unknown' })
  t.same(judgeToken(aToken(), { ...shown, secret: '' }, now), { verdict: 'unknown' })
  t.same(judgeToken(aToken({ usages: ['signing'] }), shown, now), { verdict: 'unknown' })
  const old = aToken({ expiration: '2026-05-01T12:00:00Z' })
  t.same(judgeToken(old, shown, now), { verdict: 'expired', expiration: '2026-05-01T12:00:00Z' })
  t.equal(judgeToken(old, shown, now - 1).verdict, 'ok')
  t.same(
    judgeToken(old, { ...shown, secret: 'wrongwrongwrong1' }, now),
    { verdict: 'unknown' },
    'a guesser learns nothing',
  )
  t.same(judgeToken(aToken({ expiration: 'soon' }), shown, now), { verdict: 'unknown' })
})

test('a refusal states the expiry and the time of the controller', async (t) => {
  t.equal(
    tokenRefusal({ verdict: 'expired', expiration: '2026-05-01T11:00:00Z' }, 'abcdef', now),
    'bootstrap token abcdef expired at 2026-05-01T11:00:00Z; the time here is 2026-05-01T12:00:00Z',
  )
  t.match(tokenRefusal({ verdict: 'unknown' }, 'abcdef', now), 'not known here')
})

test('a group that a token may give has the required prefix and end', async (t) => {
  const groupOf = (group: string) => decodeToken(encodeToken(aToken({ groups: [group] })))?.groups
  for (const group of ['system:bootstrappers:a', 'system:bootstrappers:kubeadm:default-node-token']) {
    t.same(groupOf(group), [group])
  }
  for (const group of [
    'x:system:bootstrappers:a',
    'system:bootstrappers:a:',
    'system:bootstrappers:A',
    'system:bootstrappers:',
  ]) {
    t.equal(groupOf(group), undefined, group)
  }
})

test('a token has the uses that its Secret sets to true', async (t) => {
  const { data, ...secret } = encodeToken(aToken({ usages: ['signing'] }))
  t.same(decodeToken({ ...secret, data: data ?? {} })?.usages, ['signing'])
  const disabled = { ...data, 'usage-bootstrap-signing': btoa('false') }
  t.same(decodeToken({ ...secret, data: disabled })?.usages, [])
  t.same(judgeToken(decodeToken({ ...secret, data: disabled }), aToken(), now), { verdict: 'unknown' })
})

test('a Secret may have plain text, and no key for what its token lacks', async (t) => {
  const { data: _, ...secret } = encodeToken(aToken())
  const stringData = { 'token-id': 'abcdef', 'token-secret': '0123456789abcdef' }
  t.same(decodeToken({ ...secret, stringData }), { id: 'abcdef', secret: '0123456789abcdef', usages: [], groups: [] })
  t.notOk('auth-extra-groups' in (encodeToken(aToken()).data ?? {}))
  const latin = { 'token-id': btoa('abcdef'), 'token-secret': btoa('0123456789abcde\xe9') }
  t.equal(decodeToken({ ...secret, data: latin }), undefined, 'bytes that are not UTF-8')
})

test('a token needs 22 bytes below 252, each for one character', async (t) => {
  t.same(tokenFrom(new Uint8Array(22)), { id: 'aaaaaa', secret: 'a'.repeat(16) })
  t.throws(() => tokenFrom(new Uint8Array(21)), RangeError)
  t.equal(tokenFrom(Uint8Array.from([252, 251, ...new Uint8Array(21)])).id, '9aaaaa')
})

test('a text with more around a token is not a token, nor is the token of another id', async (t) => {
  for (const text of ['xabcdef.0123456789abcdef', 'abcdef.0123456789abcdefx'])
    t.equal(parseToken(text), undefined, text)
  t.same(judgeToken(aToken(), { ...aToken(), id: 'zzzzzz' }, now), { verdict: 'unknown' })
  t.same(judgeToken(aToken(), { ...aToken(), secret: '0123456789abcde' }, now), { verdict: 'unknown' })
  t.same(judgeToken(aToken(), { ...aToken(), secret: '0123456789abcdef0' }, now), { verdict: 'unknown' })
})

test('an accepted token needs no refusal', async (t) => {
  t.equal(tokenRefusal(judgeToken(aToken(), aToken(), now), 'abcdef', now), '')
})
