/** Services of the type LoadBalancer with addresses of both families: two machines, and a third one on their link that uses them. */
import { test } from 'tap'
import { endpointProgram } from './support/endpoint-programs.ts'
import { agentLauncher } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import type { Program } from './support/program.ts'
import { type RoutedMachine, routedMachines, type Space, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

/** Answers with its name and the address that it sees. */
const script = `
mkdir -p /www/cgi-bin
printf '#!/bin/sh\\necho; echo $(hostname) $REMOTE_ADDR\\n' > /www/cgi-bin/who && chmod +x /www/cgi-bin/who
exec httpd -f -p 8080 -h /www`
const path = '/cgi-bin/who'
const labels = { app: 'web' }
const both = { clusterCIDR: '10.244.0.0/16,fd00:10:244::/56', serviceCIDR: '10.96.0.0/12,fd00:10:96::/112' }
const service = (name: string, families: object) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: {
    ...{ type: 'LoadBalancer', selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
    ...{ allocateLoadBalancerNodePorts: false, ...families },
  },
})
const ownPort = 8022
/** Address of a machine, or of the stranger, on their link. */
const linkAddress = (number: number) => `fd00:9::${number}`
const [web, alone] = ['fd00:9::240', 'fd00:9::241'] as const

test('load balancers of both families on two machines', { skip: whyNoRoutedMachines() }, async (t) => {
  const fleet = await routedMachines(t, { controller: both })
  const { first, second, stranger } = fleet
  const machines = [first, second] as const
  for (const [index, { run }] of [...machines, stranger].entries())
    await run('ip', '-6', 'address', 'add', `${linkAddress(index + 1)}/64`, 'dev', 'host0', 'nodad')
  const agents = new Map<string, Program>()
  const start = async (machine: RoutedMachine) => agents.set(machine.name, await machine.startAgent())
  await Promise.all(machines.map(start))
  let controller = fleet.controller
  await controller.nodesReady(first.name, second.name)
  const apply = (text: string) => controller.kubectlWith(text, 'apply', '-f', '-')
  const podOn = ({ name }: RoutedMachine) => {
    const spec = { nodeName: name, terminationGracePeriodSeconds: 0 }
    return apply(podManifest({ name: `on-${name}`, image, labels, command: ['sh', '-c', script], spec }))
  }
  for (const machine of machines) await podOn(machine)
  await apply(JSON.stringify(service('web', { ipFamilyPolicy: 'RequireDualStack' })))
  const outside = endpointProgram(t, 'stranger', stranger.space)
  for (const { name, space } of machines) await endpointProgram(t, `ssh-${name}`, space, '::').listen(ownPort)

  const shown = async (name: string) => {
    const ingress = ['-o', 'jsonpath={.status.loadBalancer.ingress[*].ip}']
    return (await controller.kubectl('get', 'service', name, ...ingress)).trim().split(' ')
  }
  const answer = async (address: string, port = 80) => (await outside.ask({ address, port, path }))[0] ?? ''
  const answers = (address: string) =>
    eventually(`an answer at ${address}`, async () => /^on-pi-\d /.test(await answer(address)))
  const marked = ({ run }: RoutedMachine) => run('ip', '-6', '-o', 'address', 'show', 'home')
  /** The only machine that has the address; fails where both have it. */
  const holder = (address: string, other?: RoutedMachine) =>
    eventually(`a machine other than ${other?.name} has ${address}`, async () => {
      const holders = async () => {
        const texts = await Promise.all(machines.map(marked))
        return machines.filter((_, index) => texts[index]?.includes(` ${address}/128 `))
      }
      const [one, ...more] = await holders()
      // The address may move between the readings of the two machines: twice in a row it does not.
      if (more.length > 0 && (await holders()).length > 1) t.fail('two machines have the address')
      if (more.length > 0) return false
      return one !== undefined && one !== other && one
    })
  const macSeen = async (address: string) =>
    / lladdr (\S+) /.exec(await stranger.run('ip', '-6', 'neighbour', 'show', address))?.[1]
  const macOf = async ({ run }: Space) => /ether (\S+)/.exec(await run('ip', '-o', 'link', 'show', 'host0'))?.[1]
  const otherThan = (one: RoutedMachine) => (one === first ? second : first)
  const agentOf = ({ name }: RoutedMachine) => {
    const agent = agents.get(name)
    if (agent === undefined) throw new Error(`${name} has no agent`)
    return agent
  }

  await t.test('without a pool the addresses of the nodes of both families have the port of the Service', async (t) => {
    const all = await eventually('addresses of both nodes', async () => {
      const ips = await shown('web')
      return ips.length === 4 && ips
    })
    t.same(all, [first.address, second.address, linkAddress(1), linkAddress(2)])
    for (const address of all) await answers(address)
  })

  const ipv4 = fleet.network.hostAddress.replace(/\d+$/, '240')
  await controller.program.stop()
  controller = await fleet.controllerAgain({ loadBalancerPool: [ipv4, `${web}-${alone}`] })
  await eventually('an address of each family', async () => (await shown('web')).join() === `${ipv4},${web}`)

  await t.test('one machine has the address of each family, without the machine’s own ports', async (t) => {
    const one = await holder(web)
    await eventually('that of IPv4 is there', async () =>
      (await one.run('ip', '-o', 'address', 'show', 'label', 'lo:bramble')).includes(` ${ipv4}/32 `),
    )
    await answers(ipv4)
    await answers(web)
    t.equal(await macSeen(web), await macOf(one))
    await eventually('other ports are refused', async () => (await answer(web, ownPort)) === 'ECONNREFUSED')
    await eventually('the agent shows both', async () =>
      /default\/web +pi-\d +in place\n.*default\/web +pi-\d +in place/.test(
        await one.run(agentLauncher, 'network', '--data-dir', one.dataDir),
      ),
    )
  })

  await t.test('a machine that gets the address announces it to all, without being asked', async (t) => {
    const one = await holder(web)
    const node = `bramble.dev/load-balancer-node=${otherThan(one).name}`
    await controller.kubectl('annotate', '--overwrite', 'service', 'web', node)
    const next = await holder(web, one)
    const movedAt = performance.now()
    await eventually('the client has the other machine', async () => (await macSeen(web)) === (await macOf(next)), {
      everyMs: 50,
    })
    t.comment(`${Math.round(performance.now() - movedAt)} ms from the address until the client had the other machine`)
    await answers(web)
    await answers(ipv4)
  })

  await t.test('an address that another program removed is taken again', async (t) => {
    const one = await holder(web)
    await one.run('ip', '-6', 'address', 'delete', `${web}/128`, 'dev', 'host0')
    const removedAt = performance.now()
    await eventually('the address is used again', async () => {
      const [text, isThere] = [await marked(one), await answer(web)]
      return / fd00:9::240\/128 (?!.*tentative)/.test(text) && /^on-pi-\d /.test(isThere)
    })
    t.comment(`${Math.round(performance.now() - removedAt)} ms from its removal until clients were answered`)
    t.equal(await holder(web), one)
  })

  await t.test('the IPv6 address of a Local Service goes to its endpoints, which see the client', async () => {
    const one = await holder(web)
    await controller.kubectl('patch', 'service', 'web', '-p', '{"spec":{"externalTrafficPolicy":"Local"}}')
    await controller.kubectl('delete', 'pod', `on-${one.name}`, '--now')
    const next = await holder(web, one)
    const seen = `on-${next.name} ${linkAddress(3)}`
    await eventually('the client is seen', async () => (await answer(web)).replace(/[[\]]/g, '') === seen)
  })

  await t.test('an IPv6-only Service has its address, and another one waits with the reason', async (t) => {
    const single = { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] }
    await stranger.run('ip', '-6', 'address', 'add', `${alone}/128`, 'dev', 'host0', 'nodad')
    await apply(JSON.stringify(service('alone', single)))
    await eventually('its address', async () => (await shown('alone')).join() === alone)
    const mac = `${await macOf(stranger)}`
    await eventually('the node has found another holder', async () => {
      const seen = await Promise.all(machines.map(({ run }) => run('ip', '-6', 'neighbour', 'show', alone)))
      return seen.join().includes(mac)
    })
    t.notMatch((await Promise.all(machines.map(marked))).join(), alone, 'which keeps it')
    await stranger.run('ip', '-6', 'address', 'delete', `${alone}/128`, 'dev', 'host0')
    await answers(alone)
    await apply(JSON.stringify(service('late', single)))
    await eventually('the Event', async () =>
      /No IPv6 address is left/.test(await controller.kubectl('describe', 'service', 'late')),
    )
    t.same(await shown('late'), [''])
    await controller.kubectl('delete', 'service', 'late')
  })

  await t.test(
    'the kernel gives up the addresses of an agent that is dead, and the other machine has them',
    async (t) => {
      await controller.kubectl('patch', 'service', 'web', '-p', '{"spec":{"externalTrafficPolicy":"Cluster"}}')
      const one = await holder(web)
      for (const machine of machines) {
        await podOn(machine)
        const isItsPod = async () => (await answer(web)).startsWith(`on-${machine.name} `)
        await eventually(`an answer of the pod on ${machine.name}`, isItsPod)
      }
      const killedAt = performance.now()
      agentOf(one).kill('SIGKILL')
      await agentOf(one).ended
      const next = await holder(web, one)
      t.comment(`${Math.round(performance.now() - killedAt)} ms until the other machine had the address`)
      await eventually('the client has the other machine', async () => (await macSeen(web)) === (await macOf(next)))
      await answers(web)
      await start(one)
      await controller.nodesReady(first.name, second.name)
      t.equal(await holder(web), next, 'it does not move back')
    },
  )

  await t.test('nothing is left after the Services, nor after a removal', async (t) => {
    const one = await holder(web)
    agentOf(one).kill('SIGKILL')
    await agentOf(one).ended
    await one.run(agentLauncher, 'network', '--remove', '--data-dir', one.dataDir)
    const isAnnouncing = async ({ run }: RoutedMachine) =>
      (await run('cat', '/proc/sys/net/ipv6/conf/host0/ndisc_notify')).trim()
    t.equal(await marked(one), '')
    t.equal(await isAnnouncing(one), '0')
    await start(one)
    const next = await holder(web)
    t.equal(await isAnnouncing(next), '1')
    for (const name of ['web', 'alone']) await controller.kubectl('delete', 'service', name)
    for (const machine of machines)
      await eventually(`nothing on ${machine.name}`, async () => (await marked(machine)) === '')
    await eventually('the setting is as before', async () => (await isAnnouncing(next)) === '0')
  })
})
