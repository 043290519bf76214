/** The author of an admission webhook, which is called with the writes that its rules match: of one namespace, or of all. */
import { createServer } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { type AttackedFleet, attackedFleet, settled } from './support/attacked-fleet.ts'
import {
  allowed,
  answer,
  drip,
  forever,
  type HostileWebhook,
  hostileWebhook,
  patching,
  type WebhookAttack,
} from './support/hostile-webhook.ts'
import { tenantOf } from './support/tenant.ts'

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const start = 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n'
const mib = 2 ** 20

/** The call fails: with `Fail` the write is refused, with `Ignore` it takes place. */
const failures: { readonly [what: string]: WebhookAttack } = {
  'no answer': () => undefined,
  'an answer of a byte in 100 ms': (socket) => drip(socket, start),
  'headers of a byte in 100 ms': (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nX:'),
  'an endless body': (socket) => forever(socket, 'HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(1000)),
  'an endless body in chunks of a byte': (socket) => forever(socket, chunked, '1\r\nx\r\n'),
  'endless headers': (socket) => forever(socket, 'HTTP/1.1 200 OK\r\n', 'X: y\r\n'),
  'endless informational answers': (socket) => forever(socket, '', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
  'endless trailers': (socket) => forever(socket, `${chunked}0\r\n`, 'X: y\r\n'),
  'an endless extension of a chunk': (socket) => forever(socket, `${chunked}1;`, 'x'.repeat(1000)),
  'the end of the connection': (socket) => socket.destroy(),
  'bytes that are not HTTP': (socket) => forever(socket, '', '\x00\xff'),
  'another uid': (socket) => answer(socket, allowed('other')),
  'a page': (socket) => answer(socket, '<html></html>'),
  'three MiB of values': (socket, uid) => answer(socket, allowed(uid, { more: Array.from({ length: mib }, () => 1) })),
  'deep JSON': (socket) => answer(socket, '['.repeat(mib)),
  'an error of 3 MiB': (socket) => answer(socket, '\x7f'.repeat(3 * mib), ['HTTP/1.1 500 \x7f']),
}

const label = (at: number) => ({ op: 'add', path: `/metadata/labels/l${at}`, value: 'x' })
const wrap = [
  { op: 'add', path: '/b', value: {} },
  { op: 'move', from: '/data', path: '/b/data' },
  { op: 'move', from: '/b', path: '/data' },
]

/** The call succeeds; the controller answers at once, whatever the code is. */
const answers: { readonly [what: string]: WebhookAttack } = {
  'ten thousand patches': (socket, uid) => {
    const labels = { op: 'add', path: '/metadata/labels', value: {} }
    answer(socket, patching(uid, [labels, ...Array.from({ length: 9_999 }, (_, at) => label(at))]))
  },
  'a patch that nests ten thousand levels': (socket, uid) =>
    answer(socket, patching(uid, Array.from({ length: 3_300 }, () => wrap).flat())),
  'a patch that is not JSON': (socket, uid) =>
    answer(socket, allowed(uid, { patchType: 'JSONPatch', patch: 'e30=e30=!' })),
  'invalid metadata': (socket, uid) => answer(socket, patching(uid, [{ op: 'replace', path: '/metadata', value: 5 }])),
  'invalid labels': (socket, uid) =>
    answer(socket, patching(uid, [{ op: 'add', path: '/metadata/labels', value: [1, 'x'] }])),
  'another kind': (socket, uid) => answer(socket, patching(uid, [{ op: 'replace', path: '/kind', value: 'Secret' }])),
  'warnings of 3 million control characters': (socket, uid) =>
    answer(socket, allowed(uid, { warnings: ['\x7f'.repeat(2 * mib), '\x7f'.repeat(mib - 1000)] })),
  'a refusal that breaks lines and headers': (socket, uid) => {
    const status = { code: 200, message: `a\r\nX-Injected: b\x00${'c'.repeat(mib)}`, reason: 'x'.repeat(mib) }
    answer(socket, allowed(uid, { allowed: false, status }))
  },
}

test('an attacker whose admission webhook is called', async (t) => {
  const fleet = await attackedFleet(t)
  const hook = await hostileWebhook(t)
  const [tenant, neighbour] = [await tenantOf(t, fleet, 'tenant'), await tenantOf(t, fleet, 'neighbour')]
  const baseMiB = await fleet.controllerMiB()
  let made = 0
  const create = async (more: object = {}, namespace = 'tenant', { api } = tenant) => {
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `map-${made++}`, ...more }, data: { a: 'b' } }
    return api.sendJson('POST', `/api/v1/namespaces/${namespace}/configmaps`, map)
  }

  await t.test('does not hold up the controller with what it answers', (t) =>
    fleet.unnoticed(t, async () => {
      await configured(fleet, hook, { failurePolicy: 'Fail' })
      for (const [what, attack] of Object.entries({ ...failures, ...answers })) {
        hook.attack(attack)
        const { status, text, headers } = await create()
        t.ok(what in failures ? status === 500 : status < 600, `${what}: ${status} ${text.slice(0, 300)}`)
        if (status >= 400) t.ok(text.length < 10_000, `${text.length} characters`)
        t.notOk('x-injected' in headers)
      }
    }),
  )

  await t.test('that may fail stops no write', (t) =>
    fleet.unnoticed(t, async () => {
      await configured(fleet, hook, { failurePolicy: 'Ignore' })
      for (const [what, attack] of Object.entries(failures)) {
        hook.attack(attack)
        t.equal((await create()).status, 201, what)
      }
    }),
  )

  await t.test('leads the controller nowhere else', async (t) => {
    const other = createServer((_, response) => response.end())
    let connections = 0
    other.on('connection', () => connections++)
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    t.teardown(() => other.close())
    const address = other.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    await configured(fleet, hook, { failurePolicy: 'Fail' })
    const before = hook.requests
    for (const code of [301, 302, 303, 307, 308]) {
      for (const place of [`https://127.0.0.1:${port}/`, `http://169.254.169.254/`, `${fleet.controller.apiUrl}/api`]) {
        hook.attack((socket) => answer(socket, '', [`HTTP/1.1 ${code} Moved`, `Location: ${place}`]))
        t.match(await create(), { status: 500, text: /status code 30/ })
      }
    }
    t.equal(hook.requests - before, 15, 'nothing is called twice')
    t.equal(connections, 0)
  })

  await t.test('changes no field that the server sets', async (t) => {
    await configured(fleet, hook, { failurePolicy: 'Fail' })
    const metadata = { uid: 'forged', resourceVersion: '1', creationTimestamp: '2001-01-01T00:00:00Z', generation: 77 }
    const set = (more: object) =>
      Object.entries(more).map(([key, value]) => ({ op: 'add', path: `/metadata/${key}`, value }))
    hook.attack((socket, uid) => answer(socket, patching(uid, set({ ...metadata, resourceVersion: '' }))))
    const { status, text } = await create()
    t.equal(status, 201)
    const stored = JSON.parse(text).metadata
    for (const [key, value] of Object.entries(metadata)) t.not(stored[key], value, key)
    hook.attack((socket, uid) => answer(socket, patching(uid, set({ namespace: 'neighbour' }))))
    t.equal((await create()).status, 400)
    const { name } = stored
    for (const more of [{ name: 'other' }, { namespace: 'neighbour' }, { uid: 'forged' }]) {
      hook.attack((socket, uid) => answer(socket, patching(uid, set(more))))
      const path = `/api/v1/namespaces/tenant/configmaps/${name}`
      const changed = await tenant.api.sendJson('PATCH', path, { data: { c: String(made++) } }, merging)
      t.ok(changed.status >= 400 && changed.status < 500, `${JSON.stringify(more)}: ${changed.status} ${changed.text}`)
    }
  })

  await t.test('of one namespace takes no writes from another with a webhook of its own', async (t) => {
    const honest = await hostileWebhook(t)
    await configured(fleet, honest, { failurePolicy: 'Fail' }, 'neighbour')
    await configured(fleet, hook, { failurePolicy: 'Fail', timeoutSeconds: 30 })
    hook.attack(() => undefined)
    const before = hook.requests
    const over = Array.from({ length: 40 }, () => create())
    while (hook.requests - before < 10) await pause(10)
    for (let count = 0; count < 20; count++) t.equal((await create({}, 'neighbour', neighbour)).status, 201)
    await remove(fleet)
    hook.attack((socket, uid) => answer(socket, allowed(uid)))
    await Promise.all(over)
  })

  await t.test('of everything does not keep an administrator from removing it, nor a lease from its node', (t) =>
    fleet.unnoticed(t, async () => {
      hook.attack(() => undefined)
      await configured(fleet, hook, {
        failurePolicy: 'Fail',
        timeoutSeconds: 30,
        namespaceSelector: {},
        rules: everything,
      })
      const waiting = Array.from({ length: 60 }, () => create().catch(() => undefined))
      const before = hook.requests
      while (hook.requests === before) await pause(10)
      // Longer than the node renews its lease.
      await pause(25_000)
      await remove(fleet, t)
      hook.attack((socket, uid) => answer(socket, allowed(uid)))
      await Promise.all(waiting)
    }),
  )

  const now = await settled(fleet, baseMiB + 150)
  t.comment(`controller: ${Math.round(baseMiB)} MiB before, ${Math.round(now)} MiB after`)
})

const merging = { 'content-type': 'application/merge-patch+json' }
const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations'
const everything = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }]

/** In place of an earlier one. */
async function configured(
  fleet: AttackedFleet,
  hook: HostileWebhook,
  more: object,
  namespace = 'tenant',
): Promise<void> {
  await fleet.admin.send('DELETE', `${configurations}/${namespace}`)
  const webhook = {
    name: `${namespace}.example.com`,
    clientConfig: { url: `${hook.url}/`, caBundle: hook.caBundle },
    rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    timeoutSeconds: 1,
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    ...more,
  }
  const kind = 'MutatingWebhookConfiguration'
  const object = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: { name: namespace },
    webhooks: [webhook],
  }
  const { status, text } = await fleet.admin.sendJson('POST', configurations, object)
  if (status !== 201) throw new Error(text)
}

async function remove(fleet: AttackedFleet, t?: Test): Promise<void> {
  const { status } = await fleet.admin.send('DELETE', `${configurations}/tenant`)
  t?.equal(status, 200)
}
