/** The holder of a service account's token, which may write in its namespace, and forges what it may not have. */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { attackedFleet, honest } from './support/attacked-fleet.ts'
import { adminOf, apiAttacker } from './support/clients.ts'

test('an attacker with the token of a service account', async (t) => {
  const fleet = await attackedFleet(t)
  const { kubectl, kubectlWith, apiUrl } = fleet.controller
  const { ca = '' } = adminOf(await readFile(fleet.controller.kubeconfig, 'utf8'))
  await kubectl('create', 'serviceaccount', 'robot')
  await kubectl('create', 'rolebinding', 'robot', '--clusterrole=edit', '--serviceaccount=default:robot')
  const created = async (...args: readonly string[]) => (await kubectl('create', 'token', 'robot', ...args)).trim()
  const token = await created()
  const withToken = (token: string) => {
    const api = apiAttacker(apiUrl, { ca }, { token })
    t.teardown(async () => api.close())
    return api
  }
  const maps = '/api/v1/namespaces/default/configmaps'
  const statusOf = async (token: string) => (await withToken(token).send('GET', maps)).status
  t.equal(await statusOf(token), 200)

  await t.test('forges no token', async (t) => {
    const [head = '', body = '', signature = ''] = token.split('.')
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const read = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString())
    const claims = read(body)
    const asOther = part({ ...claims, sub: 'system:serviceaccount:kube-system:default' })
    const longer = part({ ...claims, exp: claims.exp + 1e6 })
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const ownKey = (header: string) => {
      const bytes = Buffer.from(`${header}.${body}`)
      return `${header}.${body}.${sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
    }
    const { text: keys } = await fleet.admin.send('GET', '/openid/v1/jwks')
    const hmac = part({ ...read(head), alg: 'HS256' })
    const forged = {
      'another account': `${head}.${asOther}.${signature}`,
      'a longer time': `${head}.${longer}.${signature}`,
      'no algorithm': `${part({ ...read(head), alg: 'none' })}.${body}.`,
      'no signature': `${head}.${body}.`,
      'the public key as a secret': `${hmac}.${body}.${createHmac('sha256', keys).update(`${hmac}.${body}`).digest('base64url')}`,
      'the key of another fleet': ownKey(head),
      'the key of another fleet under another id': ownKey(part({ ...read(head), kid: 'other' })),
      'more parts': `${token}.${signature}`,
      'an id that is no text': ownKey(part({ ...read(head), kid: { toString: 'x' } })),
      'no JSON': `${head}.${Buffer.from('{').toString('base64url')}.${signature}`,
      'very long': `${head}.${'a'.repeat(12_000)}.${signature}`,
    }
    for (const [what, one] of Object.entries(forged)) t.ok([401, 431].includes(await statusOf(one)), what)
    t.equal(await statusOf(token), 200, 'its own is as good as before')
  })

  await t.test('has no use of a token for others, or of what is gone', async (t) => {
    t.equal(await statusOf(await created('--audience=https://vault.example.com')), 401, 'another audience')
    await kubectlWith(
      podManifest({ name: 'bound', image, spec: { nodeName: honest, serviceAccountName: 'robot' } }),
      'apply',
      '-f',
      '-',
    )
    const bound = await created('--bound-object-kind=Pod', '--bound-object-name=bound')
    t.equal(await statusOf(bound), 200)
    await kubectl('delete', 'pod', 'bound', '--grace-period=0', '--force')
    t.equal(await statusOf(bound), 401, 'the pod is deleted')
    await kubectl('create', 'serviceaccount', 'short')
    const short = (await kubectl('create', 'token', 'short')).trim()
    await kubectl('delete', 'serviceaccount', 'short')
    await kubectl('create', 'serviceaccount', 'short')
    t.equal(await statusOf(short), 401, 'another account has its name')
  })

  await t.test('gets no more than a quota by asking for all at once', (t) =>
    fleet.unnoticed(t, async () => {
      await kubectl('create', 'quota', 'few', '--hard=count/configmaps=5,count/secrets=0')
      const api = withToken(token)
      const before = JSON.parse((await api.send('GET', maps)).text).items.length
      const attempts = Array.from({ length: 60 }, (_, i) =>
        api.sendJson('POST', maps, { metadata: { name: `flood-${i}` }, data: { k: 'v' } }),
      )
      const codes = (await Promise.all(attempts)).map(({ status }) => status)
      const left = JSON.parse((await api.send('GET', maps)).text).items.length
      t.equal(left, 5, `${before} before, ${codes.filter((code) => code === 201).length} created`)
      t.ok(
        codes.every((code) => [201, 403, 429].includes(code)),
        [...new Set(codes)].join(),
      )
      const secret = { metadata: { name: 's' }, stringData: { k: 'v' } }
      t.equal((await api.sendJson('POST', '/api/v1/namespaces/default/secrets', secret)).status, 403)
      const quota = '/api/v1/namespaces/default/resourcequotas/few'
      const patch = { 'content-type': 'application/merge-patch+json' }
      for (const path of [quota, `${quota}/status`]) {
        const { status } = await api.sendJson('PATCH', path, { spec: { hard: {} }, status: { used: {} } }, patch)
        t.equal(status, 403, path)
      }
    }),
  )
})
