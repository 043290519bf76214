/** A machine that cannot take part in the network of its fleet runs pods all the same, and takes part once nothing is in the way. */
import { readdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { dockerDoor } from './support/docker-door.ts'
import { agentCommand, type Controller, temporaryFolder } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { mirror } from './support/mirror.ts'
import { image } from './support/pods.ts'
import { type RoutedMachine, routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

test('a machine whose link has addresses of Services runs pods without them, until it has other ones', {
  skip: whyNoRoutedMachines(),
  timeout: 300_000,
}, async (t) => {
  const machines = await routedMachines(t)
  const { controller, first, second } = machines
  await first.run('ip', 'address', 'add', '10.96.77.1/24', 'dev', 'host0')
  const agent = await first.startAgent()
  await second.startAgent()
  await controller.nodesReady(first.name, second.name)
  const field = async (node: string, path: string) => controller.kubectl('get', 'node', node, '-o', `jsonpath=${path}`)
  const condition = (node: string, type: string, of = 'status') =>
    field(node, `{.status.conditions[?(@.type=="${type}")].${of}}`)
  await eventually('a condition', async () => (await condition('pi-1', 'FleetNetworkUnavailable')) === 'True')
  t.match(
    await condition('pi-1', 'FleetNetworkUnavailable', 'message'),
    /^The network 10\.96\.77\.0\/24 on host0 .* serviceCIDR 10\.96\.0\.0\/12\. Pods of this node run .* Give the fleet/,
  )
  t.equal(await field('pi-1', '{.spec.taints}'), '', 'pods may be placed there')
  t.equal(await condition('pi-2', 'FleetNetworkUnavailable'), 'False')

  for (const nodeName of [first.name, second.name]) {
    const spec = { nodeName, terminationGracePeriodSeconds: 0 }
    const command = ['sh', '-c', mirror]
    const of = { name: `on-${nodeName}`, image, command, spec, labels: { app: 'web' } }
    await controller.kubectlWith(podManifest(of), 'apply', '-f', '-')
  }
  const state = (name: string) =>
    controller.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.phase} {.status.podIP}')
  await eventually('a pod without an address of the fleet', async () => (await state('on-pi-1')) === 'Running ')
  await eventually('one with an address', async () => /^Running \d/.test(await state('on-pi-2')))
  t.notMatch(await first.run('nft', 'list', 'tables'), 'bramble')
  const shown = await agentCommand('network', '--data-dir', first.dataDir)
  t.match(shown, {
    code: 1,
    stdout: /pi-1: it is not part of the network of the fleet\n\nProblems:\n- The network 10\.96\.77\.0\/24/,
  })

  await controller.kubectl('expose', 'pod', 'on-pi-2', '--name', 'web', '--port', '80')
  const endpoints = () =>
    controller.kubectl('get', 'endpoints', 'web', '-o', 'jsonpath={.subsets[*].addresses[*].nodeName}')
  await eventually('endpoints', async () => (await endpoints()) === 'pi-2')

  await first.run('ip', 'address', 'del', '10.96.77.1/24', 'dev', 'host0')
  await agent.stop()
  await first.startAgent()
  await eventually(
    'the condition is over',
    async () => (await condition('pi-1', 'FleetNetworkUnavailable')) === 'False',
  )
  await eventually('its pod has an address of the fleet', async () => /^Running \d/.test(await state('on-pi-1')), {
    withinMs: 120_000,
  })
  await eventually('both are endpoints', async () => (await endpoints()).split(' ').sort().join() === 'pi-1,pi-2')
})

/** A PATH with all programs of this host but these. */
async function pathWithout(t: Test, ...names: readonly string[]): Promise<string> {
  const folder = await temporaryFolder(t)
  const there = new Set(names)
  for (const from of [dirname(process.execPath), ...(process.env['PATH'] ?? '').split(':')]) {
    for (const name of await readdir(from).catch(() => [])) {
      if (there.has(name)) continue
      there.add(name)
      await symlink(join(from, name), join(folder, name))
    }
  }
  return folder
}

/** A pod with a server on this machine: what it is, once its state is `expected`. */
async function podOn({ kubectl, kubectlWith }: Controller, nodeName: string, expected: RegExp): Promise<string> {
  const spec = { nodeName, terminationGracePeriodSeconds: 0 }
  const of = { name: `on-${nodeName}`, image, command: ['sh', '-c', mirror], spec, labels: { app: 'web' } }
  await kubectlWith(podManifest(of), 'apply', '-f', '-')
  const path = 'jsonpath={.status.phase} {.status.podIP}'
  return eventually(`${of.name} is ${expected}`, async () => {
    const state = await kubectl('get', 'pod', of.name, '-o', path)
    return expected.test(state) && state
  })
}

/** The cause and the remedy, in each place where an operator looks. */
async function showsWhy(
  t: Test,
  { kubectl }: Controller,
  { name, dataDir }: RoutedMachine,
  dockerSocket: string,
  { reason, found, remedy }: { readonly reason: string; readonly found: RegExp; readonly remedy: RegExp },
): Promise<void> {
  const condition = async () => {
    const { status } = JSON.parse(await kubectl('get', 'node', name, '-o', 'json'))
    return status.conditions.find(({ type }: { type: string }) => type === 'FleetNetworkUnavailable')
  }
  await eventually('a condition', async () => (await condition())?.status === 'True')
  t.match(await condition(), { reason, message: found })
  t.match((await condition()).message, remedy)
  const events = ['get', 'events', '--field-selector', `involvedObject.name=${name},reason=${reason}`, '-o', 'name']
  await eventually('an Event', async () => (await kubectl(...events)) !== '')
  const shown = await agentCommand('network', '--data-dir', dataDir)
  t.equal(shown.code, 1)
  t.match(shown.stdout, found)
  t.match(shown.stdout, /it is not part of the network of the fleet/)
  const examined = await agentCommand('doctor', '--data-dir', dataDir, '--docker-socket', dockerSocket)
  t.match(examined.stdout, /^(PROBLEM|WARNING) +fleet-network /m)
  t.match(examined.stdout.replaceAll(/\s+/g, ' '), found)
}

test("machines with Docker's backend nftables, or without nft, work as with podNetwork: node until that is changed", {
  skip: whyNoRoutedMachines(),
  timeout: 300_000,
}, async (t) => {
  const { controller, first, second } = await routedMachines(t)
  // No Docker 29 is installed here: what it reports of itself is, and the rules of an older one are not looked at.
  const door = await dockerDoor(t, first.docker.socket)
  door.setInfo({ FirewallBackend: { Driver: 'nftables', Info: [] } })
  await first.startAgent({ dockerSocket: door.socket })
  const agent = await second.startAgent({ env: { PATH: await pathWithout(t, 'nft') } })
  await controller.nodesReady(first.name, second.name)

  await showsWhy(t, controller, first, door.socket, {
    reason: 'FirewallBackend',
    found: /Docker's firewall backend is nftables.*Pods of this node run in Docker's own network/,
    remedy: /"firewall-backend": "iptables"/,
  })
  await showsWhy(t, controller, second, second.docker.socket, {
    reason: 'ProgramsMissing',
    found: /nft is not installed.*Pods of this node run in Docker's own network/,
    remedy: /apt-get install nftables/,
  })
  for (const machine of [first, second]) {
    await podOn(controller, machine.name, /^Running $/)
    t.notMatch(await machine.run('nft', 'list', 'tables'), /table (ip|ip6|inet) bramble/)
    const taints = await controller.kubectl('get', 'node', machine.name, '-o', 'jsonpath={.spec.taints}')
    t.equal(taints, '', 'pods may be placed there')
    const log = await controller.kubectl('logs', `on-${machine.name}`)
    t.type(log, 'string', 'and are served')
  }

  door.setInfo(undefined)
  await first.docker.restart()
  await podOn(controller, first.name, /^Running \d/)
  await agent.stop()
  await second.startAgent()
  await podOn(controller, second.name, /^Running \d/)
  await controller.kubectl('expose', 'pod', 'on-pi-2', '--name', 'web', '--port', '80', '--selector', 'app=web')
  const nodes = ['get', 'endpoints', 'web', '-o', 'jsonpath={.subsets[*].addresses[*].nodeName}']
  await eventually(
    'both are endpoints',
    async () => (await controller.kubectl(...nodes)).split(' ').sort().join() === 'pi-1,pi-2',
  )
})
