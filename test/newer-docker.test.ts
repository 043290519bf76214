/**
 * Docker of two machines is upgraded to the newest that Debian has: pods of both families are reached as before by nodes and clients, and by
 * no stranger.
 */
import { type Test, test } from 'tap'
import { newestDockerRoot, whyNoDockerRoot } from './support/docker-root.ts'
import { podManifest } from './support/manifests.ts'
import { mirror, requestTo } from './support/mirror.ts'
import { image } from './support/pods.ts'
import { type RoutedMachines, routedMachines, type Space, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

const both = { clusterCIDR: '10.244.0.0/16,fd00:10:244::/56', serviceCIDR: '10.96.0.0/12,fd00:10:96::/112' }
const families = ['IPv4', 'IPv6'] as const
type Family = (typeof families)[number]
type Addresses = Readonly<Record<Family, string>>

/** Address of the client, of either family, as a pod sees it. */
const seenBy = (output: string) => /from \[?(?:::ffff:)?([0-9a-f.:]+)\]?/.exec(output)?.[1]

/** The stranger and the machines have IPv6 addresses on their link. */
async function linkAddresses({ first, second, stranger }: RoutedMachines) {
  const of = async ({ run, address }: Space, last: number): Promise<Addresses> => {
    await run('ip', '-6', 'address', 'add', `fd00:9::${last}/64`, 'dev', 'host0', 'nodad')
    return { IPv4: address, IPv6: `fd00:9::${last}` }
  }
  return { first: await of(first, 1), second: await of(second, 2), stranger: await of(stranger, 3) }
}

/** pod-1 on the first machine, with a host port, and pod-2 on the second one, behind a Service. */
async function withPods({ controller, first, second }: RoutedMachines): Promise<void> {
  for (const [name, nodeName, port] of [
    ['pod-1', first.name, { hostPort: 8080 }],
    ['pod-2', second.name, {}],
  ] as const) {
    const ports = [{ containerPort: 80, ...port }]
    const spec = { nodeName, terminationGracePeriodSeconds: 0 }
    const manifest = podManifest({ name, image, command: ['sh', '-c', mirror], spec, container: { ports } })
    await controller.kubectlWith(manifest, 'apply', '-f', '-')
  }
  const service = {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } },
    spec: {
      ...{ type: 'NodePort', ipFamilyPolicy: 'RequireDualStack', selector: { app: 'pod-2' } },
      ports: [{ port: 80, nodePort: 30080 }],
    },
  }
  await controller.kubectlWith(JSON.stringify(service), 'apply', '-f', '-')
}

function asking({ controller, inNetworkOf }: RoutedMachines) {
  const pair = (text: string): Addresses | undefined => {
    const [IPv4 = '', IPv6 = ''] = text.trim().split(' ')
    return IPv6 === '' ? undefined : { IPv4, IPv6 }
  }
  return {
    addressesOf: (name: string) =>
      eventually(`both addresses of ${name}`, async () => {
        const read = ['get', 'pod', name, '-o', 'jsonpath={.status.phase} {.status.podIPs[*].ip}']
        const [, ips = ''] = /^Running (.+)$/.exec(await controller.kubectl(...read)) ?? []
        return pair(ips)
      }),
    clusterIPs: () =>
      eventually('both addresses of the Service', async () =>
        pair(
          await controller.kubectl(
            'get',
            'service',
            'web',
            '-o',
            'jsonpath={.spec.clusterIPs[0]} {.spec.clusterIPs[1]}',
          ),
        ),
      ),
    asks: async (pod: string, address: string) =>
      seenBy((await inNetworkOf(pod, requestTo('/cgi-bin/from', address))).stdout),
    askedBy: async ({ tryRun }: Space, address: string, port?: number) =>
      seenBy((await tryRun('sh', '-c', requestTo('/cgi-bin/from', address, port))).stdout),
  }
}

/** As a machine does that forwards since Docker has started: its pods need nothing but what is accepted. */
async function dropForwarded({ first, second }: RoutedMachines): Promise<void> {
  for (const { run } of [first, second])
    for (const tool of ['iptables', 'ip6tables']) await run(tool, '--wait', '--policy', 'FORWARD', 'DROP')
}

type Links = Awaited<ReturnType<typeof linkAddresses>>

/** Once pods run: what they, the machines and the stranger reach, and the addresses that are seen. */
async function reachEachOther(t: Test, machines: RoutedMachines, links: Links, when: string): Promise<void> {
  const { first, stranger } = machines
  const { addressesOf, clusterIPs, asks, askedBy } = asking(machines)
  const [one, two] = [await addressesOf('pod-1'), await addressesOf('pod-2')]
  const service = await clusterIPs()
  for (const family of families) {
    const isReached = async () =>
      (await asks('pod-1', two[family])) === one[family] && (await asks('pod-2', one[family])) === two[family]
    await eventually(`pods of two machines reach each other by ${family} ${when}`, isReached)
    await eventually(`the Service is reached by ${family} ${when}`, async () => {
      return (await asks('pod-1', service[family])) === one[family]
    })
    const what = `${family}, ${when}`
    t.equal(await askedBy(first, two[family]), links.first[family], `a machine reaches a pod of the other one: ${what}`)
    t.equal(await askedBy(stranger, links.first[family], 8080), links.stranger[family], `a host port: ${what}`)
    for (const node of [links.first, links.second])
      t.ok(await askedBy(stranger, node[family], 30080), `a node port of each machine: ${what}`)
  }
  await strangersReachNone(t, stranger, when, [
    [one, links.first],
    [two, links.second],
  ])
}

/** Each waits for some time: all at once. */
async function strangersReachNone(
  t: Test,
  stranger: Space,
  when: string,
  pods: readonly (readonly [Addresses, Addresses])[],
): Promise<void> {
  const tried = pods.flatMap(([pod, gateway]) => families.map((family) => ({ pod: pod[family], via: gateway[family] })))
  for (const { pod, via } of tried) await stranger.run('ip', 'route', 'replace', pod, 'via', via)
  const answers = await Promise.all(
    tried.map(async ({ pod }) => (await stranger.tryRun('sh', '-c', requestTo('/cgi-bin/from', pod))).stdout),
  )
  t.same(answers, ['', '', '', ''], `a stranger reaches no pod ${when}`)
}

test('Docker is upgraded to the newest of Debian', { skip: whyNoRoutedMachines() || whyNoDockerRoot() }, async (t) => {
  const root = await newestDockerRoot()
  const machines = await routedMachines(t, { controller: both })
  const { controller, first, second } = machines
  const links = await linkAddresses(machines)
  const agents = [await first.startAgent(), await second.startAgent()]
  await controller.nodesReady(first.name, second.name)
  await withPods(machines)
  await reachEachOther(t, machines, links, 'before')

  const versionOf = async () => (await first.docker.docker.version()).Version
  const before = await versionOf()
  for (const { docker } of [first, second]) await docker.replaceBy(root)
  await dropForwarded(machines)
  const now = await versionOf()
  t.comment(`Docker ${before}, then ${now}`)
  t.not(now, before)
  await reachEachOther(t, machines, links, `with Docker ${now}`)

  for (const { docker } of [first, second]) await docker.restart()
  await reachEachOther(t, machines, links, `after a restart of Docker ${now}`)
  t.match(await first.run('ip6tables', '--list-rules', 'DOCKER-USER'), /0x8000/, 'Docker has IPv6 rules')
  for (const agent of agents) await agent.stop()
})
