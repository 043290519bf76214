/** An extension server: the APIService of its group is made by an administrator, and what it answers is its own. */

import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { startExtensionServer, wardle, wardlePath } from '../../broker-controller/testing/extension-server.ts'
import { reachableAddress as address, wardleName, wardleObjects } from '../support/extension-service.ts'
import { temporaryFolder } from '../support/fleet.ts'
import { eventually } from '../support/wait.ts'
import { type AttackedFleet, attackedFleet, settled } from './support/attacked-fleet.ts'
import { drip, forever } from './support/hostile-webhook.ts'
import { tenantOf } from './support/tenant.ts'

const mib = 2 ** 20
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const json = (body: string) =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

/** What it does with a request. */
const attacks: { readonly [what: string]: (socket: Socket) => unknown } = {
  'no answer': () => undefined,
  'an answer of a byte in 100 ms': (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n'),
  'an endless body': (socket) => forever(socket, 'HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(1000)),
  'an endless body in chunks of a byte': (socket) => forever(socket, chunked, '1\r\nx\r\n'),
  'endless headers': (socket) => forever(socket, 'HTTP/1.1 200 OK\r\n', 'X: y\r\n'),
  'endless informational answers': (socket) => forever(socket, '', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
  'the end of the connection': (socket) => socket.destroy(),
  'bytes that are not HTTP': (socket) => forever(socket, '', '\x00\xff'),
  'an upgrade that was not requested': (socket) =>
    socket.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
  'a redirection': (socket) =>
    socket.write('HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n'),
  'ten MiB of values': (socket) => socket.end(json(`[${'1,'.repeat(5 * mib)}1]`)),
  'deep JSON': (socket) => socket.end(json('['.repeat(mib))),
  'a discovery of ten thousand kinds': (socket) => socket.end(json(JSON.stringify(manyKinds))),
  'a discovery of odd values': (socket) =>
    socket.end(json('{"items":[{"metadata":{"name":7},"versions":{"__proto__":[]}}]}')),
}

const kindsField = 'x-kubernetes-group-version-kind'
const described = (definitions: string, path = `${wardlePath}/flunders`) =>
  json(`{"swagger":"2.0","paths":{"${path}":{"get":{"responses":{}}}},"definitions":{${definitions}}}`)

/** Descriptions that are OpenAPI 2.0. */
const descriptions: typeof attacks = {
  'a description with a million values': (socket) => socket.end(described(`"a":{"enum":[${'1,'.repeat(mib)}1]}`)),
  'a description of 1.9 MB': (socket) => socket.end(described(`"a":{"description":"${'x'.repeat(1.9 * mib)}"}`)),
  'a description of kinds of the fleet': (socket) =>
    socket.end(
      described(
        `"evil.Deployment":{"type":"object","${kindsField}":[{"group":"apps","version":"v1","kind":"Deployment"}]}`,
        '/apis/apps/v1/namespaces/{namespace}/deployments',
      ),
    ),
  'a description of odd values': (socket) =>
    socket.end(described('"__proto__":{"type":7},"a":{"properties":{"b":{"$ref":"#/definitions/none"}},"type":"x"}')),
}

const manyKinds = {
  kind: 'APIGroupDiscoveryList',
  items: [
    {
      metadata: { name: wardle.group },
      versions: [
        {
          version: wardle.version,
          resources: Array.from({ length: 10_000 }, (_, index) => ({
            ...{ resource: `r${index}/../pods`, scope: 'Namespaced', verbs: ['delete', 'list', 'deletecollection'] },
            shortNames: ['po', 'pods'],
          })),
        },
      ],
    },
  ],
}

test('an attacker whose extension server is asked', { skip: address === undefined && 'no address' }, async (t) => {
  const fleet = await attackedFleet(t)
  await tenantOf(t, fleet, 'tenant')
  let attack: ((socket: Socket) => unknown) | undefined
  /** The one path where it attacks; undefined: all. */
  let attackedPath: string | undefined
  const server = await startExtensionServer({
    folder: join(await temporaryFolder(t), 'server'),
    names: ['api.wardle.svc'],
    proxyAuthority: await proxyAuthorityOf(fleet),
    address: address ?? '',
    respond({ socket, url }) {
      socket.on('error', () => undefined)
      if (attack === undefined || (attackedPath !== undefined && url !== attackedPath)) return false
      attack(socket)
      return true
    },
  })
  t.teardown(server.stop)
  const { kubectlWith } = fleet.controller
  for (const object of wardleObjects(server)) await kubectlWith(JSON.stringify(object), 'apply', '-f', '-')
  await isAvailable(fleet, 'True')
  const baseMiB = await fleet.controllerMiB()

  await t.test('holds up nothing but its own group with what it answers', (t) =>
    fleet.unnoticed(t, async () => {
      for (const [what, next] of Object.entries(attacks)) {
        attack = next
        const path = `${wardlePath}/namespaces/default/flunders`
        const over = Array.from({ length: 20 }, () =>
          fleet.admin.send('GET', path).then(
            ({ text }) => t.ok(text.length < 40 * mib, what),
            () => undefined,
          ),
        )
        for (const own of ['/apis', '/api/v1/namespaces/tenant/configmaps', '/openapi/v3', '/openapi/v2']) {
          const { status, text } = await fleet.admin.send('GET', own)
          t.equal(status, 200, `${what}: ${own}`)
          if (own === '/apis') t.ok(text.length < mib, `${what}: ${text.length} bytes of discovery`)
        }
        await pause(1_000)
        attack = undefined
        void Promise.all(over)
      }
    }),
  )

  await t.test('adds nothing to the description of the fleet that clients cannot read', (t) =>
    fleet.unnoticed(t, async () => {
      attackedPath = '/openapi/v2'
      for (const [what, next] of Object.entries({ ...attacks, ...descriptions })) {
        attack = next
        const { length } = server.seen
        // Registered again, it is asked at once.
        await fleet.controller.kubectl('delete', 'apiservice', wardleName)
        for (const object of wardleObjects(server)) await kubectlWith(JSON.stringify(object), 'apply', '-f', '-')
        await eventually(`it is asked: ${what}`, async () =>
          server.seen.slice(length).some(({ url }) => url === attackedPath),
        )
        const { status, text } = await fleet.admin.send('GET', '/openapi/v2')
        t.equal(status, 200, what)
        const { paths, definitions } = JSON.parse(text)
        t.ok(paths['/api/v1/pods'], what)
        t.notOk(definitions['evil.Deployment']?.[kindsField], what)
      }
      attack = undefined
      attackedPath = undefined
    }),
  )

  await t.test('keeps the namespaces of others only until it is removed', (t) =>
    fleet.unnoticed(t, async () => {
      attack = () => undefined
      await isAvailable(fleet, 'False')
      const { kubectl } = fleet.controller
      await kubectl('-n', 'tenant', 'create', 'configmap', 'mine')
      for (let index = 0; index < 20; index++) await kubectl('create', 'namespace', `n${index}`)
      const names = ['tenant', ...Array.from({ length: 20 }, (_, index) => `n${index}`)]
      await kubectl('delete', 'namespace', ...names, '--wait=false')
      await eventually('the condition names the server', async () => {
        const conditions = '/api/v1/namespaces/tenant'
        const { text } = await fleet.admin.send('GET', conditions)
        return text.includes(`stale GroupVersion discovery: ${wardle.group}/${wardle.version}`)
      })
      const { status } = await fleet.admin.send('GET', '/api/v1/namespaces/tenant/configmaps/mine')
      t.equal(status, 404, 'its own content is gone')
      await kubectl('delete', 'apiservice', wardleName)
      await kubectl('wait', '--for=delete', ...names.map((name) => `namespace/${name}`), '--timeout=120s')
    }),
  )

  const now = await settled(fleet, baseMiB + 150)
  t.comment(`controller: ${Math.round(baseMiB)} MiB before, ${Math.round(now)} MiB after`)
})

async function proxyAuthorityOf({ controller: { kubectl } }: AttackedFleet): Promise<string> {
  const map = 'configmap/extension-apiserver-authentication'
  await kubectl('wait', '-n', 'kube-system', '--for=create', map)
  const { data } = JSON.parse(await kubectl('get', '-n', 'kube-system', map, '-o', 'json'))
  return String(data['requestheader-client-ca-file'])
}

async function isAvailable({ controller: { kubectl } }: AttackedFleet, status: 'True' | 'False'): Promise<void> {
  await kubectl(...['wait', `--for=condition=Available=${status}`, `apiservice/${wardleName}`, '--timeout=120s'])
}
