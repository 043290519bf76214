/** A client without a certificate and without a token that reaches both ports of the controller. */
import { readFile } from 'node:fs/promises'
import { type Test, test } from 'tap'
import {
  endHeaders,
  endStream,
  frame,
  frameTypes,
  rawHttp2,
  requestBlock,
} from '../../broker-controller/testing/raw-http2.ts'
import { eventually } from '../support/wait.ts'
import { type AttackedFleet, attackedFleet, settled } from './support/attacked-fleet.ts'
import { type Address, adminOf, apiAttacker, openPlain, openTls, stillOpen } from './support/clients.ts'
import { tenantOf } from './support/tenant.ts'

test('an attacker without credentials', async (t) => {
  const fleet = await attackedFleet(t)
  const { ca = '' } = adminOf(await readFile(fleet.controller.kubeconfig, 'utf8'))
  const api = apiAttacker(fleet.controller.apiUrl, { ca })
  t.teardown(async () => api.close())
  const baseMiB = await fleet.controllerMiB()

  await t.test('reads nothing but health, version and how to join', async (t) => {
    for (const path of ['/healthz', '/livez', '/readyz', '/version'])
      t.equal((await api.send('GET', path)).status, 200, path)
    const clusterInfo = await api.send('GET', '/api/v1/namespaces/kube-public/configmaps/cluster-info')
    t.equal(clusterInfo.status, 200)
    t.notMatch(clusterInfo.text, /PRIVATE KEY|client-key|token/)
    for (const path of closedPaths) {
      const { status, text } = await api.send('GET', path)
      t.ok(status === 401 || status === 403, `${path}: ${status}`)
      t.notMatch(text, /pi-1|PRIVATE/)
    }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status } = await api.sendJson(method, '/api/v1/namespaces/default/pods/x', { kind: 'Pod' })
      t.ok(status === 401 || status === 403 || status === 405, `${method}: ${status}`)
    }
    const wrongToken = apiAttacker(fleet.controller.apiUrl, { ca }, { token: 'abcdef.0123456789abcdef' })
    t.equal((await wrongToken.send('GET', '/api/v1/nodes')).status, 401)
    wrongToken.close()
  })

  await t.test('gets nowhere with forged tokens and impersonation headers', (t) =>
    fleet.unnoticed(t, async () => {
      const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const claims = part({
        iss: 'https://kubernetes.default.svc.cluster.local',
        sub: 'system:serviceaccount:kube-system:default',
        aud: ['https://kubernetes.default.svc.cluster.local'],
        exp: 4_000_000_000,
      })
      const forged = [
        `${part({ alg: 'none' })}.${claims}.`,
        `${part({ alg: 'HS256', kid: 'x' })}.${claims}.${'A'.repeat(86)}`,
        `${part({ alg: 'ES256', kid: '../../ca.key' })}.${claims}.${'A'.repeat(86)}`,
        `${'a.'.repeat(10_000)}`,
        `${part({ alg: 'ES256' })}.${'A'.repeat(100_000)}.${'A'.repeat(86)}`,
      ]
      for (const token of forged) {
        const holder = apiAttacker(fleet.controller.apiUrl, { ca }, { token })
        t.equal((await holder.send('GET', '/api/v1/nodes')).status, 401, token.slice(0, 40))
        holder.close()
      }
      const as = { 'impersonate-user': 'kubernetes-admin', 'impersonate-group': 'system:masters' }
      t.equal((await api.send('GET', '/api/v1/nodes', { headers: as })).status, 403)
      t.equal((await api.send('GET', '/healthz', { headers: { 'impersonate-group': 'system:masters' } })).status, 400)
      const review = { spec: { user: 'a', resourceAttributes: { verb: 'get', resource: 'secrets' } } }
      for (const [group, kind] of [
        ['authorization', 'SubjectAccessReview'],
        ['authentication', 'TokenReview'],
      ] as const) {
        const path = `/apis/${group}.k8s.io/v1/${kind.toLowerCase()}s`
        t.equal((await api.sendJson('POST', path, { kind, ...review })).status, 403, kind)
      }
    }),
  )

  await t.test('cannot keep half-open TLS connections', (t) =>
    fleet.unnoticed(t, async () => {
      await Promise.all([halfOpen(t, 'MQTT', fleet.mqtt), halfOpen(t, 'API', fleet.api)])
    }),
  )

  await t.test('cannot keep connections that do not authenticate', (t) =>
    fleet.unnoticed(t, async () => {
      const sockets = await Promise.all(Array.from({ length: 200 }, () => openTls(fleet.mqtt, { ca })))
      await closedInTime(t, 'MQTT without a certificate', sockets)
    }),
  )

  await t.test('cannot close the stream of a client with a token, from its address or from others', (t) =>
    fleet.unnoticed(t, async () => {
      const tenant = await tenantOf(t, fleet, 'tenant')
      const watch = await tenant.stream('/api/v1/namespaces/tenant/configmaps?watch=1')
      t.equal(watch.status, 200)
      const addresses = Array.from({ length: 6 }, (_, at) => `127.0.0.${at + 1}`)
      for (let round = 0; round < 3; round++) {
        const opened = addresses.flatMap((localAddress) =>
          Array.from({ length: 190 }, () => openPlain({ ...fleet.api, localAddress })),
        )
        const silent = await Promise.all([...opened, ...Array.from({ length: 110 }, () => openPlain(fleet.api))])
        t.ok(silent.filter((socket) => socket !== undefined).length > 1_000, 'strangers connect')
        t.ok(watch.isOpen(), 'the watch goes on')
        for (const socket of silent) socket?.destroy()
      }
      const made = await tenant.api.sendJson('POST', '/api/v1/namespaces/tenant/configmaps', {
        metadata: { name: 'seen' },
      })
      t.equal(made.status, 201)
      await eventually('the watch shows what is created', () => watch.text().includes('"seen"'))
    }),
  )

  await t.test('cannot hold the API with slow requests', (t) =>
    fleet.unnoticed(t, async () => {
      const sockets = await Promise.all(Array.from({ length: 300 }, () => openTls(fleet.api, { ca })))
      for (const [index, socket] of sockets.entries()) {
        socket?.write(index % 2 === 0 ? 'GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nX-Slow: ' : slowBody)
      }
      const open = sockets.filter((socket) => socket !== undefined)
      for (let turn = 0; turn < 20; turn++) {
        for (const socket of open.filter(({ writable }) => writable)) socket.write('a')
        await new Promise((resolve) => setTimeout(resolve, 250))
      }
      for (const socket of open) socket.destroy()
    }),
  )

  await t.test('cannot make the controller parse large or deep bodies', (t) =>
    fleet.unnoticed(t, async () => {
      const bodies = [
        '['.repeat(1_000_000),
        `a: &a [${'*a,'.repeat(10_000)}]`,
        'x: '.repeat(200_000),
        '\0'.repeat(2_000_000),
      ]
      for (const body of bodies) {
        for (const type of ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']) {
          const answer = api.send('POST', '/api/v1/namespaces/default/pods', {
            body,
            headers: { 'content-type': type },
          })
          // A server that does not want the body may close the connection while it is sent.
          const status = await answer.then((one) => one.status).catch(() => 401)
          t.ok(status >= 400 && status < 500, `${type}: ${status}`)
        }
      }
    }),
  )

  // Health checks have no rate.
  for (const path of ['/api/v1/pods', '/readyz?verbose']) {
    await t.test(`cannot occupy it with requests of ${path}`, (t) =>
      fleet.unnoticed(t, async () => {
        const end = performance.now() + 5_000
        let sent = 0
        await Promise.all(
          Array.from({ length: 64 }, async () => {
            for (; performance.now() < end; sent++) await api.send('GET', path).catch(() => undefined)
          }),
        )
        t.comment(`${sent} requests`)
      }),
    )
  }

  await t.test('cannot occupy it with frames of HTTP/2', (t) =>
    fleet.unnoticed(t, async () => {
      const end = performance.now() + 10_000
      const attacks = [...http2Floods, ...http2Floods]
      const connections = await Promise.all(
        attacks.map(async (flood) => {
          let connections = 0
          for (; performance.now() < end; connections++) {
            const client = await rawHttp2({ ...fleet.api, ca, settings: [[4, 0]] }).catch(() => undefined)
            if (client === undefined) continue
            for (let id = 1; !client.socket.destroyed && performance.now() < end; id += 100) {
              await client.send(...Array.from({ length: 50 }, (_, i) => flood(id + 2 * i)))
            }
            client.socket.destroy()
          }
          return connections
        }),
      )
      t.comment(`connections: ${connections.join(', ')}`)
    }),
  )

  t.comment(
    `controller: ${Math.round(baseMiB)} MiB before, ${Math.round(await settled(fleet, baseMiB + 150))} MiB after`,
  )
  await briefLog(t, fleet)
})

const closedPaths = [
  '/metrics',
  '/metrics/fleet',
  '/api/v1/nodes',
  '/api/v1/pods',
  '/api/v1/namespaces/kube-system/secrets',
  '/api/v1/namespaces/kube-public/configmaps',
  '/api/v1/namespaces/kube-system/configmaps/bramble-revoked-certificates',
  '/apis/certificates.k8s.io/v1/certificatesigningrequests',
  '/apis/coordination.k8s.io/v1/leases',
  '/apis/metrics.k8s.io/v1beta1/nodes',
]

const { headers, reset, ping, settings, continuation } = frameTypes
const cancel = Buffer.of(0, 0, 0, 8)

/** Each is sent again and again, with the number of the next stream. */
const http2Floods: readonly ((id: number) => Buffer)[] = [
  (id) =>
    Buffer.concat([
      frame(headers, endHeaders | endStream, id, requestBlock('/api/v1/pods')),
      frame(reset, 0, id, cancel),
    ]),
  (id) => frame(headers, endHeaders | endStream, id, requestBlock('/version')),
  (id) => frame(headers, endHeaders | endStream, id, requestBlock('/readyz')),
  () => frame(ping, 0, 0, Buffer.alloc(8)),
  () => frame(settings, 0, 0, Buffer.of(0, 4, 0, 1, 0, 0)),
  (id) => frame(id === 1 ? headers : continuation, 0, 1, requestBlock('/version')),
]

const slowBody =
  'POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n'

/** The first bytes of a ClientHello of TLS, and bytes that are not one. */
const beginnings = [
  Buffer.from('1603010200010001fc0303', 'hex'),
  Buffer.from('GET / HTTP/1.1\r\n\r\n'),
  Buffer.alloc(0),
]

async function halfOpen(t: Test, name: string, address: Address): Promise<void> {
  const hold = async (bytes: Buffer) => {
    const sockets = await Promise.all(Array.from({ length: 200 }, () => openPlain(address, bytes)))
    await closedInTime(t, `${name}, ${bytes.length} bytes`, sockets)
  }
  await Promise.all(beginnings.map(hold))
}

/** The deadline of a handshake is ten seconds. */
async function closedInTime(t: Test, name: string, sockets: Awaited<ReturnType<typeof openPlain>>[]): Promise<void> {
  const open = () => stillOpen(sockets)
  await eventually(`${name}: all are closed`, () => open() === 0, { withinMs: 60_000 }).catch(() => undefined)
  t.equal(open(), 0, `${name}: none of ${sockets.length} connections is left`)
  for (const socket of sockets) socket?.destroy()
}

/** Thousands of attempts are not thousands of lines. */
async function briefLog(t: Test, fleet: AttackedFleet): Promise<void> {
  const length = fleet.logLength()
  t.ok(length < 200_000, `the controller logged ${length} characters`)
}
