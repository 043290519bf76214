/** A fleet changes its network while a sandbox starts: an engine that lists a network only once it is made. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import type { SandboxOptions } from '../../runtime/runtime.ts'
import { dockerRuntime } from './docker-runtime.ts'
import { nodeLabel } from './labels.ts'
import type { WantedNetwork } from './network.ts'

const podCIDR = '10.244.0.0/24'
const [routed, dual]: readonly WantedNetwork[] = [
  { mode: 'routed', podsMayMove: true, hasRange: true },
  { mode: 'dual', ipv6CIDR: 'fd00:10:244::/64', podsMayMove: true, hasRange: true },
]

const sandbox: SandboxOptions = {
  identity: {
    ...{ kind: 'sandbox', podNamespace: 'default', podName: 'web', podUID: 'u1', containerName: '' },
    ...{ attempt: 0, specHash: '', gracePeriodSeconds: 1 },
  },
  ...{ hostname: 'web', domain: '', hostNetwork: false, podCIDR, hostIPC: false, resolver: undefined },
  ...{ hosts: [], sysctls: {}, ports: [] },
}

function fakeEngine() {
  const networks = new Map<string, { readonly name: string; readonly config: unknown }>([
    ['bridge-id', { name: 'bridge', config: [] }],
  ])
  const containers = new Map<string, { readonly on: string; started: boolean }>()
  type Body = { Name: string; IPAM: { Config: unknown }; HostConfig: { NetworkMode: string } }
  const answers: { readonly [path: string]: (body: Body) => { status: number; answer: object } } = {
    '/version': () => ({ status: 200, answer: { ApiVersion: '1.41' } }),
    '/networks': () => ({
      status: 200,
      answer: [...networks].map(([Id, { name, config }]) => rowOf(Id, name, config)),
    }),
    '/networks/create'({ Name, IPAM }) {
      networks.set(`id-${Name}`, { name: Name, config: IPAM.Config })
      return { status: 201, answer: { Id: `id-${Name}` } }
    },
    '/containers/json': () => ({ status: 200, answer: [...containers].map(([Id, { on }]) => attachedOf(Id, on)) }),
    '/containers/create'({ HostConfig }) {
      containers.set(`c-${containers.size}`, { on: HostConfig.NetworkMode, started: false })
      return { status: 201, answer: { Id: `c-${containers.size - 1}` } }
    },
  }
  const answered = (method: string | undefined, pathname: string, body: Body): { status: number; answer?: object } => {
    const answer = answers[pathname]
    if (answer !== undefined) return answer(body)
    const [, collection = '', id = '', action = ''] = pathname.split('/')
    const container = containers.get(id)
    if (action === 'start' && container !== undefined) container.started = true
    if (method === 'DELETE') (collection === 'networks' ? networks : containers).delete(id)
    return { status: 204 }
  }
  return { containers, answered }
}

/** `during`: what happens while the engine works on the first request to this path. */
async function engineDuring(t: Test, path: string, during: (fleet: Fleet) => Promise<void>) {
  const { containers, answered } = fakeEngine()
  let hasHappened = false
  let wanted: WantedNetwork = routed ?? { mode: 'routed', podsMayMove: true }
  const answer = async (request: IncomingMessage) => {
    const { pathname } = new URL(request.url ?? '', 'http://docker')
    let text = ''
    for await (const chunk of request) text += chunk
    if (pathname === path && !hasHappened) {
      hasHappened = true
      await during(fleet)
    }
    return answered(request.method, pathname, text === '' ? {} : JSON.parse(text))
  }
  const socketPath = join(await mkdtemp(join(tmpdir(), 'bramble-docker-')), 's')
  const server = createServer(async (request, response) => {
    const { status, answer: json } = await answer(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(json && JSON.stringify(json))
  })
  server.listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(dirname(socketPath), { recursive: true, force: true })
  })
  const runtime = dockerRuntime({
    ...{ socketPath, nodeName: 'pi-01' },
    podNetwork: {
      wanted: () => wanted,
      prepared: async () => undefined,
      closeIPv6: async () => undefined,
      reflect: async () => undefined,
    },
  })
  const fleet: Fleet = {
    async gets(network) {
      wanted = network ?? wanted
      await runtime.adjustPodNetwork()
    },
  }
  return {
    runtime,
    fleet,
    running: () => [...containers.values()].filter(({ started }) => started).map(({ on }) => on),
  }
}

type Fleet = { gets(network: WantedNetwork | undefined): Promise<void> }

function rowOf(Id: string, Name: string, Config: unknown) {
  const Labels = Name === 'bridge' ? {} : { [nodeLabel]: 'pi-01' }
  return { Id, Name, Labels, IPAM: { Config }, EnableIPv6: Name.endsWith('_dual') }
}

function attachedOf(Id: string, on: string) {
  return { Id, Labels: { [nodeLabel]: 'pi-01' }, HostConfig: { NetworkMode: on === 'default' ? 'bridge' : on } }
}

for (const path of ['/networks/create', '/containers/create'])
  test(`a pod is on the network that its fleet got while the engine worked on ${path}`, async (t) => {
    const { runtime, running } = await engineDuring(t, path, (fleet) => fleet.gets(dual))
    await t.rejects(runtime.runSandbox(sandbox), { reason: 'Failed', message: /the network of pods changed meanwhile/ })
    t.same(running(), [], 'it has none of the one before')
    await runtime.runSandbox(sandbox)
    t.same(running(), ['bramble_pi-01_10.244.0.0-24_dual'])
  })

test('a pod that started before its node had addresses for pods leaves the engine’s own network', async (t) => {
  const { runtime, fleet, running } = await engineDuring(t, '/containers/create', (one) => one.gets(routed))
  await fleet.gets({ mode: 'routed', podsMayMove: true })
  const { podCIDR: _, ...early } = sandbox
  await t.rejects(runtime.runSandbox({ ...early, podCIDR: undefined }), { message: /changed meanwhile/ })
  t.same(running(), [])
  await runtime.runSandbox({ ...early, podCIDR: undefined, hostNetwork: true })
  t.same(running(), ['host'], 'one of the network of its host stays')
})

test('a pod stays on the network of before while its node waits for its turn to move', async (t) => {
  const waiting = dual && { ...dual, podsMayMove: false }
  const { runtime, running } = await engineDuring(t, '/containers/create', (fleet) => fleet.gets(waiting))
  await runtime.runSandbox(sandbox)
  t.same(running(), ['bramble_pi-01_10.244.0.0-24_routed'])
})
