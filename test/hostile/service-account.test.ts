/** The holder of a service account's token, which may write in its namespace, and forges what it may not have. */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import {
  endHeaders,
  endStream,
  frame,
  frameTypes,
  indexed,
  type RawHttp2,
  rawHttp2,
  requestBlock,
} from '../../broker-controller/testing/raw-http2.ts'
import { within } from '../../daemon/deadline.ts'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { attackedFleet, honest, settled } from './support/attacked-fleet.ts'
import { adminOf, apiAttacker, patient } from './support/clients.ts'

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
      'an id that is not a string': ownKey(part({ ...read(head), kid: { toString: 'x' } })),
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

  await t.test('is not led by a Service to the machines behind it', async (t) => {
    const secret = createServer((_, response) => void response.end('a-page-of-the-controller’s-machine'))
    secret.listen(0, '0.0.0.0')
    await once(secret, 'listening')
    t.teardown(() => secret.close())
    const { port } = secret.address() as AddressInfo
    const { send, sendJson } = patient(withToken(token))
    const services = '/api/v1/namespaces/default/services'
    const made = await sendJson('POST', services, { metadata: { name: 'own' }, spec: { ports: [{ port }] } })
    t.equal(made.status, 201)
    const endpoints = '/api/v1/namespaces/default/endpoints'
    const body = (ip: string) => ({ metadata: { name: 'own' }, subsets: [{ addresses: [{ ip }], ports: [{ port }] }] })
    t.equal((await sendJson('POST', endpoints, body('192.0.2.1'))).status, 403, 'an editor writes no Endpoints')
    await kubectl('create', 'role', 'addresses', '--verb=create,update', '--resource=endpoints,endpointslices')
    await kubectl('create', 'rolebinding', 'addresses', '--role=addresses', '--serviceaccount=default:robot')
    for (const ip of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', '169.254.169.254', 'fe80::1', '224.0.0.1']) {
      t.equal((await sendJson('POST', endpoints, body(ip))).status, 422, ip)
    }
    for (const ip of ['0.0.0.0', '::']) t.equal((await sendJson('POST', endpoints, body(ip))).status, 422, ip)
    const spec = { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] }
    t.equal((await sendJson('POST', services, { metadata: { name: 'name' }, spec })).status, 201)
    for (const name of [
      'own',
      'name',
      `http:own:${port}`,
      `https:name:${port}`,
      '..%2f..%2fnodes',
      `own:${port}%2f..`,
    ]) {
      for (const method of ['GET', 'POST']) {
        const { status, text } = await send(method, `${services}/${name}/proxy/`)
        t.ok(status >= 400, `${method} ${name}: ${status}`)
        t.notMatch(text, /a-page-of/, name)
      }
    }
    const elsewhere = '/api/v1/namespaces/kube-system/services/x/proxy/'
    t.equal((await send('GET', elsewhere)).status, 403, 'of another namespace')
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

  await t.test('costs no memory with watches that are begun and reset', (t) =>
    fleet.unnoticed(t, async () => {
      const baseMiB = await fleet.controllerMiB()
      for (let round = 0; round < 8; round++) {
        const client = await rawHttp2({ ...fleet.api, ca })
        for (let turn = 0; turn < 20 && !client.socket.destroyed; turn++) {
          await resetWatches(client, turn, `${maps}?watch=true`, token)
        }
        client.socket.destroy()
      }
      const mib = await settled(fleet, baseMiB + 100)
      t.comment(`controller: ${Math.round(baseMiB)} MiB before, ${Math.round(mib)} MiB after`)
      t.equal((await patient(withToken(token)).send('GET', maps)).status, 200)
    }),
  )
})

const cancel = Buffer.of(0, 0, 0, 8)
const longestAnswerMs = 30_000

/**
 * Twenty watches: reset in the packet that begins them, after a turn of the event loop, or when their answer has begun. Frame by
 * frame: the HTTP/2 client of Node.js 20 and 22 does not notice the end of a connection on which a write failed.
 */
async function resetWatches(client: RawHttp2, turn: number, path: string, token: string): Promise<void> {
  const block = Buffer.concat([requestBlock(path), indexed('authorization', `Bearer ${token}`)])
  const watches = Array.from({ length: 20 }, (_, i) => ({ id: 2 * (20 * turn + i) + 1, end: i % 3 }))
  const begin = (id: number) => frame(frameTypes.headers, endHeaders | endStream, id, block)
  const reset = (id: number) => frame(frameTypes.reset, 0, id, cancel)
  const thoseOf = (wanted: number) => watches.filter(({ end }) => end === wanted).map(({ id }) => id)
  await client.send(...watches.flatMap(({ id, end }) => (end === 0 ? [begin(id), reset(id)] : [begin(id)])))
  await setImmediate()
  await client.send(...thoseOf(1).map(reset))
  const isAnswered = (frames: RawHttp2['frames']) =>
    thoseOf(2).every((id) => frames.some(({ type, stream }) => type === frameTypes.headers && stream === id))
  const ended = Promise.race([client.until(isAnswered), client.closed]).catch(() => undefined) // closed for its resets
  await within(longestAnswerMs, 'Watches not answered, and their connection not closed', ended)
  await client.send(...thoseOf(2).map(reset))
}
