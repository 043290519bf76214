/** Pods of two machines reach each other by their addresses, whatever is restarted; another machine on the link reaches none. */
import { isDeepStrictEqual } from 'node:util'
import { type Test, test } from 'tap'
import { agentLauncher } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { mirror, requestTo, seenBy } from './support/mirror.ts'
import { image } from './support/pods.ts'
import { networkBeforePods, rebootAlone } from './support/reboots.ts'
import { type RoutedMachines, routedMachines, type Space, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

/** One pod on each machine: pod-1 on the first one, with a host port. */
async function withPods(machines: RoutedMachines) {
  const { controller, first, second } = machines
  const agents = [await first.startAgent(), await second.startAgent()] as const
  await controller.nodesReady(first.name, second.name)
  for (const [name, nodeName, port] of [
    ['pod-1', first.name, { hostPort: 8080 }],
    ['pod-2', second.name, {}],
  ] as const) {
    const ports = [{ containerPort: 80, ...port }]
    const spec = { nodeName, terminationGracePeriodSeconds: 0 }
    await controller.kubectlWith(
      podManifest({ name, image, command: ['sh', '-c', mirror], spec, container: { ports } }),
      ...['apply', '-f', '-'],
    )
  }
  const addressOf = (name: string) =>
    eventually(`an address of ${name}`, async () => {
      const read = ['get', 'pod', name, '-o', 'jsonpath={.status.phase} {.status.podIP}']
      return /^Running ([\d.]+)$/.exec(await controller.kubectl(...read))?.[1]
    })
  /** Source address of a request from this pod, as the other pod sees it. */
  const asks = async (pod: string, address: string, port?: number) =>
    seenBy((await machines.inNetworkOf(pod, requestTo('/cgi-bin/from', address, port))).stdout)
  const askedBy = async ({ tryRun }: Space, address: string, port?: number) =>
    seenBy((await tryRun('sh', '-c', requestTo('/cgi-bin/from', address, port))).stdout)
  return {
    agents,
    addressOf,
    asks,
    askedBy,
    pods: [await addressOf('pod-1'), await addressOf('pod-2')] as const,
  }
}

test('pods of two machines on one link', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t)
  const { controller, first, second, stranger } = machines
  const { agents, addressOf, asks, askedBy, pods } = await withPods(machines)
  let [one, two] = pods
  const bothWays = async (why: string) => {
    t.equal(await asks('pod-1', two), one, `pod-1 to pod-2, ${why}`)
    t.equal(await asks('pod-2', one), two, `pod-2 to pod-1, ${why}`)
  }

  /** The network of a pod is there before its container answers. */
  const backAgain = async () => {
    ;[one, two] = [await addressOf('pod-1'), await addressOf('pod-2')]
    return (await asks('pod-1', two)) === one && (await asks('pod-2', one)) === two
  }

  await eventually('programs listen, and routes are there', backAgain)
  await bothWays('with their own addresses')
  t.equal(await askedBy(first, two), first.address, 'a machine reaches pods of the other one')
  t.ok(await asks('pod-1', first.address, 8080), 'a pod reaches its own host port')
  for (const [pod, { address }] of [
    [one, first],
    [two, second],
  ] as const) {
    await stranger.run('ip', 'route', 'add', `${pod}/32`, 'via', address)
    t.equal(await askedBy(stranger, pod), undefined, 'a stranger does not reach a pod')
  }
  t.equal(await askedBy(stranger, first.address, 8080), stranger.address, 'a stranger reaches a host port')
  await first.run('ip', '-6', 'address', 'add', 'fd00:9::1/64', 'dev', 'host0', 'nodad')
  await stranger.run('ip', '-6', 'address', 'add', 'fd00:9::2/64', 'dev', 'host0', 'nodad')
  await stranger.run('ping', '-6', '-q', '-c', '1', 'fd00:9::1')
  const { code } = await stranger.tryRun('timeout', '3', 'bash', '-c', '</dev/tcp/fd00:9::1/8080')
  t.not(code, 0, 'and none by IPv6, which policies do not see')

  // The command reads the checkpoint, which is written some time after the routes.
  const shows = async (what: string, pattern: RegExp, ...args: readonly string[]) =>
    await eventually(what, async () =>
      pattern.test(await second.run(agentLauncher, 'network', ...args, '--data-dir', second.dataDir)),
    )
  await shows('the route to the pods of a node', /pi-1 +10\.\S+ +\S+ +route +in place\n/)
  await shows('the path to an address', new RegExp(`${one} +pi-1 +yes +route by ${first.address}\n`), one)

  const rulesOf = ({ run }: Space) => run('nft', 'list', 'ruleset')
  for (const { run } of [first, second]) await run('nft', 'flush', 'ruleset')
  t.notMatch(await rulesOf(first), /table ip bramble/, 'a program flushed the firewall')
  await eventually('pods are back after the firewall was flushed', backAgain)
  for (const machine of [first, second]) {
    await eventually('the rules of the agent are back', async () => /table ip bramble/.test(await rulesOf(machine)))
  }
  for (const pod of [one, two]) {
    t.equal(await askedBy(stranger, pod), undefined, 'a stranger does not reach a pod after the firewall was flushed')
  }
  for (const { docker } of [first, second]) await docker.restart()
  await eventually('pods are back after a restart of Docker', backAgain)

  agents[0].kill('SIGKILL')
  await agents[0].ended
  await bothWays('while an agent is dead')

  await controller.program.stop()
  await agents[1].stop()
  for (const { run } of [first, second]) {
    await run('ip', 'route', 'flush', 'proto', '98')
    await run('nft', 'flush', 'ruleset')
  }
  for (const { docker } of [first, second]) await docker.restart()
  const again = [await first.startAgent(), await second.startAgent()]
  for (const agent of again) {
    await agent.logged('Container started')
    const order = agent.lines.map(({ message }) => message)
    t.ok(order.indexOf('Rules of the network applied') < order.indexOf('Container started'), 'rules before pods')
    t.ok(order.indexOf('Routes to pods changed') < order.indexOf('Container started'), 'routes before pods')
  }
  await machines.controllerAgain()
  await controller.nodesReady(first.name, second.name)
  await eventually('pods are back after a start without the controller', backAgain)

  await controller.kubectl('delete', 'pod', 'pod-1', 'pod-2', '--now')
  for (const agent of again) await agent.stop()
  await first.run(agentLauncher, 'network', '--remove', '--data-dir', first.dataDir)
  t.equal(await first.run('ip', 'route', 'show', 'proto', '98'), '')
  t.notMatch(await first.run('iptables-save'), /0x8000/)
  t.notMatch(await first.run('nft', 'list', 'ruleset'), /table ip6? bramble/)
  t.notMatch(await first.run('ip', 'address', 'show', 'dev', 'lo'), /169\.254/)
})

/** Reads them until they are these: Docker changes some a moment after the pod, or the container, is gone. */
async function haveRules(t: Test, machine: Space, rules: readonly string[], when: string): Promise<void> {
  let last: readonly string[] = []
  const areThese = async () => {
    last = await otherRules(machine)
    return isDeepStrictEqual(last, rules)
  }
  await eventually(`rules are as before ${when}`, areThese).catch(() => undefined)
  t.same(last, rules, when)
}

/** Those of Docker and of the user, but for the bridge that Docker makes for the pods, the one rule of the network, and its tables. */
async function otherRules({ run }: Space): Promise<readonly string[]> {
  const ruleset = (await run('nft', 'list', 'ruleset')).replace(/^table ip6? bramble \{\n[\s\S]*?^\}\n/gm, '')
  return `${await run('iptables-save')}${ruleset}`
    .split('\n')
    .filter((line) => !/^#|br-[0-9a-f]{12}|0x0*8000/.test(line))
    .map((line) => line.replace(/\[\d+:\d+\]/, '').replace(/counter packets \d+ bytes \d+/, 'counter'))
}

/** A Service with a node port, a NetworkPolicy for a pod of the first machine, and a tunnel: resolves when the rules of all are there. */
async function useAll({ controller, first, second }: RoutedMachines): Promise<void> {
  const spec = { nodeName: first.name, terminationGracePeriodSeconds: 0 }
  const policy = {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'web' } },
    spec: { podSelector: { matchLabels: { app: 'pod-3' } }, ingress: [{ ports: [{ port: 80 }] }] },
  }
  const pod = podManifest({ name: 'pod-3', image, command: ['sh', '-c', mirror], spec })
  for (const text of [JSON.stringify(policy), pod]) await controller.kubectlWith(text, 'apply', '-f', '-')
  await controller.kubectl('expose', 'pod', 'pod-2', '--name=web', '--type=NodePort', '--port=80')
  await controller.kubectl('annotate', 'node', second.name, 'bramble.dev/segment=attic')
  const port = (await controller.kubectl('get', 'service', 'web', '-o', 'jsonpath={.spec.ports[0].nodePort}')).trim()
  await eventually('rules of the Service and the policy, and the tunnel, are there', async () => {
    const rules = await first.run('nft', 'list', 'table', 'ip', 'bramble')
    const hasTunnel = /dev bramble-vxlan/.test(await first.run('ip', 'route'))
    return hasTunnel && rules.includes(port) && rules.includes('default/pod-3') && rules.includes('bramble-vxlan')
  })
}

test('rules of Docker and of the user stay as they were', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t)
  const { controller, first } = machines
  await first.run('iptables', '--wait', '--append', 'INPUT', '--protocol', 'tcp', '--dport', '9', '--jump', 'DROP')
  await first.run('nft', 'add table inet house; add chain inet house in { type filter hook input priority 5 ; }')
  await first.docker.restart()
  const before = await otherRules(first)
  t.match(
    before.join('\n'),
    /table inet house[\s\S]*dport 9 |dport 9 [\s\S]*table inet house/,
    'those of the user are among them',
  )
  const { addressOf, agents } = await withPods(machines)
  await addressOf('pod-1')
  await controller.kubectl('delete', 'pod', 'pod-1', '--now')
  await useAll(machines)
  await haveRules(t, first, before, 'with routes, a tunnel and rules in place')
  await first.docker.restart()
  await eventually('the rule among those of Docker is there', async () =>
    (await first.run('iptables-save')).includes('0x8000'),
  )
  await haveRules(t, first, before, 'after a restart of Docker')
  await agents[0].stop()
  await first.run(agentLauncher, 'network', '--remove', '--data-dir', first.dataDir)
  await haveRules(t, first, before, 'after the removal')
  t.notMatch(`${await first.run('iptables-save')}${await first.run('nft', 'list', 'tables')}`, /0x8000|bramble/)
})

/** Packets with their headers that did not fit into a link. */
async function fragmentsOf({ run }: Space): Promise<number> {
  const [names = '', values = ''] = (await run('grep', '^Ip:', '/proc/net/snmp')).split('\n')
  return Number(values.split(' ')[names.split(' ').indexOf('FragCreates')])
}

/** While the tunnel is there: both links get a smaller MTU, and the usual one again. `pods`: each, and the address of the other one. */
async function followLinks(t: Test, machines: RoutedMachines, pods: readonly (readonly [string, string])[]) {
  const places = [machines.first, machines.second]
  const tunnelsHave = (mtu: number) =>
    eventually(`the tunnels have an MTU of ${mtu}`, async () => {
      const shown = await Promise.all(places.map(({ run }) => run('ip', '-o', 'link', 'show', 'bramble-vxlan')))
      return shown.every((text) => text.includes(` mtu ${mtu} `))
    })
  const linksGet = async (mtu: number) => {
    for (const { run } of places) await run('ip', 'link', 'set', 'host0', 'mtu', `${mtu}`)
  }
  await tunnelsHave(1450)
  await linksGet(1400)
  await tunnelsHave(1350)
  const before = await Promise.all(places.map(fragmentsOf))
  const echo = (pod: string, other: string, bytes: number, ...more: readonly string[]) =>
    machines.inNetworkOf(pod, `ping -c 1 -W 5 -s ${bytes - 28} ${more.join(' ')} ${other}`)
  for (const [pod, other] of pods) {
    const { stdout: size } = await machines.inNetworkOf(pod, `${requestTo('/large', other)} | wc -c`)
    t.ok(Number(size) > 500_000, `a large answer to ${pod} with links of 1400: ${size}`)
    t.equal((await echo(pod, other, 1350, '-M', 'do')).code, 0, 'a packet of the MTU is echoed')
    const tooLarge = await echo(pod, other, 1351, '-M', 'do')
    t.match(`${tooLarge.stdout}${tooLarge.stderr}`, /mtu ?= ?1350/, 'a pod is answered with the MTU of the tunnel')
  }
  t.same(await Promise.all(places.map(fragmentsOf)), before, 'no packet of the tunnel was too large for its link')
  for (const [pod, other] of pods) t.equal((await echo(pod, other, 9000)).code, 0, 'larger ones pass in fragments')
  await linksGet(1500)
  await tunnelsHave(1450)
}

/** `isReached`: whether a pod of the first machine reaches one of the second. */
async function changeMachines({ first, second, network }: RoutedMachines, isReached: () => Promise<boolean>) {
  const gateway = `ip route replace default via ${network.hostAddress}`
  const other = second.address.replace(/\d+$/, '77')
  const readdress = `ip address del ${second.address}/24 dev host0; ip address add ${other}/24 dev host0; ${gateway}`
  await second.run('sh', '-c', readdress)
  await eventually('the other node has its address', async () =>
    (await first.run('ip', 'route')).includes(`via ${other}`),
  )
  await eventually('pods are reached at the other address', isReached)

  await second.run('sh', '-c', `ip link set host0 down; ip link set host0 up; ${gateway}`)
  await eventually('routes are back with their link', isReached)

  await first.run('nft', 'delete', 'table', 'ip', 'bramble')
  await first.run('iptables', '--wait', '--delete', 'DOCKER-USER', '1')
  await eventually('rules that another program removed are back', async () => {
    const rules = `${await first.run('nft', 'list', 'tables')}${await first.run('iptables-save')}`
    return /^table ip bramble$/m.test(rules) && rules.includes('0x8000')
  })
  await eventually('pods are reached by them', isReached)
}

test('pods of two machines on different links', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t, { seesLinks: true })
  const { controller, first, second, stranger } = machines
  const { agents, asks, askedBy, pods } = await withPods(machines)
  const [one, two] = pods
  await controller.kubectl('annotate', 'node', second.name, 'bramble.dev/segment=attic')
  for (const { run } of [first, second]) {
    await eventually('a route into the tunnel', async () => /dev bramble-vxlan/.test(await run('ip', 'route')))
  }
  // The rules that let packets out of the tunnel come from another loop than its routes.
  const isReached = async () => (await asks('pod-1', two)) === one && (await asks('pod-2', one)) === two
  await eventually('pods reach each other through the tunnel, with their own addresses', isReached)
  t.equal(await askedBy(first, two), one.replace(/\d+$/, '0'), 'a machine has the address of its end of the tunnel')
  const { stdout } = await machines.inNetworkOf('pod-1', `${requestTo('/large', two)} | wc -c`)
  t.ok(Number(stdout) > 500_000, `a large answer is not cut at the MTU: ${stdout}`)
  await followLinks(t, machines, [
    ['pod-1', two],
    ['pod-2', one],
  ])

  await controller.kubectl('expose', 'pod', 'pod-2', '--name=away', '--port=80')
  const clusterIP = await controller.kubectl('get', 'service', 'away', '-o', 'jsonpath={.spec.clusterIP}')
  await eventually('a Service has its endpoint behind the tunnel', async () => (await asks('pod-1', clusterIP)) === one)
  const rebootedMs = performance.now()
  for (const agent of await rebootAlone(controller, [first, second], agents)) networkBeforePods(t, agent)
  await eventually('pods reach each other after a reboot without the controller', isReached)
  await eventually('and a Service of the other one', async () => (await asks('pod-1', clusterIP)) === one)
  t.comment(`${Math.round((performance.now() - rebootedMs) / 1000)} s for the reboot`)
  await machines.controllerAgain()
  await controller.nodesReady(first.name, second.name)

  await stranger.run('ip', 'link', 'add', 'x', 'type', 'vxlan', 'id', '1', 'dstport', '8472', 'remote', first.address)
  await stranger.run('ip', 'address', 'add', '10.244.99.1/32', 'dev', 'x')
  await stranger.run('ip', 'link', 'set', 'x', 'up')
  await stranger.run('ip', 'route', 'add', `${one}/32`, 'dev', 'x', 'src', '10.244.99.1')
  t.equal(await askedBy(stranger, one), undefined, 'a stranger cannot send packets into the tunnel')

  await controller.kubectl('annotate', 'node', second.name, 'bramble.dev/segment-')
  for (const { run } of [first, second]) {
    await eventually('the tunnel is closed', async () => !/bramble-vxlan/.test(await run('ip', 'link')))
  }
  await eventually('pods reach each other by a route again', isReached)

  await t.test('a machine whose address, link or rules change', () => changeMachines(machines, isReached))
})

test('a fleet turns its network on, and off again', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t, { controller: { podNetwork: 'node' } })
  const { controller, first } = machines
  const { asks, addressOf, pods } = await withPods(machines)
  t.equal(await asks('pod-1', pods[1]), undefined, 'pods of different nodes do not reach each other')
  await controller.program.stop()
  const routed = await machines.controllerAgain({ podNetwork: 'routed' })
  const reached = async () => {
    const [one, two] = [await addressOf('pod-1'), await addressOf('pod-2')]
    return (await asks('pod-1', two)) === one
  }
  await eventually('pods are started again, on a network with routes', reached)
  await routed.program.stop()
  await machines.controllerAgain({ podNetwork: 'node' })
  await eventually('nothing is left of it', async () => {
    const routes = await first.run('ip', 'route', 'show', 'proto', '98')
    const rules = `${await first.run('nft', 'list', 'tables')}${await first.run('iptables-save')}`
    return routes === '' && !/bramble|0x8000/.test(rules)
  })
  await eventually('pods are on a network without routes again', async () => {
    const filters = JSON.stringify({ label: ['bramble.dev/node'] })
    const networks = await first.docker.docker.listNetworks({ filters })
    await addressOf('pod-1')
    return networks.length === 1 && networks.every(({ Name }) => !Name.endsWith('_routed'))
  })
})
