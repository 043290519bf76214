import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { cidrsOverlap, parseCidr } from '../../../api/text/cidr.ts'
import type { Route } from '../kernel/host-routes.ts'
import { dockerEngine } from './engine.ts'
import { nodeLabel } from './labels.ts'
import { podNetwork, routeInTheWay, type WantedNetwork } from './network.ts'

type Network = {
  readonly name: string
  readonly subnet: string
  readonly node?: string
  readonly hasIPv6?: boolean
  /** As Docker lists them, beside that of the node. */
  readonly labels?: { readonly [name: string]: string }
  users?: number
  /** The node of its containers, if it differs from that of the network. */
  readonly usersOf?: string
  /** Host address that a port of its first container is published at. */
  readonly portIP?: string
  listed: boolean
}

/**
 * Docker's API for networks. Like Docker it takes the addresses first and lists the network a moment later, and in between
 * refuses a second network of the same name for its addresses.
 */
const engine = (t: Test, ...networks: Omit<Network, 'listed'>[]) => engineWith(t, async () => [], ...networks)

async function engineWith(t: Test, routes: () => Promise<readonly Route[]>, ...networks: Omit<Network, 'listed'>[]) {
  const here = new Map<string, Network>(networks.map((one, index) => [`id-${index}`, { ...one, listed: true }]))
  const requests: string[] = []
  const queries: string[] = []
  const bodies: unknown[] = []
  const world = {
    requests,
    queries,
    bodies,
    here,
    names: () => [...here.values()].map(({ name }) => name),
    failing: false,
    apiVersion: '1.51',
    wanted: { mode: 'node', podsMayMove: false } as WantedNetwork,
    removed: [] as string[],
    /** Runs when a network is requested, before Docker takes it in. */
    beforeCreate: undefined as (() => void) | undefined,
  }
  const create = async (request: IncomingMessage) => {
    let body = ''
    for await (const chunk of request) body += chunk
    world.beforeCreate?.()
    if (world.failing) return { status: 500, answer: { message: 'no space left on device' } }
    bodies.push(JSON.parse(body))
    const { Name, IPAM, Labels } = JSON.parse(body)
    const subnet = String(IPAM.Config[0].Subnet)
    const overlaps = [...here.values()].some((one) => overlap(one.subnet, subnet))
    if (overlaps) return { status: 403, answer: { message: 'Pool overlaps with other one on this address space' } }
    const { [nodeLabel]: node, ...labels } = Labels
    const made: Network = { name: Name, subnet, node, labels, listed: false }
    here.set(`id-${Name}`, made)
    await new Promise((resolve) => setImmediate(resolve))
    made.listed = true
    return { status: 201, answer: { Id: `id-${Name}` } }
  }
  const containers = () =>
    [...here.values()].flatMap(({ name, node, users = 0, usersOf = node, portIP }) =>
      Array.from({ length: users }, (_, index) => ({
        Id: `${name}-${index}`,
        Labels: usersOf === undefined ? {} : { [nodeLabel]: usersOf },
        HostConfig: { NetworkMode: name },
        Ports: index === 0 && portIP !== undefined ? [{ IP: portIP }] : [],
      })),
    )
  const serve = async (request: IncomingMessage): Promise<{ status: number; answer?: unknown }> => {
    const { pathname } = new URL(request.url ?? '', 'http://docker')
    requests.push(`${request.method} ${pathname}`)
    queries.push(request.url ?? '')
    if (world.failing) return { status: 500, answer: { message: 'no space left on device' } }
    if (pathname === '/version') return { status: 200, answer: { ApiVersion: world.apiVersion } }
    if (pathname === '/networks') {
      const listed = [...here].filter(([, one]) => one.listed)
      return { status: 200, answer: listed.map(([id, network]) => rowOf(id, network)) }
    }
    if (pathname === '/networks/create') return create(request)
    if (pathname === '/containers/json') {
      return { status: 200, answer: [...containers(), { HostConfig: { NetworkMode: 'host' } }] }
    }
    const id = pathname.split('/').at(-1) ?? ''
    if (pathname.startsWith('/containers/')) {
      world.removed.push(id)
      const network = [...here.values()].find(({ name }) => id.startsWith(`${name}-`))
      if (network !== undefined) network.users = (network.users ?? 0) - 1
    } else here.delete(id)
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
  return {
    requests,
    queries,
    bodies,
    here,
    names: world.names,
    world,
    network: podNetwork({ engine: dockerEngine(socketPath), nodeName: 'pi-01', routes, wanted: () => world.wanted }),
  }
}

function overlap(one: string, other: string): boolean {
  const [first, second] = [parseCidr(one), parseCidr(other)]
  return first !== undefined && second !== undefined && cidrsOverlap(first, second)
}

function rowOf(id: string, { name, subnet, node, labels, hasIPv6 = false }: Network) {
  const all = { ...labels, ...(node !== undefined && { [nodeLabel]: node }) }
  const IPAM = { Config: subnet === '' ? [] : [{ Subnet: subnet }] }
  return { Id: id, Name: name, Labels: all, IPAM, EnableIPv6: hasIPv6 }
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

test('a network that a concurrent agent creates between check and request is removed or waited out in a second try', async (t) => {
  const { network, here, names, requests, world } = await engine(t)
  world.beforeCreate = () => {
    here.set('id-late', { ...of('earlier'), listed: true })
    world.beforeCreate = undefined
  }
  await network.ensure(range)
  t.same(names(), [own])
  t.equal(requests.filter((request) => request === 'POST /networks/create').length, 2)
})

test('a conflict that returns each time ends after the second try', async (t) => {
  const { network, here, requests, world } = await engine(t)
  world.beforeCreate = () => void here.set('id-late', { ...of('earlier'), listed: true })
  await t.rejects(network.ensure(range), { name: 'RuntimeError', cause: { message: /Pool overlaps/ } })
  t.equal(requests.filter((request) => request === 'POST /networks/create').length, 2)
})

test('another failure to create the network is not tried again, and is the problem', async (t) => {
  const { network, requests, world } = await engine(t)
  world.beforeCreate = () => {
    world.failing = true
  }
  await t.rejects(network.ensure(range), { cause: { message: /no space left on device/ } })
  t.equal(requests.filter((request) => request === 'POST /networks/create').length, 1)
  t.match(await network.problem(), /no space left on device/)
})

test('stopped containers keep the network of their node, and Docker is asked for them', async (t) => {
  const { network, queries } = await engine(t, of('other', { users: 1 }))
  await t.rejects(network.ensure(range))
  t.same(
    queries.filter((query) => query.startsWith('/containers/json')),
    ['/containers/json?all=true'],
  )
})

test('the network is a bridge with the range and the label of the node', async (t) => {
  const { network, bodies } = await engine(t)
  await network.ensure(range)
  t.same(bodies, [
    {
      Name: own,
      CheckDuplicate: true,
      Driver: 'bridge',
      IPAM: { Config: [{ Subnet: range }] },
      EnableIPv6: false,
      Labels: { [nodeLabel]: 'pi-01' },
    },
  ])
})

test('a route to the addresses of pods is in the way where Docker would hide its owners', async (t) => {
  const route = (name: string, text: string, direct: boolean) => {
    const parsed = parseCidr(text)
    if (parsed === undefined) throw new Error(`Not a range: ${text}`)
    return { interface: name, range: parsed, direct }
  }
  const obstacle = (...routes: ReturnType<typeof route>[]) =>
    routeInTheWay(range, routes)?.replace(/ of this machine.*/, '')
  const inTheWay = (text: string, name: string) =>
    `addresses of podCIDR ${range} belong to the network ${text} on ${name}`
  t.equal(obstacle(), undefined)
  t.equal(obstacle(route('eth0', '10.244.0.0/16', true)), inTheWay('10.244.0.0/16', 'eth0'), 'neighbours on the link')
  t.equal(obstacle(route('eth0', '10.244.0.0/16', false)), undefined, 'a wider network behind a gateway')
  t.equal(obstacle(route('eth0', range, false)), inTheWay(range, 'eth0'), 'the same range behind a gateway')
  t.equal(obstacle(route('eth0', '10.244.0.128/25', false)), inTheWay('10.244.0.128/25', 'eth0'), 'a part of the range')
  t.equal(obstacle(route('eth0', '10.245.0.0/24', true)), undefined, 'another range')
  t.equal(obstacle(route('br-0123456789ab', range, true)), undefined, 'a bridge of Docker')
  for (const name of ['br-0123456789', 'br-0123456789abc', 'xbr-0123456789ab', 'br-lan']) {
    t.equal(obstacle(route(name, range, true)), inTheWay(range, name), 'a bridge of the machine')
  }
  t.equal(
    obstacle(route('eth0', '10.245.0.0/24', true), route('wg0', range, true), route('eth1', range, true)),
    inTheWay(range, 'wg0'),
  )
  t.equal(routeInTheWay('none', [route('eth0', range, true)]), undefined, 'no range, nothing in its way')
})

test('a route in the way is the problem of the network', async (t) => {
  const cidr = parseCidr('10.244.0.0/16')
  const routes = cidr === undefined ? [] : [{ interface: 'eth0', range: cidr, direct: true }]
  const { network, names } = await engineWith(t, async () => routes)
  await t.rejects(network.ensure(range), {
    cause: { message: /10\.244\.0\.0\/16 on eth0 of this machine \(give the fleet/ },
  })
  t.same(names(), [])
})

const routed: WantedNetwork = { mode: 'routed', podsMayMove: true }
/** Labels of networks that Docker 28 or later created. */
const labels = { 'bramble.dev/gateway-mode': 'nat-unprotected' }

test('a routed network keeps the addresses of its pods, and other machines may send to them', async (t) => {
  const { network, world, bodies } = await engine(t)
  world.wanted = routed
  t.match(await network.ensure(range), { name: `${own}_routed`, mode: 'routed', bridge: /^br-/ })
  t.match(bodies, [
    {
      Name: `${own}_routed`,
      Options: {
        'com.docker.network.bridge.enable_ip_masquerade': 'false',
        'com.docker.network.bridge.gateway_mode_ipv4': 'nat-unprotected',
      },
    },
  ])
})

test('pods of a node that is off the network of its fleet leave each network of ours', async (t) => {
  const mine = of('pi-01', { users: 1 })
  const { network, world, names } = await engine(
    t,
    mine,
    of('other', { name: 'bramble_other', subnet: '10.9.0.0/24', users: 1 }),
  )
  world.wanted = { mode: 'node', podsMayMove: false, isOff: true }
  await network.adjust()
  t.same(world.removed, [])
  world.wanted = { mode: 'node', podsMayMove: true, isOff: true }
  await network.adjust()
  t.same(world.removed, [`${own}-0`])
  t.same(names(), ['bramble_other'])
})

test('pods on the network of the engine move to that of the fleet once their node has a range there', async (t) => {
  const bridge = { name: 'bridge', subnet: '172.17.0.0/16', users: 2, usersOf: 'pi-01' }
  const { network, world } = await engine(t, bridge, {
    name: 'other',
    subnet: '172.18.0.0/16',
    users: 1,
    usersOf: 'pi-01',
  })
  for (const wanted of [
    routed,
    { ...routed, hasRange: true, podsMayMove: false },
    { mode: 'node', podsMayMove: true },
  ]) {
    world.wanted = wanted as WantedNetwork
    await network.adjust()
    t.same(world.removed, [], JSON.stringify(wanted))
  }
  world.wanted = { ...routed, hasRange: true }
  await network.adjust()
  t.same(world.removed.toSorted(), ['bridge-0', 'bridge-1'])
})

test('Docker before version 28 is given no gateway mode, which version 27 refuses', async (t) => {
  for (const apiVersion of ['1.41', '1.47']) {
    const { network, world, bodies } = await engine(t)
    Object.assign(world, { apiVersion, wanted: routed })
    await network.ensure(range)
    t.match(bodies, [{ Labels: { [nodeLabel]: 'pi-01' } }])
    t.same(
      bodies.map((body) => (body as { readonly Options: unknown }).Options),
      [{ 'com.docker.network.bridge.enable_ip_masquerade': 'false' }],
    )
    t.equal((await network.adjust()).length, 1)
    t.same(world.removed, [], 'and the network stays')
  }
})

test('a network that a Docker before version 28 has made is made again by a later one, which drops what other nodes send', async (t) => {
  const { network, world, here, names } = await engine(t, of('pi-01', { name: `${own}_routed`, users: 1 }))
  Object.assign(world, { apiVersion: '1.47', wanted: routed })
  await network.ensure(range)
  t.same(world.removed, [])
  Object.assign(world, { apiVersion: '1.48', wanted: { ...routed, podsMayMove: false } })
  await network.adjust()
  t.same(world.removed, [], 'not before pods may move')
  world.wanted = routed
  t.same(await network.adjust(), [])
  t.same([world.removed, names()], [[`${own}_routed-0`], []])
  await network.ensure(range)
  t.same(
    [...here.values()].map((one) => one.labels),
    [labels],
  )
  t.equal((await network.adjust()).length, 1, 'and it stays')
  world.apiVersion = '1.47'
  t.equal((await network.adjust()).length, 1, 'also with an earlier version')
  world.wanted = { mode: 'node', podsMayMove: true }
  await network.ensure(range)
  t.same(names(), [own])
})

test('pods on a network of the other mode move when they may, and not before', async (t) => {
  const { network, world, names } = await engine(t, of('pi-01', { users: 2 }))
  world.wanted = { mode: 'routed', podsMayMove: false }
  t.match(await network.ensure(range), { name: own, mode: 'node' })
  t.same(await network.adjust(), [])
  t.same(world.removed, [])
  world.wanted = routed
  await network.adjust()
  t.same(world.removed, [`${own}-0`, `${own}-1`])
  t.same(names(), [])
  t.match(await network.ensure(range), { name: `${own}_routed`, mode: 'routed' })
  t.equal((await network.adjust()).length, 1, 'its bridge')
})

test('a network on which the daemon has turned IPv6 on is made again without it, where policies restrict its pods', async (t) => {
  const { network, world, names, here } = await engine(
    t,
    of('pi-01', { name: `${own}_routed`, hasIPv6: true, users: 1, labels }),
  )
  world.wanted = { mode: 'routed', podsMayMove: false }
  t.match(await network.ensure(range), { name: `${own}_routed` }, 'not before pods may move')
  t.same(world.removed, [])
  world.wanted = routed
  await network.adjust()
  t.same([world.removed, names()], [[`${own}_routed-0`], []])
  await network.ensure(range)
  t.same(
    [...here.values()].map(({ name, hasIPv6 }) => [name, hasIPv6]),
    [[`${own}_routed`, undefined]],
  )
  t.equal((await network.adjust()).length, 1, 'and it stays')
})

test('a pod with a host port on IPv6 addresses is started again where policies restrict it, and others stay', async (t) => {
  const { network, world } = await engine(t, of('pi-01', { name: `${own}_routed`, users: 2, portIP: '::', labels }))
  world.wanted = { mode: 'routed', podsMayMove: false }
  await network.adjust()
  t.same(world.removed, [])
  world.wanted = routed
  t.equal((await network.adjust()).length, 1)
  t.same(world.removed, [`${own}_routed-0`])
  const open = await engine(t, of('pi-01', { name: `${own}_routed`, users: 2, portIP: '0.0.0.0', labels }))
  open.world.wanted = routed
  await open.network.adjust()
  t.same(open.world.removed, [])
})

test('pods that are not routed may use a network with IPv6', async (t) => {
  const { network, world } = await engine(t, of('pi-01', { hasIPv6: true, users: 1 }))
  world.wanted = { mode: 'node', podsMayMove: true }
  await network.ensure(range)
  await network.adjust()
  t.same(world.removed, [])
})

test('a pod that starts on a network of the other mode takes it away first', async (t) => {
  const { network, world, names } = await engine(t, of('pi-01', { name: `${own}_routed`, users: 1 }))
  t.match(await network.ensure(range), { mode: 'routed' }, 'the mode was not received yet')
  world.wanted = { mode: 'node', podsMayMove: true }
  t.match(await network.ensure(range), { name: own, mode: 'node' })
  t.same(names(), [own])
})

test('networks and containers of others stay', async (t) => {
  const { network, world, names } = await engine(
    t,
    of('other', { name: 'bramble_other_10.9.0.0-24', subnet: '10.9.0.0/24', users: 1 }),
    { name: 'shop', subnet: '10.8.0.0/24', users: 1 },
  )
  world.wanted = routed
  await network.adjust()
  t.same(names(), ['bramble_other_10.9.0.0-24', 'shop'])
  t.same(world.removed, [])
})

const dual: WantedNetwork = { mode: 'dual', ipv6CIDR: 'fd00:10:244:1::/64', podsMayMove: true }

test('a network of both families has a range of each, and its IPv6 gateway is the first address', async (t) => {
  const { network, world, bodies } = await engine(t)
  world.wanted = dual
  t.match(await network.ensure(range), { name: `${own}_dual`, mode: 'dual', ipv6CIDR: 'fd00:10:244:1::/64' })
  t.match(bodies, [
    {
      EnableIPv6: true,
      IPAM: { Config: [{ Subnet: range }, { Subnet: 'fd00:10:244:1::/64', Gateway: 'fd00:10:244:1::1' }] },
      Options: {
        'com.docker.network.bridge.enable_ip_masquerade': 'false',
        'com.docker.network.bridge.gateway_mode_ipv6': 'nat-unprotected',
      },
    },
  ])
})

test('pods move when the fleet gets IPv6 and when it gives it up, once they may', async (t) => {
  const { network, world, names } = await engine(t, of('pi-01', { name: `${own}_routed`, users: 1 }))
  world.wanted = { ...dual, podsMayMove: false }
  t.match(await network.ensure(range), { mode: 'routed' })
  t.equal((await network.adjust()).length, 1, 'IPv6 rules are for its bridge, too')
  world.wanted = dual
  t.match(await network.ensure(range), { mode: 'dual' })
  t.same([world.removed, names()], [[`${own}_routed-0`], [`${own}_dual`]])
  world.wanted = { ...routed, podsMayMove: false }
  t.match(await network.ensure(range), { mode: 'dual' })
  world.wanted = routed
  t.match(await network.ensure(range), { mode: 'routed' })
  t.same(names(), [`${own}_routed`])
})
