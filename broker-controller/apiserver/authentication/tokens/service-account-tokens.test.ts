import { createPublicKey, generateKeyPairSync, type JsonWebKey, verify } from 'node:crypto'
import { test } from 'tap'
import { isApiError } from '../../../../api/api-error.ts'
import { aNode, aPod } from '../../../../api/testing/builders.ts'
import { newKey } from '../../../../certs/authority.ts'
import { fakeClock } from '../../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../../store/memory-store.ts'
import type { IssuedFor } from '../../handlers/token-issuer.ts'
import {
  expiryOfToken,
  longestToken,
  rememberedClaims,
  type SigningKey,
  signedToken,
  signingKey,
  verifiedClaims,
} from './json-web-token.ts'
import { keySet, serviceAccountTokens, tokenIssuer } from './service-account-tokens.ts'

const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5)
const key = signingKey(newKey())

async function world() {
  const store = memoryStore({ clock: fakeClock() })
  const metadata = { name: 'ci', namespace: 'shop' }
  const account = await store.create('serviceaccounts', { apiVersion: 'v1', kind: 'ServiceAccount', metadata })
  const keys: { signing: SigningKey; others: SigningKey[] } = { signing: key, others: [] }
  const tokens = serviceAccountTokens(() => keys, store)
  const { uid } = account.metadata
  const issue = (more: Partial<IssuedFor> = {}) =>
    tokens.issue(
      {
        namespace: 'shop',
        account: { name: 'ci', uid },
        audiences: [tokenIssuer],
        expirationSeconds: 600,
        bound: {},
        ...more,
      },
      nowMs,
    )
  const refusal = async (token: string, atMs = nowMs, audiences: readonly string[] = []) => {
    try {
      await tokens.identify(token, audiences, atMs)
      return undefined
    } catch (error) {
      if (isApiError(error, 'Unauthorized')) return error.message
      throw error
    }
  }
  return { store, account, tokens, keys, issue, refusal }
}

test('a token is good for its service account, its audience and its time', async (t) => {
  const { tokens, account, issue, refusal } = await world()
  const token = issue()
  t.match(await tokens.identify(token, [], nowMs), {
    identity: {
      user: 'system:serviceaccount:shop:ci',
      uid: account.metadata.uid,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [/^JTI=/] },
    },
    audiences: [tokenIssuer],
  })
  t.equal(await refusal(token, nowMs + 599_999), undefined)
  t.equal(await refusal(token, nowMs + 600_000), 'service account token has expired')
  t.equal(await refusal(token, nowMs - 61_000), 'service account token is not valid yet')
  const vault = issue({ audiences: ['vault', 'other'] })
  t.match(await refusal(vault), /^token audiences \["vault","other"\] is invalid for the target audiences/)
  t.same((await tokens.identify(vault, ['vault', 'x'], nowMs))?.audiences, ['vault'])
  t.equal(await tokens.identify('abcdef.0123456789abcdef', [], nowMs), undefined, 'a bootstrap token')
})

test('a token may be valid for longer than it was requested for', async (t) => {
  const { issue, refusal } = await world()
  const token = issue({ extendedSeconds: 3600 })
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  t.match(claims, { exp: nowMs / 1000 + 3600, 'kubernetes.io': { warnafter: nowMs / 1000 + 600 } })
  t.equal(await refusal(token, nowMs + 3_599_999), undefined)
  t.equal(await refusal(token, nowMs + 3_600_000), 'service account token has expired')
  const plain = JSON.parse(Buffer.from(issue().split('.')[1] ?? '', 'base64url').toString())
  t.notOk('warnafter' in plain['kubernetes.io'])
})

test('a token ends with its service account, also when there is another of its name', async (t) => {
  const { store, issue, refusal } = await world()
  const token = issue()
  await store.delete('serviceaccounts', { namespace: 'shop', name: 'ci' })
  t.equal(await refusal(token), 'serviceaccounts "ci" not found')
  await store.create('serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'ci', namespace: 'shop' },
  })
  t.match(await refusal(token), /^service account UID \(.*\) does not match claim/)
})

test('a bound token ends with its object', async (t) => {
  const { store, tokens, issue, refusal } = await world()
  const pod = await store.create('pods', { ...aPod({ name: 'web' }), metadata: { name: 'web', namespace: 'shop' } })
  const node = await store.create('nodes', { ...aNode(), metadata: { name: 'pi' } })
  const secret = await store.create('secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'shop' },
  })
  const to = ({ metadata: { name, uid } }: { metadata: { name: string; uid: string } }) => ({ name, uid })
  const onPod = issue({ bound: { pod: to(pod), node: to(node) } })
  const [onNode, onSecret] = [issue({ bound: { node: to(node) } }), issue({ bound: { secret: to(secret) } })]
  t.match((await tokens.identify(onPod, [], nowMs))?.identity.extra, {
    'authentication.kubernetes.io/pod-name': ['web'],
    'authentication.kubernetes.io/node-name': ['pi'],
  })
  for (const token of [onPod, onNode, onSecret]) t.equal(await refusal(token), undefined)
  await store.delete('nodes', { namespace: '', name: 'pi' })
  await store.delete('secrets', { namespace: 'shop', name: 's' })
  const gone = 'service account token has been invalidated'
  t.equal(await refusal(onNode), gone)
  t.equal(await refusal(onSecret), gone)
  t.equal(await refusal(onPod), undefined, 'the node of a pod is only noted')
  const deletionTimestamp = new Date(nowMs).toISOString()
  await store.update('pods', { ...pod, metadata: { ...pod.metadata, deletionTimestamp } })
  t.equal(await refusal(onPod, nowMs + 59_000), undefined, 'a pod that is ending still has its token')
  t.equal(await refusal(onPod, nowMs + 61_000), gone)
  await store.delete('pods', { namespace: 'shop', name: 'web' })
  t.equal(await refusal(onPod), gone)
})

test('forged and malformed tokens are refused', async (t) => {
  const { tokens, issue, refusal } = await world()
  const [header = '', claims = '', signature = ''] = issue().split('.')
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const other = signingKey(newKey())
  const mine = { ...JSON.parse(Buffer.from(claims, 'base64url').toString()), sub: 'system:serviceaccount:shop:admin' }
  for (const [name, token] of Object.entries({
    unsigned: `${encoded({ alg: 'none' })}.${claims}.`,
    'unsigned, with the key named': `${encoded({ alg: 'none', kid: key.id })}.${claims}.${signature}`,
    'another algorithm': `${encoded({ alg: 'HS256', kid: key.id })}.${claims}.${signature}`,
    'changed claims': `${header}.${encoded(mine)}.${signature}`,
    'another key': signedToken({ ...other, id: key.id }, mine),
    'an unknown key': signedToken(other, mine),
    'a critical extension': `${encoded({ alg: 'ES256', kid: key.id, crit: ['x'] })}.${claims}.${signature}`,
    'claims that are not an object': signedToken(key, []),
    'claims of another issuer': signedToken(key, { ...mine, iss: 'https://example.com' }),
    'claims without a service account': signedToken(key, { iss: tokenIssuer, aud: [tokenIssuer] }),
    'no JSON': `${header}.e30x.${signature}`,
    'too long': `${header}.${'A'.repeat(longestToken)}.${signature}`,
    'four parts': `${header}.${claims}.${signature}.${signature}`,
    'two dots': '..',
  })) {
    t.equal(await refusal(token), 'Unauthorized', name)
  }
  t.equal(await tokens.identify('no token', [], nowMs), undefined)
  t.equal(verifiedClaims(`${header}.${claims}.${signature.slice(1)}A`, [key]), undefined)
})

test('the key that was before stays good while it is there', async (t) => {
  const { keys, issue, refusal } = await world()
  const token = issue()
  keys.signing = signingKey(newKey())
  keys.others = [key]
  t.equal(await refusal(token), undefined)
  keys.others = []
  t.equal(await refusal(token), 'Unauthorized')
})

test('others check a token with the published key', async (t) => {
  const { tokens, issue } = await world()
  const [header = '', claims = '', signature = ''] = issue().split('.')
  const { keys } = keySet(tokens.publicKeys()) as { keys: (JsonWebKey & { kid: string })[] }
  t.match(keys, [{ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig', kid: key.id }])
  t.notOk('d' in (keys[0] ?? {}), 'no private part')
  const publicKey = createPublicKey({ key: keys[0] ?? {}, format: 'jwk' })
  const options = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
  t.ok(verify('sha256', Buffer.from(`${header}.${claims}`), options, Buffer.from(signature, 'base64url')))
})

test('a key of another kind is refused', async (t) => {
  t.throws(() => signingKey(generateKeyPairSync('ed25519').privateKey), TypeError)
})

test('a signature is verified once, as long as the keys are the same', async (t) => {
  const other = signingKey(newKey())
  let verified = 0
  const counted = {
    id: key.id,
    get publicKey() {
      verified += 1
      return key.publicKey
    },
  }
  const claimsOf = rememberedClaims(2)
  const tokens = [1, 2, 3].map((exp) => signedToken(key, { exp }))
  const [first = '', second = '', third = ''] = tokens
  const read = (token: string, keys = [counted]) => [claimsOf(token, keys)?.['exp'], verified]
  t.same(read(first), [1, 1])
  t.same(read(first), [1, 1])
  // Not the last character: some of its bits are not read.
  t.same(read(first.replace(/\.([^.])([^.]*)$/, (_, one, rest) => `.${one === 'A' ? 'B' : 'A'}${rest}`))[0], undefined)
  t.equal(claimsOf(signedToken({ ...other, id: key.id }, { exp: 9 }), [counted]), undefined, 'of another key')
  verified = 0
  t.same(read(second), [2, 1])
  t.same(read(third), [3, 2], 'the first is forgotten')
  t.same(read(first), [1, 3])
  t.equal(claimsOf(first, [other]), undefined, 'its key is gone')
  t.same(read(first), [1, 4])
  t.equal(claimsOf('x'.repeat(longestToken + 1), [counted]), undefined)
})

test('the end of a token is read from it', async (t) => {
  t.equal(expiryOfToken(signedToken(key, { exp: 12 })), 12_000)
  for (const text of ['abcdef.0123456789abcdef', 'a', '', 'a.e30.b']) t.equal(expiryOfToken(text), undefined)
})
