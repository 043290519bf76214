/** A node is emptied for maintenance: its pods leave as fast as their disruption budget allows, and it takes pods again. */
import { test } from 'tap'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

type PodView = {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
  readonly spec: { readonly nodeName?: string }
}

test('kubectl drain waits for what a budget protects, then goes on; uncordon opens the node again', async (t) => {
  const { controller, startReady } = await joinedFleet(t, { names: ['pi-1', 'pi-2', 'pi-3'] })
  await startReady()
  await eventually('each node has addresses of its own for pods', async () => {
    const ranges = (await controller.kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].spec.podCIDR}')).split(' ')
    return new Set(ranges).size === 3
  })

  const run = (name: string, nodeName?: string) =>
    controller.kubectlWith(
      podManifest({
        name,
        image,
        labels: { app: 'web' },
        spec: { terminationGracePeriodSeconds: 1, ...(nodeName && { nodeName }) },
      }),
      'apply',
      '-f',
      '-',
    )
  await Promise.all([run('web-1', 'pi-1'), run('web-2', 'pi-1'), run('web-3', 'pi-2')])
  await controller.kubectl('create', 'pdb', 'web', '--selector=app=web', '--min-available=2')
  await controller.kubectl('wait', '--for=condition=Ready', 'pods', '-l', 'app=web', '--timeout=80s')
  await eventually('the budget has counted them', async () => (await allowed(controller)) === 1)

  const draining = controller.tryKubectl('drain', 'pi-1', '--force', '--timeout=80s')
  await eventually('one of its two pods has left', async () => (await podsOn(controller, 'pi-1')).length === 1)
  t.equal(await allowed(controller), 0)
  const [held] = await podsOn(controller, 'pi-1')
  t.equal(held?.metadata.deletionTimestamp, undefined, 'the other one stays: two must be available')

  await run('web-4')
  const drained = await draining
  t.equal(drained.code, 0, drained.stderr)
  t.match(drained.stderr, /Cannot evict pod as it would violate the pod's disruption budget/, 'it was held')
  t.match(drained.stdout, 'node/pi-1 drained')
  t.same(await podsOn(controller, 'pi-1'), [])
  const [replacement] = (await pods(controller)).filter(({ metadata }) => metadata.name === 'web-4')
  t.not(replacement?.spec.nodeName, 'pi-1', 'what came in its place runs elsewhere')
  t.match(await controller.kubectl('get', 'node', 'pi-1'), 'Ready,SchedulingDisabled')

  await controller.kubectl('uncordon', 'pi-1')
  t.match(await controller.kubectl('get', 'node', 'pi-1'), /pi-1 +Ready /)
  await eventually('its taint is gone', async () => {
    const taints = await controller.kubectl('get', 'node', 'pi-1', '-o', 'jsonpath={.spec.taints}')
    return taints === ''
  })
  await controller.kubectl('label', 'node', 'pi-1', 'serviced=yes')
  const back = podManifest({ name: 'back', image, spec: { nodeSelector: { serviced: 'yes' } } })
  await controller.kubectlWith(back, 'apply', '-f', '-')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/back', '--timeout=80s')
})

async function pods(controller: Controller): Promise<readonly PodView[]> {
  return JSON.parse(await controller.kubectl('get', 'pods', '-o', 'json')).items
}

async function podsOn(controller: Controller, node: string): Promise<readonly PodView[]> {
  return (await pods(controller)).filter(({ spec }) => spec.nodeName === node)
}

async function allowed(controller: Controller): Promise<number> {
  return Number(await controller.kubectl('get', 'pdb', 'web', '-o', 'jsonpath={.status.disruptionsAllowed}'))
}
