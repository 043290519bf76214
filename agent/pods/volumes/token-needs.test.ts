import { test } from 'tap'
import type { Volume } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { renewalInMs, tokenId, tokenNeed, tokenNeeds } from './token-needs.ts'

const none = () => []
const hourMs = 3600_000
const need = { audience: '', expirationSeconds: 3600 }
const tokenOf = (claims: unknown) => `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`

test('a token is renewed after 80 % of its life, or after a day', async (t) => {
  const inMs = (token: string, random = 0) => renewalInMs(token, need, { mostMs: 24 * hourMs, random: () => random })
  t.equal(inMs(tokenOf({ iat: 1000, exp: 1600 })), 480_000)
  t.equal(inMs(tokenOf({ iat: 0, exp: 365 * 24 * 3600 })), 24 * hourMs, 'a year')
  t.equal(inMs(tokenOf({ iat: 0, exp: 30 * 3600 })), 24 * hourMs)
  t.equal(inMs(tokenOf({ iat: 0, exp: 29 * 3600 })), 23.2 * hourMs)
  t.equal(inMs(tokenOf({ iat: 1000, exp: 1600 }), 0.5), 456_000, 'up to a tenth earlier')
  t.equal(inMs(tokenOf({ iat: 0, exp: 10 })), 30_000, 'not without end')
  for (const odd of ['', 'a', 'a.b.c', tokenOf(null), tokenOf({ exp: 5 }), tokenOf({ iat: 5, exp: 5 })]) {
    t.equal(inMs(odd), 0.8 * hourMs, `what was requested, for ${odd}`)
  }
})

test('a pod needs the tokens of the volumes that its containers mount', async (t) => {
  const volume = (name: string, ...audiences: readonly string[]): Volume => ({
    name,
    projected: { sources: audiences.map((audience) => ({ serviceAccountToken: { path: audience, audience } })) },
  })
  const mounting = (name: string, ...volumes: readonly string[]) => ({
    name,
    volumeMounts: volumes.map((one) => ({ name: one, mountPath: `/${one}` })),
  })
  const [init, main] = [mounting('init', 'one'), mounting('main', 'two', 'same', 'plain')]
  const pod = aPod({
    containers: [main],
    spec: {
      initContainers: [init],
      volumes: [
        volume('one', 'a'),
        volume('two', 'b', 'c'),
        volume('same', 'b'),
        volume('unused', 'd'),
        { name: 'plain', emptyDir: {} },
      ],
    },
  })
  const audiences = (needs: ReturnType<typeof tokenNeeds>) => [...needs.values()].map(({ audience }) => audience)
  t.same(audiences(tokenNeeds(pod, none)), ['a', 'b', 'c'])
  t.same(audiences(tokenNeeds(pod, none, init)), ['a'])
  t.same(audiences(tokenNeeds(pod, none, main)), ['b', 'c'])
  t.same(audiences(tokenNeeds(aPod(), none)), [])
})

test('a token is identified by its audience and its life', async (t) => {
  t.same(tokenNeed({}), need)
  t.match(tokenId(need), /^[0-9a-f]{16}$/)
  const ids = [need, { ...need, audience: 'a' }, { ...need, expirationSeconds: 3607 }].map(tokenId)
  t.equal(new Set(ids).size, 3)
})
