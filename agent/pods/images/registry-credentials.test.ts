import { test } from 'tap'
import type { Secret } from '../../../api/secret.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { credentialsFor } from './registry-credentials.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

function secret(name: string, auths: object, type = 'kubernetes.io/dockerconfigjson'): Secret {
  const isNew = type === 'kubernetes.io/dockerconfigjson'
  const data = { [isNew ? '.dockerconfigjson' : '.dockercfg']: base64(JSON.stringify(isNew ? { auths } : auths)) }
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, type, data }
}

function users(image: string, ...secrets: Secret[]) {
  const pod = aPod({ spec: { imagePullSecrets: secrets.map(({ metadata }) => ({ name: metadata.name ?? '' })) } })
  return credentialsFor(pod, image, { secrets }).credentials.map(({ username, password }) => `${username}:${password}`)
}

test('credentials are used for the registry they are for, the narrowest first', async (t) => {
  const lan = secret('lan', {
    'registry.lan:5000': { auth: base64('anna:se:cret') },
    'https://registry.lan:5000/team': { username: 'team', password: 'x' },
    '*.example.com': { username: 'wild', password: 'y' },
  })
  const hub = secret(
    'hub',
    { 'https://index.docker.io/v1/': { username: 'hub', password: 'z' } },
    'kubernetes.io/dockercfg',
  )
  t.same(users('registry.lan:5000/team/app:1', lan, hub), ['team:x', 'anna:se:cret'])
  t.same(users('registry.lan:5000/app', lan, hub), ['anna:se:cret'])
  t.same(users('eu.example.com/app@sha256:abc', lan, hub), ['wild:y'])
  t.same(users('a.b.example.com/app', lan), [])
  for (const image of ['busybox', 'busybox:1.36', 'team/app:1', 'docker.io/library/busybox']) {
    t.same(users(image, lan, hub), ['hub:z'], image)
  }
})

test('a secret that is not there is named, and not in the way', async (t) => {
  const pod = aPod({ spec: { imagePullSecrets: [{ name: 'none' }, { name: 'other' }] } })
  const other: Secret = { ...secret('other', {}), data: { '.dockerconfigjson': base64('{') } }
  t.same(credentialsFor(pod, 'busybox', { secrets: [other] }), { credentials: [], missing: ['none', 'other'] })
})

test('a registry is written in many ways', async (t) => {
  const usersOf = (registry: string, image: string) =>
    users(image, secret('one', { [registry]: { username: 'u', password: 'p' } }))
  for (const registry of ['http://reg.lan', 'https://reg.lan/v2/', 'reg.lan/v1', 'https://reg.lan/v2']) {
    t.same(usersOf(registry, 'reg.lan/app'), ['u:p'], registry)
  }
  t.same(usersOf('localhost', 'localhost/app'), ['u:p'])
  t.same(usersOf('reg.lan/v2/team', 'reg.lan/v2/team/app'), ['u:p'], 'a path that only looks like a version')
  t.same(usersOf('reg.lan/team', 'reg.lan/other/app'), [])
  t.same(usersOf('reg.lan', 'reg.lan:5000/app'), [], 'another port')
  t.same(usersOf('reg.lan:5000', 'reg.lan/app'), [])
  t.same(usersOf('regxlan', 'reg.lan/app'), [])
  t.same(usersOf('a.reg.lan', 'reg.lan/app'), [])
  t.same(usersOf('reg.lan/https://team', 'reg.lan/team/app'), [], 'a scheme stands at the start only')
})

test('a star stands for any characters between two dots', async (t) => {
  const opens = (host: string, asked: string) =>
    users(`${asked}/app`, secret('one', { [host]: { username: 'u', password: 'p' } })).length > 0
  for (const [host, asked] of [
    ['*.lan', 'reg.lan'],
    ['r*g.lan', 'reg.lan'],
    ['r*g.lan', 'rg.lan'],
    ['reg*.lan', 'reg.lan'],
    ['*g.lan', 'reg.lan'],
    ['**.lan', 'reg.lan'],
    ['r*e*g.lan', 'r-ee-g.lan'],
    ['*a*a*.lan', 'banana.lan'],
    ['reg.lan:*', 'reg.lan:5000'],
  ] as const)
    t.ok(opens(host, asked), `${host} opens ${asked}`)
  for (const [host, asked] of [
    ['*.lan', 'reg.lan:5000'],
    ['r*g.lan', 'reg-2.lan'],
    ['r*g.lan', 'a-reg.lan'],
    ['re*eg.lan', 'reg.lan'],
    ['re*e*g.lan', 'reg.lan'],
    ['a*a.lan', 'a.lan'],
    ['a*b*b.lan', 'ab.lan'],
    ['b*a*b.lan', 'ccabb.lan'],
  ] as const)
    t.notOk(opens(host, asked), `${host} does not open ${asked}`)
})

test('a hostile secret does not hold up the agent', async (t) => {
  const label = 'a'.repeat(63)
  const stars = secret('one', { [`${'*a'.repeat(31)}b.lan`]: { username: 'u', password: 'p' } })
  t.same(users(`${label}.lan/app`, stars), [])
  const padding = secret('one', { 'reg.lan': { auth: base64(`u:${'\0'.repeat(500_000)}p`) } })
  t.equal(users('reg.lan/app', padding)[0]?.length, 500_003)
})

test('user and password are what stands around the first colon, without padding', async (t) => {
  const usersOf = (auth: string) => users('reg.lan/app', secret('one', { 'reg.lan': { auth: base64(auth) } }))
  t.same(usersOf('anna:secret\0\0'), ['anna:secret'])
  t.same(usersOf('anna:se\0cret'), ['anna:se\0cret'])
  t.same(usersOf('anna:line\nbreak'), ['anna:line\nbreak'])
  t.same(usersOf(':secret'), [':secret'])
  t.same(usersOf('no colon'), [':'])
})

test('a secret without its key, or with entries that are not objects, gives what it can', async (t) => {
  const pod = aPod({ spec: { imagePullSecrets: [{ name: 'one' }] } })
  const opaque: Secret = { ...secret('one', {}), type: 'Opaque' }
  t.same(credentialsFor(pod, 'reg.lan/app', { secrets: [opaque] }).missing, ['one'])
  for (const entry of [null, 'text', 7, ['u']]) t.same(users('reg.lan/app', secret('one', { 'reg.lan': entry })), [':'])
  for (const text of ['null', '7', '"text"', '{"auths":"ab"}', '{"auths":null}', '{}']) {
    const odd: Secret = { ...secret('one', {}), data: { '.dockerconfigjson': base64(text) } }
    t.same(credentialsFor(pod, 'reg.lan/app', { secrets: [odd] }), { credentials: [], missing: [] }, text)
  }
  t.same(credentialsFor(aPod(), 'reg.lan/app', { secrets: [opaque] }), { credentials: [], missing: [] })
})

test('an identity token is passed on', async (t) => {
  const pod = aPod({ spec: { imagePullSecrets: [{ name: 'one' }] } })
  const token = secret('one', { 'reg.lan': { identitytoken: 'abc', username: 7 } })
  t.same(credentialsFor(pod, 'reg.lan/app', { secrets: [token] }).credentials, [
    { username: '', password: '', identityToken: 'abc' },
  ])
})
