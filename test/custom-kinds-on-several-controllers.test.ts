/** Custom kinds, their conversion webhooks and extension servers, asked of each of several controllers. */
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import {
  convertedAnswer,
  convertedDefinition,
  type ReviewRequest,
} from '../broker-controller/testing/conversion-webhook.ts'
import { startExtensionServer, wardle, wardlePath } from '../broker-controller/testing/extension-server.ts'
import { openAuthority } from '../certs/authority.ts'
import { issueServer } from '../certs/issue.ts'
import { type ApiSession, apiSession } from './replicas/api-session.ts'
import { noEtcd } from './support/etcd.ts'
import { outsideService, reachableAddress, wardleName, wardleObjects } from './support/extension-service.ts'
import type { Controller } from './support/fleet.ts'
import { copyFiles, type Replicas, startReplicas } from './support/replicas.ts'
import { eventually } from './support/wait.ts'

const skip = noEtcd || (reachableAddress === undefined && 'this machine has no address')
const group = 'many.example.com'
const base = `/apis/${group}/v1`
/** What extension servers trust. */
const trustMap = ['-n', 'kube-system', 'configmap/extension-apiserver-authentication']
const definitionsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

function definition(plural: string) {
  const kind = `${plural.slice(0, 1).toUpperCase()}${plural.slice(1)}`
  const schema = { type: 'object', properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      ...{ group, scope: 'Namespaced', names: { plural, kind } },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  }
}

async function sessionOf(t: Test, { kubeconfig }: Controller): Promise<ApiSession> {
  const session = apiSession(await readKubeconfig(kubeconfig))
  t.teardown(() => session.close())
  return session
}

const statusOf = async (session: ApiSession, path: string) => (await session.send('GET', path))?.status

/** Those of the kinds that it does not serve. */
async function unknown(session: ApiSession, plurals: readonly string[]): Promise<readonly string[]> {
  const asked = plurals.map(async (plural) => ((await statusOf(session, `${base}/${plural}`)) === 200 ? [] : [plural]))
  return (await Promise.all(asked)).flat()
}

/** The plurals that discovery lists. */
async function listed(session: ApiSession): Promise<readonly string[]> {
  const { body } = (await session.send('GET', base)) ?? {}
  const { resources = [] } = body as { readonly resources?: readonly { readonly name: string }[] }
  return resources.map(({ name }) => name).sort()
}

test('every controller serves the same custom kinds', { skip, timeout: 600_000 }, async (t) => {
  const replicas = await startReplicas(t, { joined: 1 })
  const { controllers, places, start } = replicas
  const [first] = controllers
  if (first === undefined) throw new Error('There is one controller')
  // From then on there is a front proxy, whose files are copied with the others.
  await first.kubectl('wait', '--for=create', ...trustMap)
  await copyFiles(places, 1)
  const second = await start(1)
  const plurals = Array.from({ length: 85 }, (_, index) => `kind${index}s`)

  await t.test('a kind that one controller serves is never unknown to another', async (t) => {
    const [leader, standby] = [await sessionOf(t, first), await sessionOf(t, second)]
    for (const [index, plural] of plurals.entries()) {
      const [maker, other] = index % 2 === 0 ? [leader, standby] : [standby, leader]
      const made = await maker.send('POST', definitionsPath, definition(plural))
      t.equal(made?.status, 201, plural)
      const path = `${base}/namespaces/default/${plural}`
      await eventually(`${plural} is served`, async () => (await statusOf(maker, path)) === 200, { everyMs: 20 })
      t.equal(await statusOf(other, path), 200, `${plural} at the other controller`)
      if (index % 10 !== 0) continue
      t.ok((await listed(other)).includes(plural), `${plural} in discovery`)
      const kind = definition(plural).spec.names.kind
      const object = { apiVersion: `${group}/v1`, kind, metadata: { name: 'a' }, spec: { size: 1 } }
      t.equal((await other.send('POST', path, object))?.status, 201)
      t.match(await maker.send('GET', `${path}/a`), { status: 200, body: { spec: { size: 1 } } })
      t.equal(await statusOf(other, `/openapi/v3/apis/${group}/v1`), 200)
    }
  })

  const own = await serversOf(t, first)
  await works(t, [first, second], own)

  await t.test('after a start a controller serves all of them at once', async (t) => {
    await second.program.stop()
    const again = await start(1)
    const session = await sessionOf(t, again)
    t.same(await unknown(session, plurals), [])
    t.same(await listed(session), [...plurals].sort())
    await works(t, [first, again], own)
    await leadsInstead(t, replicas, again, plurals)
    await works(t, [again], own)
  })
})

/** The first controller ends, and comes back beside the other one. */
async function leadsInstead(t: Test, { controllers, start }: Replicas, next: Controller, plurals: readonly string[]) {
  await controllers[0]?.program.stop()
  const session = await sessionOf(t, next)
  await eventually('the other one leads', async () => {
    const text = await next.kubectl('get', '--raw', '/metrics')
    return text.includes('leader_election_master_status{name="bramble-controller"} 1')
  })
  t.same(await unknown(session, plurals), [])
  t.same(await unknown(await sessionOf(t, await start(0)), plurals), [])
}

type Servers = { readonly round: () => string }

/** A webhook behind a Service that converts shops, and an extension server. */
async function serversOf(t: Test, { kubectl, kubectlWith, dataDir }: Controller): Promise<Servers> {
  const apply = (object: object) => kubectlWith(JSON.stringify(object), 'apply', '-f', '-')
  const folder = join(dataDir, '..', 'servers')
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  const { certificate: cert, key } = issueServer(authority, { names: ['convert.shops.svc'], nowMs: Date.now() })
  const webhook = createServer({ cert, key }, (request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const review = JSON.parse(Buffer.concat(parts).toString()) as { readonly request: ReviewRequest }
      response.end(JSON.stringify({ ...review, response: convertedAnswer(review.request) }))
    })
  })
  await new Promise<void>((resolve) => webhook.listen(0, reachableAddress, resolve))
  t.teardown(() => {
    webhook.closeAllConnections()
    webhook.close()
  })
  const { port } = webhook.address() as AddressInfo
  for (const object of outsideService('shops', 'convert', port)) await apply(object)
  const service = { namespace: 'shops', name: 'convert', path: '/convert' }
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  await apply(convertedDefinition('v1', { clientConfig: { service, caBundle } }))
  await kubectl('wait', '--for=condition=Established', 'crd/shops.example.com', '--timeout=30s')

  const { data } = JSON.parse(await kubectl('get', ...trustMap, '-o', 'json'))
  const server = await startExtensionServer({
    ...{ folder: join(folder, 'wardle'), names: ['api.wardle.svc'], address: reachableAddress ?? '' },
    proxyAuthority: String(data['requestheader-client-ca-file']),
  })
  t.teardown(server.stop)
  for (const object of wardleObjects(server)) await apply(object)
  await kubectl('wait', '--for=condition=Available', `apiservice/${wardleName}`, '--timeout=60s')
  let rounds = 0
  return { round: () => `round${rounds++}` }
}

/** Each of these controllers answers for the webhook's versions and for the extension server. */
async function works(t: Test, controllers: readonly Controller[], { round }: Servers): Promise<void> {
  for (const controller of controllers) {
    const session = await sessionOf(t, controller)
    const name = round()
    const metadata = { name, namespace: 'default' }
    const shops = (version: string) => `/apis/example.com/${version}/namespaces/default/shops`
    const shop = { apiVersion: 'example.com/v1', kind: 'Shop', metadata, hostPort: 'alpha:80' }
    await eventually('a shop is made', async () => (await session.send('POST', shops('v1'), shop))?.status === 201)
    t.match(await session.send('GET', `${shops('v2')}/${name}`), { status: 200, body: { host: 'alpha', port: '80' } })
    t.match(await session.send('GET', shops('v2')), { status: 200, body: { kind: 'ShopList' } })

    await eventually('the flunders are discovered', async () => {
      const found = await session.send('GET', '/openapi/v2')
      const { paths = {} } = (found?.body ?? {}) as { readonly paths?: { readonly [path: string]: object } }
      return paths[`${wardlePath}/namespaces/{namespace}/flunders`] !== undefined
    })
    t.match(await controller.kubectl('api-resources', '--cached=false', `--api-group=${wardle.group}`), /Flunder/)
    const flunder = { apiVersion: `${wardle.group}/${wardle.version}`, kind: 'Flunder', metadata }
    const flunders = `${wardlePath}/namespaces/default/flunders`
    t.equal((await session.send('POST', flunders, flunder))?.status, 201)
    t.match(await session.send('GET', `${flunders}/${name}`), { status: 200, body: { metadata: { name } } })
  }
}
