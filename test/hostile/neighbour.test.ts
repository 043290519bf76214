/** A pod on the bridge of other pods, with all rights in its own network: it does not get what they send. */
import { type Test, test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image, listening } from '../support/pods.ts'
import { type RoutedMachines, routedMachines, whyNoRoutedMachines } from '../support/routed-machines.ts'
import { eventually } from '../support/wait.ts'
import { unnoticedBy } from './support/attacked-fleet.ts'

const both = { clusterCIDR: '10.244.0.0/16,fd00:10:244::/56', serviceCIDR: '10.96.0.0/12,fd00:10:96::/112' }

/** On the first machine. */
async function withPods({ controller, first }: RoutedMachines, ...names: readonly string[]): Promise<void> {
  const spec = { nodeName: first.name, terminationGracePeriodSeconds: 0 }
  for (const name of names)
    await controller.kubectlWith(podManifest({ name, image, command: listening, spec }), 'create', '-f', '-')
  for (const name of names) await controller.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=80s')
}

/** `router` and `mac`: of a pod's gateway, in each family, as the machine has it. */
async function routersOf({ inNetworkOf, first }: RoutedMachines, families: readonly (4 | 6)[]) {
  const routers: { readonly address: string; readonly mac: string; readonly family: 4 | 6 }[] = []
  for (const family of families) {
    const { stdout } = await inNetworkOf('victim', `ip -${family} route show default`)
    const [, address = ''] = /via (\S+)/.exec(stdout) ?? []
    const bridge = /\d+: (br-\w+) .*/.exec(await first.run('ip', '-o', 'address', 'show', 'to', address))?.[1] ?? ''
    const [, mac = ''] = /link\/ether (\S+)/.exec(await first.run('ip', 'link', 'show', bridge)) ?? []
    routers.push({ address, mac, family })
  }
  return routers
}

function asPods({ inNetworkOf }: RoutedMachines) {
  const learned = async (pod: string, address: string) =>
    /lladdr (\S+)/.exec((await inNetworkOf(pod, `ip neighbour show ${address}`)).stdout)?.[1]
  return {
    learned,
    reaches: async (pod: string, address: string) => (await inNetworkOf(pod, `ping -c 1 -W 1 ${address}`)).code === 0,
    addressOf: async (pod: string, family: 4 | 6) =>
      /inet6? (\S+)\//.exec(
        (await inNetworkOf(pod, `ip -${family} -o address show dev eth0 scope global`)).stdout,
      )?.[1] ?? '',
    /** It sends a packet from an address of another by its own link, as ARP and neighbour discovery do first. */
    pretends: async (pod: string, address: string, to: string) => {
      const [own, flags] = address.includes(':') ? [`${address}/64`, 'nodad'] : [`${address}/24`, '']
      const script = `ip address add ${own} dev eth0 ${flags}; ip neighbour flush all; ping -c 2 -W 1 -I ${address} ${to}; ip address del ${own} dev eth0`
      await inNetworkOf(pod, script)
    },
  }
}

async function attacked(t: Test, machines: RoutedMachines, families: readonly (4 | 6)[]): Promise<void> {
  const { learned, reaches, pretends, addressOf } = asPods(machines)
  for (const { address, mac, family } of await routersOf(machines, families)) {
    t.ok(mac, `the router of IPv${family}`)
    const victim = await addressOf('victim', family)
    await eventually('the router is reached', () => reaches('victim', address))
    await pretends('thief', address, victim)
    t.equal(await learned('victim', address), mac, `the router of the victim by IPv${family}`)
    await eventually('the router is reached still', () => reaches('victim', address))
    await pretends('thief', victim, address)
    await eventually('the victim has its address', () => reaches('victim', address))
    await eventually('the thief has its own connections', () => reaches('thief', address))
    await eventually('to the victim, too', () => reaches('thief', victim))
  }
}

test('pods of a fleet with a network and both families', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t, { controller: both, seesLinks: true })
  const { controller, first } = machines
  const agent = await first.startAgent()
  await controller.nodesReady(first.name)
  await withPods(machines, 'victim', 'thief')
  await eventually('both ports are known', async () => (await portsIn(machines)) === 2)
  await unnoticedBy(t, controller.kubeconfig, () => attacked(t, machines, [4, 6]))

  await t.test('also without their agent, and when another program has flushed all rules', async (t) => {
    agent.kill('SIGKILL')
    await agent.ended
    await attacked(t, machines, [4])
    await first.run('nft', 'delete', 'table', 'bridge', `bramble-${first.name}`)
    await first.startAgent()
    await eventually('the agent makes the table again', async () => (await portsIn(machines)) === 2)
    await attacked(t, machines, [4])
  })

  await t.test('rules end with their pods', async () => {
    await controller.kubectl('delete', 'pod', 'victim', 'thief', '--timeout=80s')
    await eventually('there is no table', async () => (await rulesOf(machines)) === '')
  })
})

async function rulesOf({ first }: RoutedMachines): Promise<string> {
  return (await first.tryRun('nft', 'list', 'table', 'bridge', `bramble-${first.name}`)).stdout
}

async function portsIn(machines: RoutedMachines): Promise<number | undefined> {
  const rules = await rulesOf(machines)
  return /set ports \{[^}]*?elements = \{([^}]*)\}/.exec(rules)?.[1]?.split(',').length
}

test('pods of a fleet without a network', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t, { controller: { podNetwork: 'node' }, seesLinks: true })
  const { controller, first } = machines
  await first.startAgent()
  await controller.nodesReady(first.name)
  await withPods(machines, 'victim', 'thief')
  await eventually('both ports are known', async () => (await portsIn(machines)) === 2)
  await unnoticedBy(t, controller.kubeconfig, () => attacked(t, machines, [4]))
})
