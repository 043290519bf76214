import { type Test, test } from 'tap'
import { type Fleet, fleet } from '../testing/fleet.ts'
import { nodeIpamController } from './node-ipam-controller.ts'

const two = { clusterCIDR: '10.244.0.0/23', nodeCIDRMaskSize: 24 }

function opened(t: Test): { world: Fleet; start: () => () => Promise<void> } {
  const world = fleet(t, 'No addresses left for pods')
  return { world, start: () => world.start(nodeIpamController(world, two)) }
}

const cidr = async (world: Fleet, name: string) => (await world.node(name)).spec?.podCIDR

test('nodes that come get a range each, and the next controller respects them', async (t) => {
  const { world, start } = opened(t)
  const stop = start()
  await world.join({ name: 'pi-1' })
  await world.pass(1)
  t.match((await world.node('pi-1')).spec, { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'] })
  await stop()
  await world.join({ name: 'pi-2' })
  t.teardown(start())
  await world.pass(1)
  t.equal(await cidr(world, 'pi-1'), '10.244.0.0/24')
  t.equal(await cidr(world, 'pi-2'), '10.244.1.0/24')
})

test('a node for which no range is left gets one Event, and later the range of a node that goes', async (t) => {
  const { world, start } = opened(t)
  t.teardown(start())
  await world.join({ name: 'pi-1' }, { name: 'pi-2' }, { name: 'pi-3' })
  await world.pass(60)
  t.equal(await cidr(world, 'pi-3'), undefined)
  t.same(await world.reasons('pi-3'), ['CIDRNotAvailable'])
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  world.silence('pi-1')
  await world.pass(1)
  t.equal(await cidr(world, 'pi-3'), '10.244.0.0/24')
})

test('a range that an administrator gave is kept, and given to no other', async (t) => {
  const { world, start } = opened(t)
  await world.join({ name: 'pi-9' }, { name: 'pi-1', spec: { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'] } })
  t.teardown(start())
  await world.pass(1)
  t.equal(await cidr(world, 'pi-1'), '10.244.0.0/24')
  t.equal(await cidr(world, 'pi-9'), '10.244.1.0/24')
})
