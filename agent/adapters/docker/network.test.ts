import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Dockerode from 'dockerode'
import { type Test, test } from 'tap'
import { cidrsOverlap, parseCidr } from '../../../api/text/cidr.ts'
import { nodeLabel } from './labels.ts'
import { podNetwork } from './network.ts'

type Network = {
  readonly name: string
  readonly subnet: string
  readonly node?: string
  users?: number
  listed: boolean
}

/**
 * Docker's API for networks. Like Docker it takes the addresses first and lists the network a moment later, and in between
 * refuses a second network of the same name for its addresses.
 */
async function engine(t: Test, ...networks: Omit<Network, 'listed'>[]) {
  const here = new Map<string, Network>(networks.map((one, index) => [`id-${index}`, { ...one, listed: true }]))
  const requests: string[] = []
  const world = { requests, here, names: () => [...here.values()].map(({ name }) => name), failing: false }
  const create = async (request: IncomingMessage) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { Name, IPAM, Labels } = JSON.parse(body)
    const subnet = String(IPAM.Config[0].Subnet)
    const overlaps = [...here.values()].some((one) => overlap(one.subnet, subnet))
    if (overlaps) return { status: 403, answer: { message: 'Pool overlaps with other one on this address space' } }
    const made: Network = { name: Name, subnet, node: Labels[nodeLabel], listed: false }
    here.set(`id-${Name}`, made)
    await new Promise((resolve) => setImmediate(resolve))
    made.listed = true
    return { status: 201, answer: { Id: `id-${Name}` } }
  }
  const serve = async (request: IncomingMessage): Promise<{ status: number; answer?: unknown }> => {
    const { pathname } = new URL(request.url ?? '', 'http://docker')
    requests.push(`${request.method} ${pathname}`)
    if (world.failing) return { status: 500, answer: { message: 'no space left on device' } }
    if (pathname === '/networks') {
      const listed = [...here].filter(([, one]) => one.listed)
      return { status: 200, answer: listed.map(([id, { name, subnet, node }]) => rowOf(id, name, subnet, node)) }
    }
    if (pathname === '/networks/create') return create(request)
    if (pathname === '/containers/json') {
      const answer = [...here.values()].flatMap(({ name, users = 0 }) =>
        Array.from({ length: users }, () => ({ HostConfig: { NetworkMode: name } })),
      )
      return { status: 200, answer: [...answer, { HostConfig: { NetworkMode: 'host' } }] }
    }
    here.delete(pathname.split('/').at(-1) ?? '')
    return { status: 204 }
  }
  const socketPath = join(await mkdtemp(join(tmpdir(), 'bramble-docker-')), 's')
  const server = createServer(async (request, response) => {
    const { status, answer } = await serve(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(answer && JSON.stringify(answer))
  })
  server.listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(dirname(socketPath), { recursive: true, force: true })
  })
  const docker = new Dockerode({ socketPath, host: undefined, protocol: 'http' })
  return { ...world, world, network: podNetwork(docker, 'pi-01', async () => []) }
}

function overlap(one: string, other: string): boolean {
  const [first, second] = [parseCidr(one), parseCidr(other)]
  return first !== undefined && second !== undefined && cidrsOverlap(first, second)
}

function rowOf(id: string, name: string, subnet: string, node: string | undefined) {
  const labels = node === undefined ? {} : { [nodeLabel]: node }
  return { Id: id, Name: name, Labels: labels, IPAM: { Config: subnet === '' ? [] : [{ Subnet: subnet }] } }
}

const range = '10.244.0.0/24'
const own = 'bramble_pi-01_10.244.0.0-24'
const of = (node: string, more: Partial<Network> = {}) => ({
  name: `bramble_${node}_10.244.0.0-24`,
  subnet: range,
  node,
  ...more,
})

test('pods that start at once on a fresh node share one network', async (t) => {
  const { network, names, requests } = await engine(t, { name: 'host', subnet: '' })
  await Promise.all(Array.from({ length: 10 }, () => network.ensure(range)))
  t.same(names(), ['host', own])
  t.equal(requests.filter((request) => request === 'POST /networks/create').length, 1)
  await network.ensure(range)
  t.equal(requests.filter((request) => request === 'GET /networks').length, 1, 'and it is looked for once')
  t.equal(await network.problem(), undefined)
})

test('a network of Bramble that no container uses gives its addresses away', async (t) => {
  const { network, names } = await engine(t, of('earlier'), of('wide', { subnet: '10.244.0.0/16' }))
  await network.ensure(range)
  t.same(names(), [own])
})

test('the network of another node that has containers stays, and the reason names both', async (t) => {
  const { network, here, names } = await engine(t, of('other', { users: 2 }))
  await t.rejects(network.ensure(range), {
    name: 'RuntimeError',
    reason: 'Failed',
    cause: {
      message:
        /^addresses of podCIDR 10\.244\.0\.0\/24 belong to Docker network bramble_other_10\.244\.0\.0-24 \(10\.244\.0\.0\/24\) of node other, which 2 containers of this machine use: .*another clusterCIDR; .*label=bramble\.dev\/node=other\)'$/,
    },
  })
  t.match(await network.problem(), /of node other, which 2 containers/)
  for (const one of here.values()) one.users = 0
  t.equal(await network.problem(), undefined, 'tried again where the problem is asked for')
  t.same(names(), [own])
})

test('a network that Bramble did not create stays, used or not', async (t) => {
  const { network, names } = await engine(t, { name: 'shop', subnet: '10.244.0.0/25' })
  await t.rejects(network.ensure(range), { cause: { message: /run 'docker network rm shop'; else give the fleet/ } })
  t.same(names(), ['shop'])
})

test('this node’s networks for ranges it no longer has go, also where they overlap with its new one', async (t) => {
  const { network, names } = await engine(
    t,
    of('pi-01', { name: 'bramble_pi-01_10.9.0.0-24', subnet: '10.9.0.0/24' }),
    of('pi-01', { name: 'bramble_pi-01_10.244.0.0-16', subnet: '10.244.0.0/16' }),
  )
  await network.ensure(range)
  t.same(names(), [own])
})

test('a range that changes while the network is made for the last one is not confused with it', async (t) => {
  const { network, names } = await engine(t)
  await Promise.all([network.ensure(range), network.ensure('10.245.0.0/24')])
  t.same(names(), ['bramble_pi-01_10.245.0.0-24'])
})

test('a network that was removed is made again once it is invalidated', async (t) => {
  const { network, here, names } = await engine(t)
  await network.ensure(range)
  here.clear()
  network.invalidate()
  await network.ensure(range)
  t.same(names(), [own])
})
