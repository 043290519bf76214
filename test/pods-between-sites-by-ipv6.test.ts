/** Pods of two sites behind NAT reach each other by IPv6, through a relay that both reach by IPv4, and without one where they reach each other by IPv6. */
import { type Test, test } from 'tap'
import { areEchoed, countDatagrams, learnedMtu, sendFrom } from './support/datagrams.ts'
import { podManifest } from './support/manifests.ts'
import { mirror, requestTo, seenBy as seenByIPv4 } from './support/mirror.ts'
import {
  ipv6AddressOf,
  linkByIPv6,
  type NatSites,
  natSites,
  type SiteMachine,
  whyNoNatSites,
} from './support/nat-sites.ts'
import { image } from './support/pods.ts'
import type { Program } from './support/program.ts'
import { networkBeforePods, rebootAlone } from './support/reboots.ts'
import { plugged, type Space } from './support/routed-machines.ts'
import { countOnRouters, type RouterCount } from './support/router-counts.ts'
import { eventually } from './support/wait.ts'

const ranges = { pods: ['10.244.0.0/16', 'fd00:10:244::/56'], services: ['10.96.0.0/12', 'fd00:10:96::/112'] }
const settings = { clusterCIDR: ranges.pods.join(), serviceCIDR: ranges.services.join() }
/** MTU of bramble-wg. */
const mtu = 1420
const names = ['east', 'west', 'middle'] as const
type Name = (typeof names)[number]
/** Ordered pairs of different machines. */
const pairs = names.flatMap((from) => names.flatMap((to) => (from === to ? [] : [[from, to] as const])))

/** IPv6 addresses of the pod on each machine and of the machine's end of the tunnel. */
type Addresses = { readonly [name in Name]: string }
type World = { readonly sites: NatSites; readonly pods: Addresses; readonly ends: Addresses }

const seenBy = (output: string) => /from \[?([0-9a-f:]+)\]?/.exec(output)?.[1]

async function asks({ sites }: World, from: Name, address: string): Promise<string | undefined> {
  return seenBy((await sites.inNetworkOf(from, requestTo('/cgi-bin/from', address))).stdout)
}

/** By a program of the machine itself. */
async function machineAsks({ run }: SiteMachine, address: string): Promise<string | undefined> {
  return seenBy(await run('sh', '-c', requestTo('/cgi-bin/from', address)))
}

/** A pod on each machine, with its name. */
async function withPods(sites: NatSites): Promise<World> {
  const { controller } = sites
  const read = async (kind: string, name: string, path: string) =>
    (await controller.kubectl('get', kind, name, '-o', `jsonpath=${path}`)).trim()
  for (const name of names) {
    const spec = { nodeName: name, terminationGracePeriodSeconds: 0 }
    const pod = podManifest({ name, image, command: ['sh', '-c', mirror], spec })
    await controller.kubectlWith(pod, 'apply', '-f', '-')
  }
  const podOf = (name: Name) =>
    eventually(`an address of ${name}`, async () => {
      const found = await read('pod', name, '{.status.phase} {.status.podIPs[1].ip}')
      return /^Running ([0-9a-f:]+)$/.exec(found)?.[1]
    })
  const endOf = async (name: Name) => (await read('node', name, '{.spec.podCIDRs[1]}')).replace(/\/64$/, '')
  return {
    sites,
    pods: { east: await podOf('east'), west: await podOf('west'), middle: await podOf('middle') },
    ends: { east: await endOf('east'), west: await endOf('west'), middle: await endOf('middle') },
  }
}

test('pods of two sites by IPv6, with a relay and without', { skip: whyNoNatSites() }, async (t) => {
  const sites = await natSites(t, settings)
  const { controller, east, west, middle } = sites
  const agents = await Promise.all([east, west, middle].map((one) => one.startAgent()))
  await controller.nodesReady(...names)
  let counts = await countOnRouters(sites, ranges.pods)
  for (const name of ['east', 'west']) await annotate(sites, name, `segment=${name}`, 'wireguard-endpoint=none')
  await annotate(sites, 'middle', 'relay=true')
  const world = await withPods(sites)

  await t.test('all reach each other, those of the sites through the relay', async (t) => {
    await reachEachOther(t, world)
    await isReported(east, 'relay middle')
    t.equal(await machineAsks(east, world.pods.west), world.ends.east, 'a machine has the address of its end')
  })
  await t.test('a Service has its endpoint at another site', (t) => useService(t, world))
  await t.test('a reboot of all without the controller', async (t) => {
    await reboot(t, world, agents)
    for (const count of counts) t.equal(await count('pods'), 0, 'no packet of a pod has left without WireGuard')
  })
  // Machines that boot have answered packets of WireGuard with ICMP until it had its port.
  counts = await countOnRouters(sites, ranges.pods)
  await t.test('large transfers and packets of the MTU of the tunnel pass', (t) => sendLarge(t, world))
  await t.test('a node sends with addresses of its own pods only', (t) => forgeInTunnel(t, world))
  const stranger = await withStranger(t, sites)
  await t.test('a stranger on the link of a node has no address of a pod elsewhere', (t) =>
    forgeOnLink(t, world, stranger),
  )
  await t.test('and reaches a Service by the node port of that node', (t) => useNodePort(t, world, stranger))
  await t.test('a NetworkPolicy selects pods of other sites', (t) => restrict(t, world))
  await t.test('nothing but WireGuard by IPv4 has passed the routers', async (t) => {
    for (const count of counts) {
      t.ok((await count('wireguard')) > 300)
      t.same([await count('pods'), await count('others'), await count('wireguard by ipv6')], [0, 0, 0])
    }
  })
  await t.test('sites that reach each other by IPv6 need no relay', (t) => withoutRelay(t, world, counts))
})

/** In both families. */
async function isReported({ networkCommand }: SiteMachine, way: string): Promise<void> {
  const row = new RegExp(`^west +\\S+ +\\S+ +${way} +in place +fd00:10:244:\\S+ +in place$`, 'm')
  await eventually(`the report has the way by ${way}`, async () => row.test((await networkCommand()).stdout))
}

async function annotate({ controller }: NatSites, node: string, ...values: readonly string[]): Promise<void> {
  await controller.kubectl('annotate', '--overwrite', 'node', node, ...values.map((value) => `bramble.dev/${value}`))
}

async function reachEachOther(t: Test, world: World): Promise<void> {
  for (const [from, to] of pairs)
    await eventually(
      `${from} reaches ${to}, with its own address`,
      async () => (await asks(world, from, world.pods[to])) === world.pods[from],
    )
  t.pass('in both directions')
}

/** The request to the Service `away`, whose endpoint is in the west. */
async function serviceRequest({ controller }: NatSites): Promise<string> {
  const address = (await controller.kubectl('get', 'service', 'away', '-o', 'jsonpath={.spec.clusterIP}')).trim()
  return requestTo('/cgi-bin/from', address, 8080)
}

async function useService(t: Test, world: World): Promise<void> {
  const { controller } = world.sites
  const service = {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'away' } },
    spec: {
      type: 'NodePort',
      ipFamilies: ['IPv6'],
      selector: { app: 'west' },
      ports: [{ port: 8080, targetPort: 80 }],
    },
  }
  await controller.kubectlWith(JSON.stringify(service), 'apply', '-f', '-')
  const request = await serviceRequest(world.sites)
  t.match(request, /fd00:10:96::/)
  await eventually('a pod reaches it, with its own address', async () => {
    return seenBy((await world.sites.inNetworkOf('east', request)).stdout) === world.pods.east
  })
}

/** With the Service of `useService`. */
async function reboot(t: Test, world: World, agents: readonly Program[]): Promise<void> {
  const { controller, controllerAgain, inNetworkOf, east, west, middle } = world.sites
  const ipv4Of = async (name: Name) =>
    (await controller.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.podIPs[0].ip}')).trim()
  const [own, other] = [await ipv4Of('east'), await ipv4Of('west')]
  const toService = await serviceRequest(world.sites)
  const places = [east, west, middle]
  const rebootedMs = performance.now()
  const again = await rebootAlone(controller, places, agents, () =>
    Promise.all(places.map((place) => place.wireguardAgain())),
  )
  for (const agent of again) networkBeforePods(t, agent, { withIPv6: true })
  await reachEachOther(t, world)
  const asksIPv4 = async () => seenByIPv4((await inNetworkOf('east', requestTo('/cgi-bin/from', other))).stdout)
  await eventually('by IPv4, too', async () => (await asksIPv4()) === own)
  await eventually('and a Service', async () => {
    return seenBy((await inNetworkOf('east', toService)).stdout) === world.pods.east
  })
  t.comment(`${Math.round((performance.now() - rebootedMs) / 1000)} s for the reboot`)
  await controllerAgain({})
  await controller.nodesReady(...names)
}

async function getLarge(t: Test, { sites, pods }: World, from: Name, to: Name): Promise<void> {
  const { stdout } = await sites.inNetworkOf(from, `${requestTo('/large', pods[to])} | wc -c`)
  t.ok(Number(stdout) > 500_000, `a large answer of ${to} is not cut at the MTU: ${stdout}`)
}

async function sendLarge(t: Test, world: World): Promise<void> {
  for (const [from, to] of pairs) await getLarge(t, world, from, to)
  const { pods } = world
  const { inNetworkOf } = world.sites
  const path = { from: 'east', to: 'west', address: pods.west }
  const learned = async () => [
    await learnedMtu(inNetworkOf, 'east', pods.west),
    await learnedMtu(inNetworkOf, 'west', pods.east),
  ]
  t.ok(await areEchoed(inNetworkOf, path, mtu), 'a packet of the MTU of the tunnel')
  t.same(await learned(), [undefined, undefined], 'is not too big for any node')
  t.ok(await areEchoed(inNetworkOf, path, 1500), 'one of the MTU of pods, in fragments')
  t.same(await learned(), [mtu, mtu], 'as their nodes answer with the MTU of the tunnel')
}

async function forgeInTunnel(t: Test, { sites: { west, middle }, pods, ends }: World): Promise<void> {
  const { counted, end } = await countDatagrams(middle, 'bramble-wg')
  const to = pods.middle
  for (const from of [pods.east, ends.east, 'fd00:10:244:ff::5', 'fd00:9::5']) await sendFrom(west, from, to)
  await sendFrom(west, `${ends.west}ff`, to)
  await eventually('those with an address of its own pods arrive', async () => (await counted())['passed'] === 5)
  t.same(await counted(), { arrived: 5, received: 0, passed: 5 }, 'and no others')
  await end()
}

const middleAddress = 'fd00:9::1'

/** On the link of the node in the middle, both with IPv6 addresses. */
async function withStranger(t: Test, { network, middle }: NatSites): Promise<Space> {
  const stranger = await plugged(t, network)
  for (const [{ run }, address] of [[middle, middleAddress] as const, [stranger, 'fd00:9::2'] as const])
    await run('ip', '-6', 'address', 'add', `${address}/64`, 'dev', 'host0', 'nodad')
  return stranger
}

async function forgeOnLink(t: Test, { sites: { middle }, pods, ends }: World, stranger: Space): Promise<void> {
  const { counted, end } = await countDatagrams(middle, 'host0')
  for (const to of [pods.middle, ends.middle]) {
    await stranger.run('ip', '-6', 'route', 'add', `${to}/128`, 'via', middleAddress)
    for (const from of [pods.east, ends.west, 'fd00:9::2']) await sendFrom(stranger, from, to)
  }
  await eventually('all arrive', async () => (await counted())['arrived'] === 30)
  t.same(await counted(), { arrived: 30, received: 5, passed: 0 }, 'the machine takes those with its own address')
  await end()
}

async function useNodePort(t: Test, { sites: { controller }, ends }: World, { tryRun }: Space): Promise<void> {
  const read = ['get', 'service', 'away', '-o', 'jsonpath={.spec.ports[0].nodePort}']
  const request = requestTo('/cgi-bin/from', middleAddress, Number(await controller.kubectl(...read)))
  await eventually(
    'an answer from the other site',
    async () => seenBy((await tryRun('sh', '-c', request)).stdout) === ends.middle,
  )
  t.pass('which sees the end of the tunnel of that node')
}

async function restrict(t: Test, world: World): Promise<void> {
  const { controller, inNetworkOf } = world.sites
  const to = world.pods.west
  const allow = (from: object) => {
    const spec = { podSelector: { matchLabels: { app: 'west' } }, ingress: [{ from: [from] }] }
    const policy = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'west' }, spec }
    return controller.kubectlWith(JSON.stringify(policy), 'apply', '-f', '-')
  }
  const reach = async (what: string, wanted: { readonly [name in 'east' | 'middle']: boolean }) => {
    for (const from of ['east', 'middle'] as const)
      await eventually(`${from}: ${what}`, async () => ((await asks(world, from, to)) === undefined) !== wanted[from])
    t.pass(what)
  }
  await allow({ podSelector: { matchLabels: { app: 'middle' } } })
  await reach('only a pod that is selected', { east: false, middle: true })
  await allow({ ipBlock: { cidr: `${world.pods.east}/128` } })
  await reach('only an address of a block', { east: true, middle: false })
  await inNetworkOf('west', 'ip -6 route flush cache')
  t.ok(await areEchoed(inNetworkOf, { from: 'east', to: 'west', address: to }, 1500), 'with large packets')
  t.equal(await learnedMtu(inNetworkOf, 'west', world.pods.east), mtu, 'whose MTU its own node answers with')
  await controller.kubectl('delete', 'networkpolicy', 'west')
  await reach('all, without a policy', { east: true, middle: true })
}

async function withoutRelay(t: Test, world: World, counts: readonly RouterCount[]): Promise<void> {
  const { sites } = world
  const { east, west, inNetworkOf } = sites
  await linkByIPv6(sites)
  await annotate(sites, 'middle', 'relay-')
  await annotate(sites, 'east', `wireguard-endpoint=[${ipv6AddressOf.east}]:51871`)
  await annotate(sites, 'west', `wireguard-endpoint=[${ipv6AddressOf.west}]:51871`)
  for (const [site, other] of [
    [east, ipv6AddressOf.west],
    [west, ipv6AddressOf.east],
  ] as const)
    await eventually(`${site.name} sends to an IPv6 address`, async () =>
      (await site.wireguard('show', 'bramble-wg', 'endpoints')).includes(`\t[${other}]:51871\n`),
    )
  await isReported(east, 'wireguard')
  await reachEachOther(t, world)
  const request = await serviceRequest(sites)
  t.ok(seenBy(await east.run('sh', '-c', request)), 'a machine that has a default route reaches a Service')
  // Until its IPv6 InternalIP is known the kernel chooses the source, which may be the bridge of its pods.
  await eventually('with the end of its tunnel', async () => {
    return seenBy(await east.run('sh', '-c', request)) === world.ends.east
  })
  await getLarge(t, world, 'east', 'west')
  await inNetworkOf('east', 'ip -6 route flush cache')
  const path = { from: 'east', to: 'west', address: world.pods.west }
  t.ok(await areEchoed(inNetworkOf, path, mtu), 'packets of its MTU fit into IPv6 packets')
  for (const count of counts) {
    t.ok((await count('wireguard by ipv6')) > 300)
    t.same([await count('pods'), await count('others')], [0, 0], 'and nothing else has passed the routers')
  }
  for (const { router } of [east, west]) await router.run('ip', 'link', 'set', 'host0', 'mtu', '1400')
  t.ok(await areEchoed(inNetworkOf, path, mtu), 'where the path has a smaller MTU, in fragments of those')
  await getLarge(t, world, 'west', 'east')
}
