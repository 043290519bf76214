/** Two nodes on one link, and a stranger on it; and what must stay true of them under every attack of the stranger. */
import { readdir, readFile } from 'node:fs/promises'
import type { Test } from 'tap'
import { inSpace } from '../../support/machine-commands.ts'
import { podManifest } from '../../support/manifests.ts'
import { image } from '../../support/pods.ts'
import type { Program } from '../../support/program.ts'
import { type RoutedMachines, routedMachines, type Space, sandboxPid } from '../../support/routed-machines.ts'
import { eventually } from '../../support/wait.ts'
import { allowedMs, unnoticedBy } from './attacked-fleet.ts'
import { type LanAttack, lanAttack } from './lan-attacker.ts'
import { type NameSample, namesDuring } from './name-monitor.ts'

export type AttackedLink = Awaited<ReturnType<typeof attackedLink>>

const mostGrowthMiB = 64
/** Sockets and files that an agent has open, more than before. */
const mostGrowthFiles = 100
/** In one attack. */
const mostLogged = 20_000

/** Both nodes are Ready and publish their names; a pod of the first one is behind a load balancer with an address of a pool. */
export async function attackedLink(t: Test) {
  const fleet = await routedMachines(t, {
    controller: ({ hostAddress }) => ({ loadBalancerPool: [balancerOf(hostAddress)] }),
    agents: { multicastDNS: {} },
  })
  const { controller, first, second, stranger } = fleet
  const [node, other] = await Promise.all([first.startAgent(), second.startAgent()])
  await controller.nodesReady(first.name, second.name)
  const pod = await servedPod(fleet)
  const hasRoute = async () => (await first.run('ip', 'route')).includes(`via ${second.address} `)
  await eventually('a route to the other machine', hasRoute)
  // Addresses that it only forges are not announced, and not answered for.
  for (const setting of ['arp_ignore=1', 'arp_announce=2', 'rp_filter=0'])
    await stranger.run('sysctl', '--quiet', '--write', `net.ipv4.conf.all.${setting}`)
  const logLength = () => JSON.stringify([node.lines, controller.program.lines]).length
  return {
    ...fleet,
    ...pod,
    balancer: balancerOf(first.address),
    /** The agents of both nodes. */
    node,
    other,
    hasRoute,
    logLength,
    attack: (one: LanAttack) => lanAttack(inSpace(stranger.space), one),
    /** From the network of the pod of the first node. */
    attackAsPod: (one: LanAttack) => lanAttack(['nsenter', `--net=/proc/${pod.podPid}/ns/net`], one),
    /** The stranger has these addresses, too, while `attack` takes place. */
    disguised: <T>(addresses: readonly string[], attack: () => Promise<T>) => disguised(stranger, addresses, attack),
    cpuSeconds: (attack: () => Promise<void>) => cpuSecondsDuring(node, attack),
    memory: watchedMemory(t, { agent: node, controller: controller.program }),
    /** As of `AttackedFleet`; names are answered as fast, too, and the attack is not logged line by line. */
    async unnoticed(t: Test, attack: () => Promise<void>) {
      const before = logLength()
      let samples: readonly NameSample[] = []
      const busy = await unnoticedBy(t, controller.kubeconfig, async () => {
        samples = await namesDuring(first.space, `${first.name}.node.cluster.local`, attack)
      })
      judgeNames(t, samples, { address: first.address, withinMs: allowedMs * busy })
      t.ok(logLength() - before < mostLogged, `${logLength() - before} characters are logged`)
    },
  }
}

function balancerOf(address: string): string {
  return address.replace(/\d+$/, '240')
}

async function servedPod({ controller, first }: RoutedMachines) {
  const labels = { app: 'web' }
  const spec = { nodeName: first.name, terminationGracePeriodSeconds: 0 }
  const apply = (text: string) => controller.kubectlWith(text, 'apply', '-f', '-')
  await apply(podManifest({ name: 'web', image, labels, command: ['sleep', '100000'], spec }))
  const ports = [{ port: 80, targetPort: 8080 }]
  const service = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', selector: labels, ports }
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: service }))
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  await eventually('the address of the load balancer', async () =>
    (await first.run('ip', 'address', 'show', 'dev', 'lo')).includes(` ${balancerOf(first.address)}/32 `),
  )
  const read = async (what: string, path: string) =>
    await controller.kubectl('get', ...what.split(' '), '-o', `jsonpath=${path}`)
  const podPid = await sandboxPid(first.docker, 'web')
  if (podPid === undefined) throw new Error('The pod has no network')
  return {
    podPid,
    podAddress: await read('pod web', '{.status.podIP}'),
    healthCheckPort: Number(await read('service web', '{.spec.healthCheckNodePort}')),
  }
}

async function disguised<T>(
  { run, tryRun }: Space,
  addresses: readonly string[],
  attack: () => Promise<T>,
): Promise<T> {
  const change = (verb: string) => addresses.map((one) => `ip address ${verb} ${one}/32 dev lo`).join('; ')
  await run('sh', '-c', change('add'))
  try {
    return await attack()
  } finally {
    await tryRun('sh', '-c', change('delete'))
  }
}

function judgeNames(
  t: Test,
  samples: readonly NameSample[],
  { address, withinMs }: { readonly address: string; readonly withinMs: number },
): void {
  const took = samples.map(({ tookMs = Number.POSITIVE_INFINITY }) => tookMs).sort((a, b) => a - b)
  const worst = took.at(-1) ?? Number.POSITIVE_INFINITY
  const lost = samples.reduce((sum, one) => sum + one.lost, 0)
  t.comment(
    `${samples.length} names: half within ${took[took.length >> 1]?.toFixed(1)} ms, the slowest ${worst.toFixed(0)} ms; ${lost} questions lost`,
  )
  t.ok(samples.length > 0, 'a program of the node asks for a name')
  t.same(
    samples.filter((one) => one.address !== address),
    [],
    'each question is answered',
  )
  t.ok(worst <= withinMs, `within ${withinMs.toFixed(0)} ms: ${worst.toFixed(0)} ms`)
}

/** Processor time of all threads of the program, in seconds. */
async function cpuSecondsDuring({ pid }: Program, attack: () => Promise<void>): Promise<number> {
  const used = async () => {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8')
    // After the name, which may have spaces: utime and stime are the fields 14 and 15 (proc(5)), in ticks of 10 ms.
    const [user, system] = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
    return (Number(user) + Number(system)) / 100
  }
  const before = await used()
  await attack()
  return (await used()) - before
}

/** Looks every second; the function judges. A program that has ended fails. */
function watchedMemory(t: Test, programs: { readonly [name: string]: Program }) {
  const seen = new Map<string, number[]>()
  const files = new Map<string, number[]>()
  const add = (to: Map<string, number[]>, name: string, value: number) => to.set(name, [...(to.get(name) ?? []), value])
  const look = async () => {
    for (const [name, { pid }] of Object.entries(programs)) {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
      add(seen, name, Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
      add(files, name, (await readdir(`/proc/${pid}/fd`).catch(() => [])).length)
    }
  }
  const timer = setInterval(() => void look(), 1_000)
  t.teardown(() => clearInterval(timer))
  return async (t: Test) => {
    await look()
    for (const [name, [first = 0, ...mib]] of seen) {
      const most = Math.max(...mib)
      t.ok(most - first < mostGrowthMiB, `${name}: ${first.toFixed(0)} MiB before, at most ${most.toFixed(0)} MiB`)
    }
    for (const [name, [first = 0, ...counts]] of files) {
      const most = Math.max(...counts)
      t.ok(most - first < mostGrowthFiles, `${name}: ${first} open files before, at most ${most}`)
    }
  }
}
