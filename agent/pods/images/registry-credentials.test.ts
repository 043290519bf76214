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
