/** Pods of two machines reach each other by IPv6 in a fleet that has it, by routes and by a tunnel; strangers reach none. */
import { type Test, test } from 'tap'
import { addressStations } from './support/address-stations.ts'
import { areEchoed, countDatagrams, learnedMtu, sendFrom } from './support/datagrams.ts'
import { endpointProgram } from './support/endpoint-programs.ts'
import { agentLauncher } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { mirror, requestTo, seenBy as seenByIPv4 } from './support/mirror.ts'
import { probedFrom } from './support/node-probes.ts'
import { image } from './support/pods.ts'
import type { Program } from './support/program.ts'
import { networkBeforePods, rebootAlone } from './support/reboots.ts'
import { type RoutedMachines, routedMachines, type Space, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

const both = { clusterCIDR: '10.244.0.0/16,fd00:10:244::/56', serviceCIDR: '10.96.0.0/12,fd00:10:96::/112' }
const ofIPv4 = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }

/** IPv6 address of the client, as a pod sees it. */
const seenBy = (output: string) => /from \[?([0-9a-f:]+)\]?/.exec(output)?.[1]

/** The stranger and the machines have IPv6 addresses on their link: fd00:9::1 to ::3. */
async function withAddresses(machines: RoutedMachines): Promise<void> {
  for (const [index, { run }] of [machines.first, machines.second, machines.stranger].entries())
    await run('ip', '-6', 'address', 'add', `fd00:9::${index + 1}/64`, 'dev', 'host0', 'nodad')
}

/** One pod on each machine: pod-1 on the first one, with these ports. */
async function withPods(
  { controller, first, second }: RoutedMachines,
  ownPorts: readonly { readonly containerPort: number; readonly hostPort: number; readonly hostIP?: string }[] = [],
): Promise<void> {
  for (const [name, nodeName, ports] of [
    ['pod-1', first.name, ownPorts],
    ['pod-2', second.name, []],
  ] as const) {
    const spec = { nodeName, terminationGracePeriodSeconds: 0 }
    const manifest = podManifest({ name, image, command: ['sh', '-c', mirror], spec, container: { ports } })
    await controller.kubectlWith(manifest, 'apply', '-f', '-')
  }
}

function asking(t: Test, machines: RoutedMachines) {
  const { controller, inNetworkOf } = machines
  return {
    /** Addresses of a running pod with both families. */
    addressesOf: (name: string, count = 2) =>
      eventually(`${count} addresses of ${name}`, async () => {
        const read = ['get', 'pod', name, '-o', 'jsonpath={.status.phase} {.status.podIPs[*].ip}']
        const [phase, ...ips] = (await controller.kubectl(...read)).split(' ')
        return phase === 'Running' && ips.length === count ? ips : undefined
      }).catch(async (error) => {
        t.comment(await addressStations(machines, name))
        throw error
      }),
    asks: async (pod: string, address: string) =>
      seenBy((await inNetworkOf(pod, requestTo('/cgi-bin/from', address))).stdout),
    askedBy: async ({ tryRun }: Space, address: string, port?: number) =>
      seenBy((await tryRun('sh', '-c', requestTo('/cgi-bin/from', address, port))).stdout),
  }
}

const tunnelMtu = 1450

/** While `bramble-vxlan` is there. */
async function useTunnel(t: Test, machines: RoutedMachines, [one, two]: readonly [string, string]): Promise<void> {
  const { controller, first, stranger, inNetworkOf } = machines
  const service = {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'away' } },
    spec: {
      ...{ ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
      ...{ selector: { app: 'pod-2' }, ports: [{ port: 80 }] },
    },
  }
  await controller.kubectlWith(JSON.stringify(service), 'apply', '-f', '-')
  const clusterIP = (await controller.kubectl('get', 'service', 'away', '-o', 'jsonpath={.spec.clusterIP}')).trim()
  const { asks } = asking(t, machines)
  await eventually('a Service has its endpoint behind it', async () => (await asks('pod-1', clusterIP)) === one)
  const { stdout } = await inNetworkOf('pod-1', `${requestTo('/large', two)} | wc -c`)
  t.ok(Number(stdout) > 500_000, `a large answer is not cut at the MTU: ${stdout}`)
  const path = { from: 'pod-1', to: 'pod-2', address: two }
  const learned = () => learnedMtu(inNetworkOf, 'pod-1', two)
  t.ok(await areEchoed(inNetworkOf, path, tunnelMtu), 'a packet of the MTU of the tunnel')
  t.equal(await learned(), undefined, 'is not too big')
  t.ok(await areEchoed(inNetworkOf, path, 1500), 'one of the MTU of pods, in fragments')
  t.equal(await learned(), tunnelMtu, 'as their node answers with the MTU of the tunnel')

  const [, mac = ''] = /ether (\S+)/.exec(await first.run('ip', '-o', 'link', 'show', 'bramble-vxlan')) ?? []
  const { counted, end } = await countDatagrams(first, 'bramble-vxlan')
  await stranger.run('ip', 'link', 'add', 'x', 'type', 'vxlan', 'id', '1', 'dstport', '8472', 'remote', first.address)
  await stranger.run('ip', 'link', 'set', 'x', 'up')
  await stranger.run('ip', '-6', 'route', 'add', `${one}/128`, 'dev', 'x')
  await stranger.run('ip', '-6', 'neighbour', 'add', one, 'lladdr', mac, 'dev', 'x', 'nud', 'permanent')
  await sendFrom(stranger, two, one)
  await stranger.run('ip', 'link', 'delete', 'x')
  await sendFrom(machines.second, two.replace(/[^:]+$/, 'ff'), one)
  await eventually('datagrams of a node arrive', async () => (await counted())['passed'] === 5)
  t.equal((await counted())['arrived'], 5, 'and none of a stranger')
  await end()
}

/** With the tunnel and the Service of `useTunnel`. Resolves with the agents that run then. */
async function rebootWithTunnel(
  t: Test,
  machines: RoutedMachines,
  agents: readonly Program[],
): Promise<readonly Program[]> {
  const { controller, first, second, inNetworkOf } = machines
  const { addressesOf, asks } = asking(t, machines)
  const [one, two] = [await addressesOf('pod-1'), await addressesOf('pod-2')]
  const shown = await controller.kubectl('get', 'service', 'away', '-o', 'jsonpath={.spec.clusterIPs[*]}')
  const [ipv6 = '', ipv4 = ''] = shown.trim().split(' ')
  const asksByIPv4 = async (pod: string, address = '') =>
    seenByIPv4((await inNetworkOf(pod, requestTo('/cgi-bin/from', address))).stdout)
  const rebootedMs = performance.now()
  const again = await rebootAlone(controller, [first, second], agents)
  for (const agent of again) networkBeforePods(t, agent, { withIPv6: true })
  const after = 'after a reboot without the controller'
  for (const [from, to, own] of [
    ['pod-1', two, one],
    ['pod-2', one, two],
  ] as const) {
    await eventually(`${from} has IPv4 ${after}`, async () => (await asksByIPv4(from, to[0])) === own[0])
    await eventually(`${from} has IPv6 ${after}`, async () => (await asks(from, to[1] ?? '')) === own[1])
  }
  await eventually(`a Service has IPv4 ${after}`, async () => (await asksByIPv4('pod-1', ipv4)) === one[0])
  await eventually(`a Service has IPv6 ${after}`, async () => (await asks('pod-1', ipv6)) === one[1])
  t.comment(`${Math.round((performance.now() - rebootedMs) / 1000)} s for the reboot`)
  await machines.controllerAgain()
  await controller.nodesReady(first.name, second.name)
  return again
}

test('pods of both IP families on two machines', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t, { controller: both })
  const { controller, first, second, stranger, inNetworkOf } = machines
  const { addressesOf, asks, askedBy } = asking(t, machines)
  await withAddresses(machines)
  let agents: readonly Program[] = [await first.startAgent(), await second.startAgent()]
  await controller.nodesReady(first.name, second.name)
  await withPods(machines, [
    { containerPort: 80, hostPort: 8080 },
    { containerPort: 80, hostPort: 8081, hostIP: 'fd00:9::1' },
  ])
  const [, one = ''] = await addressesOf('pod-1')
  const [, two = ''] = await addressesOf('pod-2')
  t.match([one, two], [/^fd00:10:244:/, /^fd00:10:244:/])
  const isReached = async () => (await asks('pod-1', two)) === one && (await asks('pod-2', one)) === two
  await eventually('pods reach each other by IPv6, with their own addresses', isReached).catch(async (error) => {
    const warnings = agents.flatMap(({ lines }) => lines.filter(({ level }) => level === 'warn' || level === 'error'))
    const pods = await controller.kubectl('get', 'pods', '-o', 'wide')
    t.comment(`${one} ${two}\n${pods}${await first.run('ip', '-6', 'route')}${JSON.stringify(warnings.slice(-20))}`)
    throw error
  })
  const routes = await first.run('ip', '-6', 'route', 'show', 'proto', '98')
  t.match(routes, / via fd00:9::2 dev host0/)
  t.match(routes, /^fd00:10:96::\/112 dev lo src fd00:9::1 /m, 'processes of the machine reach Services by it')
  const answered = (address: string) => eventually(`an answer of ${address}`, () => askedBy(first, address))
  t.equal(await answered(two), 'fd00:9::1', 'a machine reaches pods of the other one')
  t.ok(await answered(one), 'and its own')

  await stranger.run('ip', 'route', 'add', `${two}/128`, 'via', 'fd00:9::2')
  t.equal(await askedBy(stranger, two), undefined, 'a stranger does not reach a pod')
  t.equal(await askedBy(stranger, 'fd00:9::1', 8080), 'fd00:9::3', 'but by a host port, with its own address')
  t.equal(await askedBy(first, 'fd00:9::1', 8080), 'fd00:9::1', 'the machine itself too')
  t.equal(await askedBy(stranger, 'fd00:9::1', 8081), 'fd00:9::3', 'and by one at this address')
  t.equal(await askedBy(stranger, first.address, 8081), undefined, 'which is closed at that of IPv4')
  t.match(await first.run('ss', '-lnt', 'sport = :8080'), /0\.0\.0\.0:8080/)
  t.notMatch(await first.run('ss', '-lnt', 'sport = :8080'), /\[::\]/, 'no proxy hides it')
  await eventually(
    'a pod reaches the stranger, which has no route to it: with the address of its machine',
    async () => {
      const { stdout } = await inNetworkOf('pod-1', 'ping -6 -c 1 -W 2 fd00:9::3')
      return / 0% packet loss/.test(stdout)
    },
  )

  const isProbed = (address: string) =>
    eventually(
      `the probe of an agent by IPv6, at ${address}`,
      async () => (await probedFrom(first, address)) === 'answers',
    )
  await isProbed('fd00:9::2')
  const path = '{.status.conditions[?(@.type=="NetworkUnavailable")].message}'
  const shownOf = ({ name }: Space & { readonly name: string }) =>
    controller.kubectl('get', 'node', name, '-o', `jsonpath=${path}`)
  for (const machine of [first, second]) t.notMatch(await shownOf(machine), /has addresses of/)
  await first.run('ip', 'link', 'add', 'home', 'up', 'type', 'veth', 'peer', 'name', 'home-end')
  await first.run('ip', 'link', 'set', 'home-end', 'up')
  await first.run('ip', '-6', 'address', 'add', 'fd00:10:96::9:9/64', 'dev', 'home')
  await eventually('a prefix of the machine with addresses of Services is named', async () => {
    return /the network fd00:10:96::\/64 on home .* of serviceCIDR fd00:10:96::\/112/.test(await shownOf(first))
  })
  await first.run('ip', 'link', 'delete', 'home')

  await controller.kubectl('annotate', 'node', second.name, 'bramble.dev/segment=attic')
  for (const { run } of [first, second]) {
    await eventually('a route into the tunnel', async () => /dev bramble-vxlan/.test(await run('ip', '-6', 'route')))
  }
  await eventually('pods reach each other through the tunnel', isReached)
  await useTunnel(t, machines, [one, two])
  const ranges = ['get', 'node', second.name, '-o', 'jsonpath={.spec.podCIDRs[1]}']
  const endOfTunnel = (await controller.kubectl(...ranges)).trim().replace(/\/64$/, '')
  await isProbed(endOfTunnel)
  t.match(await answered(two), /^fd00:10:244:[0-9a-f:]*$/, 'a machine has the address of its end of the tunnel')
  agents = await rebootWithTunnel(t, machines, agents)
  await controller.kubectl('annotate', 'node', second.name, 'bramble.dev/segment-')
  const isInPlace = /pi-2 .* fd00:10:244:\S+ +in place\n/
  const shown = await eventually('a route again', async () => {
    const { stdout } = await first.tryRun(agentLauncher, 'network', '--data-dir', first.dataDir)
    return !/vxlan/i.test(stdout) && isInPlace.test(stdout) ? stdout : undefined
  })
  await eventually('pods reach each other by it', isReached)
  t.match(shown, /IPv6: pods fd00:10:244:\S+ of fd00:10:244::\/56, Services fd00:10:96::\/112\n/)

  const outside = endpointProgram(t, 'stranger', stranger.space, '::')
  const end = await outside.keepAsking({ address: 'fd00:9::1', port: 8080, path: '/cgi-bin/from', patienceMs: 10_000 })
  agents[0]?.kill('SIGKILL')
  await agents[0]?.ended
  const again = await first.startAgent()
  await eventually('the next agent has put its IPv6 rules in place', async () =>
    again.lines.some((line) => line.message === 'Rules of the network applied' && line['family'] === 'IPv6'),
  )
  const seen = [...(await end()).keys()].map((answer) => seenBy(answer) ?? answer)
  t.same([...new Set(seen)], ['fd00:9::3'], 'a host port answers while an agent is replaced')

  await again.stop()
  await agents[1]?.stop()
  await first.run(agentLauncher, 'network', '--remove', '--data-dir', first.dataDir)
  t.equal(await first.run('ip', '-6', 'route', 'show', 'proto', '98'), '')
  t.notMatch(await first.run('nft', 'list', 'ruleset'), /table ip6? bramble/)
  t.equal((await first.run('cat', '/proc/sys/net/ipv6/conf/all/forwarding')).trim(), '0')
  t.equal((await first.run('cat', '/proc/sys/net/ipv6/conf/host0/accept_ra')).trim(), '1')
})

test('a fleet gets IPv6 and gives it up, and a machine has it off', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t, { controller: ofIPv4 })
  const { controller, first, second } = machines
  const { addressesOf, asks } = asking(t, machines)
  await withAddresses(machines)
  await second.run('sysctl', '-q', '-w', 'net.ipv6.conf.all.disable_ipv6=1')
  await first.startAgent()
  await second.startAgent()
  await controller.nodesReady(first.name, second.name)
  await withPods(machines)
  await addressesOf('pod-1', 1)
  await addressesOf('pod-2', 1)
  t.match(
    await first.run('nft', 'list', 'table', 'ip6', 'bramble'),
    /iifname "br-\w+" drop/,
    'without IPv6 it is dropped',
  )

  await controller.program.stop()
  const dual = await machines.controllerAgain(both)
  const [, one = ''] = await addressesOf('pod-1')
  t.match(one, /^fd00:10:244:/)
  const rules = await first.run('nft', 'list', 'table', 'ip6', 'bramble')
  t.match(rules, /chain peers-forward/)
  t.notMatch(rules, /iifname "br-\w+" drop/)
  await eventually('the message of the Node', async () => {
    const path = '{.status.conditions[?(@.type=="NetworkUnavailable")].message}'
    const message = await dual.kubectl('get', 'node', second.name, '-o', `jsonpath=${path}`)
    return /This machine has IPv6 off/.test(message)
  })
  const [two = ''] = await addressesOf('pod-2', 1)
  await eventually('IPv4 works', async () => (await asks('pod-1', two)) !== undefined)

  await dual.program.stop()
  await machines.controllerAgain(ofIPv4)
  await addressesOf('pod-1', 1)
  await eventually('nothing of IPv6 is left', async () => {
    const routes = await first.run('ip', '-6', 'route', 'show', 'proto', '98')
    const table = await first.run('nft', 'list', 'table', 'ip6', 'bramble')
    const forwarding = (await first.run('cat', '/proc/sys/net/ipv6/conf/all/forwarding')).trim()
    return routes === '' && forwarding === '0' && /iifname "br-\w+" drop/.test(table)
  })
})
