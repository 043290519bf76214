/**
 * A stranger behind a load balancer that all others use too: to the controller every client has its address. It is a HAProxy with the
 * configuration of docs/scale.md. `direct` are attacks at the controller's own ports, which the load balancer does not let through.
 */
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { type Test, test } from 'tap'
import { freePort } from '../../agent/testing/free-port.ts'
import { identityHeaderValue } from '../../broker-controller/apiserver/forwarding/remote-identity.ts'
import { identityHeader } from '../../broker-controller/apiserver/proxy/proxy-headers.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueServer } from '../../certs/issue.ts'
import { temporaryFolder } from '../support/fleet.ts'
import { type LoadBalancer, startLoadBalancer, whyNoLoadBalancer } from '../support/load-balancer.ts'
import { eventually } from '../support/wait.ts'
import { type AttackedFleet, attackedFleet, honest } from './support/attacked-fleet.ts'
import { type Address, addressOf, adminOf, apiAttacker, openPlain, openTls } from './support/clients.ts'
import { type Tenant, tenantOf } from './support/tenant.ts'

/** Its addresses. Those of honest clients are others. */
const strange = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5']
const secrets = '/api/v1/namespaces/kube-system/secrets'

type Fronted = {
  readonly fleet: AttackedFleet
  readonly balancer: LoadBalancer
  /** Through the load balancer. */
  readonly api: Address
  readonly mqtt: Address
  /** The end of TLS in the load balancer, which asks the controller by HTTPS. */
  readonly ends: Address
  readonly url: string
  readonly ca: string
}

/** The administrator, the nodes and the attacker reach the controller through the load balancer only. */
async function fronted(t: Test): Promise<Fronted> {
  let balancer: LoadBalancer | undefined
  let front = ''
  const endsPort = await freePort()
  const fleet = await attackedFleet(t, {}, async ({ apiUrl, mqttPort, kubeconfig }, address) => {
    const { host, port } = addressOf(apiUrl)
    const { ca = '' } = adminOf(await readFile(kubeconfig, 'utf8'))
    front = address
    balancer = await startLoadBalancer(t, {
      ...{ address, ca },
      api: { port, servers: [{ host, port }] },
      mqtt: { port: mqttPort, servers: [{ host, port: mqttPort }] },
      more: await endOfTls(t, { address, port: endsPort, server: { host, port }, ca }),
    })
  })
  if (balancer === undefined) throw new Error('There is no load balancer')
  const { url, ca = '' } = adminOf(await readFile(fleet.controller.kubeconfig, 'utf8'))
  const api = addressOf(url)
  if (api.host !== front) throw new Error(`The kubeconfig names ${url}, and not the load balancer at ${front}`)
  return {
    ...{ fleet, balancer, api, url, ca },
    mqtt: { host: front, port: fleet.mqtt.port },
    ends: { host: front, port: endsPort },
  }
}

type EndOfTls = { readonly address: string; readonly port: number; readonly server: Address; readonly ca: string }

/** `mode http`, with a certificate of its own. Its file is beside that of the fleet's authority. */
async function endOfTls(t: Test, { address, port, server, ca }: EndOfTls): Promise<string> {
  const folder = await temporaryFolder(t)
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  const { certificate, key } = issueServer(authority, { names: [address], nowMs: Date.now() })
  await writeFile(join(folder, 'own.pem'), `${certificate}${key}`)
  await writeFile(join(folder, 'fleet.crt'), ca)
  return [
    'frontend ends',
    '  mode http',
    `  bind ${address}:${port} ssl crt ${folder}/own.pem`,
    '  default_backend ends',
    'backend ends',
    '  mode http',
    `  server one ${server.host}:${server.port} ssl verify required ca-file ${folder}/fleet.crt source ${address}`,
  ].join('\n')
}

test('an attacker behind a load balancer', { skip: whyNoLoadBalancer(), timeout: 600_000 }, async (t) => {
  const front = await fronted(t)
  const { fleet, balancer } = front
  const tenant = await tenantOf(t, fleet, 'tenant')
  t.match(await balancer.states('bramble-api'), [{ status: 'UP', lastCode: 200 }])

  await t.test('is not taken for another client or user because of a header', (t) => claimsHeaders(t, front, tenant))
  await t.test('claims no address with the header of the PROXY protocol', (t) => claimsAddress(t, front))
  await t.test('takes neither the controller nor a new connection from others', async (t) => {
    await fleet.unnoticed(t, () => exhausts(t, front, tenant))
  })
  await t.test('holds no place with slow requests', (t) => fleet.unnoticed(t, () => isSlow(t, front)))
  await t.test('gets nothing where the load balancer ends TLS', (t) => throughHttp(t, front, tenant))
})

const master = { user: 'kubernetes-admin', groups: ['system:masters'] }

/** What proxies write of their clients, and what Kubernetes' aggregator, OAuth proxies and this program write of a user. */
const claims: { readonly [header: string]: string } = {
  'x-forwarded-for': '127.0.0.1, 10.9.8.7',
  'x-real-ip': '10.9.8.7',
  forwarded: 'for=10.9.8.7;proto=https',
  'x-forwarded-proto': 'https',
  'x-remote-user': master.user,
  'x-remote-group': 'system:masters',
  'x-remote-extra-scopes': 'all',
  'x-forwarded-user': master.user,
  'x-forwarded-client-cert': 'Subject="CN=kubernetes-admin,O=system:masters"',
  'ssl-client-cert': 'x',
  'x-ssl-client-s-dn': 'O=system:masters,CN=kubernetes-admin',
  [identityHeader]: identityHeaderValue(master),
}

async function claimsHeaders(t: Test, { fleet, url, ca, api }: Fronted, tenant: Tenant): Promise<void> {
  const stranger = apiAttacker(url, { ca }, { localAddress: '127.0.0.2' })
  const holder = apiAttacker(url, { ca }, { token: tenant.token, localAddress: '127.0.0.2' })
  t.teardown(async () => {
    stranger.close()
    holder.close()
  })
  const own = `/api/v1/namespaces/${tenant.namespace}/configmaps`
  for (const [name, value] of [...Object.entries(claims), ['', ''] as const]) {
    const headers = name === '' ? claims : { [name]: value }
    const { status, text } = await stranger.send('GET', secrets, { headers })
    t.equal(status, 403, name || 'all together')
    t.match(text, /system:anonymous/)
    t.equal((await holder.send('GET', secrets, { headers })).status, 403, `with a token: ${name}`)
    t.equal((await holder.send('GET', own, { headers })).status, 200)
  }
  const impersonation = { 'impersonate-user': master.user, 'impersonate-group': 'system:masters' }
  t.equal((await stranger.send('GET', secrets, { headers: impersonation })).status, 403)
  const made = await holder.sendJson('POST', own, { metadata: { name: 'written-as' } }, claims)
  t.equal(made.status, 201, made.text)
  const line = await eventually('the audit log has it', async () => {
    const log = await readFile(join(fleet.controller.dataDir, 'audit.log'), 'utf8')
    return log.split('\n').find((one) => one.includes('"written-as"'))
  })
  t.match(JSON.parse(line), {
    user: { username: `system:serviceaccount:${tenant.namespace}:robot` },
    sourceIPs: [api.host],
  })
}

/** HAProxy's documentation, "The PROXY protocol", 2.1 and 2.2. */
const addressClaims = [
  Buffer.from('PROXY TCP4 127.0.0.1 127.0.0.1 5 6443\r\n'),
  Buffer.from('PROXY UNKNOWN\r\n'),
  Buffer.concat([
    Buffer.from('\r\n\r\n\0\r\nQUIT\n'),
    Buffer.from([0x21, 0x11, 0, 12, 127, 0, 0, 1, 127, 0, 0, 1, 0, 5, 0x19, 0x2b]),
  ]),
  Buffer.concat([Buffer.from('\r\n\r\n\0\r\nQUIT\n'), Buffer.from([0x20, 0, 0, 0])]),
]

async function claimsAddress(t: Test, { fleet, api, mqtt, ca }: Fronted): Promise<void> {
  const hello = await clientHello()
  const places = { 'the API': api, MQTT: mqtt, 'the API, direct': fleet.api, 'MQTT, direct': fleet.mqtt }
  await fleet.unnoticed(t, async () => {
    for (const [name, place] of Object.entries(places)) {
      for (const claim of addressClaims) {
        const socket = await openPlain({ ...place, localAddress: '127.0.0.2' }, Buffer.concat([claim, hello]))
        let answer = Buffer.alloc(0)
        socket?.on('data', (piece: Buffer) => {
          answer = Buffer.concat([answer, piece])
        })
        const closed = () => socket === undefined || socket.destroyed || socket.readableEnded
        await eventually(`${name} closes the connection`, closed, { everyMs: 20 })
        // 0x15: an alert of TLS. 0x16 would be the handshake.
        t.ok(answer.length === 0 || answer[0] === 0x15, `${name}: no handshake begins`)
        socket?.destroy()
      }
    }
    // The same within TLS is not a request.
    for (const claim of addressClaims) {
      const socket = await openTls({ ...api, localAddress: '127.0.0.2' }, { ca })
      if (socket === undefined) throw new Error('No connection')
      const answers: Buffer[] = []
      socket.on('data', (piece: Buffer) => answers.push(piece))
      socket.write(Buffer.concat([claim, Buffer.from(`GET ${secrets} HTTP/1.1\r\nHost: x\r\n\r\n`)]))
      await eventually('it is closed', () => socket.destroyed || socket.readableEnded, { everyMs: 20 })
      const answer = Buffer.concat(answers).toString('latin1')
      t.ok(answer === '' || answer.startsWith('HTTP/1.1 400 '), answer.slice(0, 40))
      socket.destroy()
    }
  })
}

async function exhausts(t: Test, { fleet, balancer, api, mqtt, url, ca }: Fronted, tenant: Tenant): Promise<void> {
  const over = new AbortController()
  const hello = await clientHello()
  const attacks = strange.flatMap((localAddress) => [
    // Requests without credentials, on connections that are kept, up to what the load balancer allows of an address.
    ...Array.from({ length: 4 }, () => askedOnAndOn(url, ca, localAddress, over.signal)),
    // Connections that send nothing, and those that begin a handshake and do not end it.
    ...[Buffer.alloc(0), hello].map((bytes) => openedOnAndOn(api, localAddress, bytes, over.signal)),
    ...[Buffer.alloc(0), hello].map((bytes) => openedOnAndOn(mqtt, localAddress, bytes, over.signal)),
  ])
  const admin = adminOf(await readFile(fleet.controller.kubeconfig, 'utf8'))
  const own = `/api/v1/namespaces/${tenant.namespace}/configmaps`
  const seen = new Set<number | string>()
  const states = new Set<string>()
  for (let round = 0; round < 20; round++) {
    const clients = [apiAttacker(url, admin), apiAttacker(url, { ca }, { token: tenant.token })]
    for (const client of clients) {
      seen.add(await client.send('GET', own).then(({ status }) => status, String))
      client.close()
    }
    seen.add((await openStatus(url, ca)) ?? 'none')
    for (const { status } of await balancer.states('bramble-api')) states.add(status)
    await pause(250)
  }
  t.same([...seen], [200], 'clients that come new are served')
  // `UP 2/3` where a check of two seconds was late: it takes three to lose the server.
  for (const state of states) t.match(state, /^UP/, 'and so are health checks')
  const [agent] = fleet.agents
  await agent?.stop()
  const again = await fleet.startAgent(honest)
  await again.logged('Node status posted')
  await fleet.controller.nodesReady(honest)
  over.abort()
  const counts = await Promise.all(attacks)
  t.comment(`requests and connections: ${counts.join(', ')}`)
}

/** As the load balancer asks. */
async function openStatus(url: string, ca: string): Promise<number | undefined> {
  const client = apiAttacker(url, { ca })
  const answer = await client.send('GET', '/readyz').catch(() => undefined)
  client.close()
  return answer?.status
}

async function askedOnAndOn(url: string, ca: string, localAddress: string, over: AbortSignal): Promise<number> {
  const client = apiAttacker(url, { ca }, { localAddress })
  let sent = 0
  for (; !over.aborted; sent++) {
    // A load balancer that refuses a connection is asked again, not at once.
    await client.send('GET', '/version').catch(() => pause(50))
  }
  client.close()
  return sent
}

/** Keeps as many as it can, and opens others for those that are closed. */
async function openedOnAndOn(place: Address, localAddress: string, bytes: Buffer, over: AbortSignal): Promise<number> {
  const open = new Set<NonNullable<Awaited<ReturnType<typeof openPlain>>>>()
  let opened = 0
  while (!over.aborted) {
    const wanted = Array.from({ length: Math.max(0, 100 - open.size) }, () =>
      openPlain({ ...place, localAddress }, bytes),
    )
    for (const socket of await Promise.all(wanted)) {
      if (socket === undefined) continue
      opened += 1
      open.add(socket)
      socket.once('end', () => socket.destroy()).once('close', () => open.delete(socket))
    }
    await pause(250)
  }
  for (const socket of open) socket.destroy()
  return opened
}

async function isSlow(t: Test, { api, ca }: Fronted): Promise<void> {
  // Addresses of its own: the load balancer refuses those above for a while.
  const addresses = ['127.0.0.12', '127.0.0.13', '127.0.0.14']
  const opened = await Promise.all(
    addresses.flatMap((localAddress) => Array.from({ length: 60 }, () => openTls({ ...api, localAddress }, { ca }))),
  )
  const sockets = opened.filter((socket) => socket !== undefined)
  t.ok(sockets.length > 100, `${sockets.length} connections`)
  const body =
    'POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n'
  for (const [index, socket] of sockets.entries()) {
    socket.write(index % 2 === 0 ? 'GET /version HTTP/1.1\r\nHost: x\r\nX-Slow: ' : body)
  }
  const open = () => sockets.filter((socket) => !socket.destroyed && !socket.readableEnded).length
  await eventually(
    'all are closed',
    () => {
      for (const socket of sockets) if (socket.writable) socket.write('a')
      return open() === 0
    },
    { everyMs: 250 },
  )
}

async function throughHttp(t: Test, { ends, ca }: Fronted, tenant: Tenant): Promise<void> {
  const url = `https://${ends.host}:${ends.port}`
  const insecure = { ca, rejectUnauthorized: false }
  const stranger = apiAttacker(url, insecure, { localAddress: '127.0.0.2' })
  const holder = apiAttacker(url, insecure, { token: tenant.token })
  t.teardown(async () => {
    stranger.close()
    holder.close()
  })
  const own = `/api/v1/namespaces/${tenant.namespace}/configmaps`
  for (let round = 0; round < 5; round++) {
    t.equal((await holder.send('GET', own)).status, 200, 'a token passes')
    // The load balancer keeps the connection on which the token was accepted, and may use it for another client.
    t.equal((await stranger.send('GET', own)).status, 403, 'and is that of its own requests alone')
    t.equal((await stranger.send('GET', secrets, { headers: claims })).status, 403)
  }
  const smuggled = [
    `POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET ${own} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\n1\r\nZ\r\n0\r\n\r\n`,
    `GET /version HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 60\r\n\r\nGET ${own} HTTP/1.1\r\nHost: x\r\n\r\n`,
  ]
  for (const text of smuggled) {
    const socket = connectTls({ ...ends, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const answers: Buffer[] = []
    socket.on('error', () => undefined).on('data', (piece: Buffer) => answers.push(piece))
    socket.write(text)
    t.equal((await holder.send('GET', own)).status, 200, 'the answer to the token is that of its request')
    socket.destroy()
    t.notMatch(Buffer.concat(answers).toString('latin1'), /ConfigMapList/)
  }
}

/** The first message of a handshake. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const client = connectTls({ port, host: '127.0.0.1' }).on('error', () => undefined)
  const [socket] = await once(server, 'connection')
  const [hello] = await once(socket, 'data')
  client.destroy()
  socket.destroy()
  server.close()
  return hello
}
