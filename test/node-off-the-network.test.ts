/** A machine that cannot take part in the network of its fleet runs pods all the same, and takes part once nothing is in the way. */
import { test } from 'tap'
import { agentCommand } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { mirror } from './support/mirror.ts'
import { image } from './support/pods.ts'
import { routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
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
    stdout: /pi-1: it has no part in the network of the fleet\n\nProblems:\n- The network 10\.96\.77\.0\/24/,
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
