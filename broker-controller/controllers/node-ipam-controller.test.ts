import { type Test, test } from 'tap'
import { type Fleet, fleet } from '../testing/fleet.ts'
import { nodeIpamController } from './node-ipam-controller.ts'

const two = { clusterCIDR: '10.244.0.0/23', nodeCIDRMaskSize: 24 }

function opened(t: Test): { world: Fleet; start: (ipv6?: string) => () => Promise<void> } {
  const world = fleet(t, 'No addresses left for pods')
  return { world, start: (ipv6?: string) => world.start(nodeIpamController(world, two, ipv6)) }
}

const twoOfIPv6 = 'fd00:10:244::/63'
const cidrs = async (world: Fleet, name: string) => (await world.node(name)).spec?.podCIDRs
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

test('what a node was given is logged', async (t) => {
  const { world, start } = opened(t)
  t.teardown(start())
  await world.join({ name: 'pi-1' })
  await world.pass(1)
  t.match(world.log.lines, [
    { level: 'info', message: 'Node has addresses for pods', facts: { node: 'pi-1', podCIDR: '10.244.0.0/24' } },
  ])
  t.equal(world.log.messages('info').filter((message) => message === 'Node has addresses for pods').length, 1)
})

test('a range in the list alone is a range too', async (t) => {
  const { world, start } = opened(t)
  await world.join({ name: 'pi-1', spec: { podCIDRs: ['10.244.0.0/24'] } }, { name: 'pi-2' })
  t.teardown(start())
  await world.pass(1)
  t.same((await world.node('pi-1')).spec, { podCIDRs: ['10.244.0.0/24'] }, 'as its author wrote it')
  t.equal(await cidr(world, 'pi-2'), '10.244.1.0/24')
})

test('an IPv4 range behind one of IPv6 is given to no other node', async (t) => {
  const { world, start } = opened(t)
  const spec = { podCIDR: 'fd00:7::/64', podCIDRs: ['fd00:7::/64', '10.244.0.0/24'] }
  await world.join({ name: 'pi-1', spec }, { name: 'pi-2' })
  t.teardown(start())
  await world.pass(1)
  t.same((await world.node('pi-1')).spec, spec)
  t.equal(await cidr(world, 'pi-2'), '10.244.1.0/24')
})

test('nodes that were given one range are a warning; the range is free when the last of them is gone', async (t) => {
  const { world, start } = opened(t)
  const spec = { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'] }
  await world.join({ name: 'pi-1', spec }, { name: 'pi-2', spec }, { name: 'pi-3' }, { name: 'pi-4' })
  t.teardown(start())
  await world.pass(1)
  t.match(
    world.log.lines.filter(({ message }) => message === 'Nodes share addresses for pods'),
    [{ level: 'warn', facts: { podCIDR: '10.244.0.0/24' } }],
  )
  t.equal(await cidr(world, 'pi-4'), undefined)
  for (const name of ['pi-1', 'pi-2']) {
    t.equal(await cidr(world, 'pi-4'), undefined, `${name} still has it`)
    await world.store.delete('nodes', { namespace: '', name })
    world.silence(name)
    await world.pass(1)
  }
  t.equal(await cidr(world, 'pi-4'), '10.244.0.0/24')
})

test('an administrator who moves a node to another range frees the one before', async (t) => {
  const { world, start } = opened(t)
  t.teardown(start())
  await world.join({ name: 'pi-1' }, { name: 'pi-2' }, { name: 'pi-3' })
  await world.pass(1)
  t.equal(await cidr(world, 'pi-3'), undefined)
  const node = await world.node('pi-1')
  await world.store.update('nodes', {
    ...node,
    spec: { ...node.spec, podCIDR: '10.9.0.0/24', podCIDRs: ['10.9.0.0/24'] },
  })
  await world.pass(1)
  t.equal(await cidr(world, 'pi-1'), '10.9.0.0/24')
  t.equal(await cidr(world, 'pi-3'), '10.244.0.0/24')
})

test('a node that waits and is deleted takes no range, and its successor gets one', async (t) => {
  const { world, start } = opened(t)
  t.teardown(start())
  await world.join({ name: 'pi-1' }, { name: 'pi-2' }, { name: 'pi-3' })
  await world.pass(1)
  const remove = async (name: string) => {
    await world.store.delete('nodes', { namespace: '', name })
    world.silence(name)
    await world.pass(1)
  }
  await remove('pi-3')
  await remove('pi-1')
  await world.join({ name: 'pi-5' })
  await world.pass(1)
  t.equal(await cidr(world, 'pi-5'), '10.244.0.0/24')
})

test('an Event that cannot be recorded is logged, and the node still gets its range later', async (t) => {
  const world = fleet(t)
  const events = { ...world.events, record: () => Promise.reject(new Error('the store is busy')) }
  t.teardown(world.start(nodeIpamController({ ...world, events }, two)))
  await world.join({ name: 'pi-1' }, { name: 'pi-2' }, { name: 'pi-3' })
  await world.pass(1)
  t.match(
    world.log.lines.filter(({ level }) => level === 'warn'),
    [
      { message: 'No addresses left for pods', facts: { node: 'pi-3', ...two, blocks: 2 } },
      { message: 'Event not recorded', facts: { reason: 'CIDRNotAvailable', object: 'pi-3', error: /busy/ } },
    ],
  )
  await world.store.delete('nodes', { namespace: '', name: 'pi-2' })
  world.silence('pi-2')
  await world.pass(1)
  t.equal(await cidr(world, 'pi-3'), '10.244.1.0/24')
})

test('with an IPv6 range a node gets one of each family in one write', async (t) => {
  const { world, start } = opened(t)
  t.teardown(start(twoOfIPv6))
  await world.join({ name: 'pi-1' })
  await world.pass(1)
  const { spec } = await world.node('pi-1')
  t.match(spec, { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24', 'fd00:10:244::/64'] })
  t.match(
    world.log.lines.filter(({ message }) => message === 'Node has addresses for pods'),
    [{ facts: { podCIDR: '10.244.0.0/24,fd00:10:244::/64' } }],
  )
})

test('nodes of a fleet that gets IPv6 keep their range and get the second; both stay when it is turned off', async (t) => {
  const { world, start } = opened(t)
  const stop = start()
  await world.join({ name: 'pi-1' })
  await world.pass(1)
  await stop()
  const stopDual = start(twoOfIPv6)
  await world.pass(1)
  t.same(await cidrs(world, 'pi-1'), ['10.244.0.0/24', 'fd00:10:244::/64'])
  t.equal(await cidr(world, 'pi-1'), '10.244.0.0/24')
  await stopDual()
  const stopAgain = start()
  await world.join({ name: 'pi-2' })
  await world.pass(1)
  t.same(await cidrs(world, 'pi-1'), ['10.244.0.0/24', 'fd00:10:244::/64'])
  t.same(await cidrs(world, 'pi-2'), ['10.244.1.0/24'])
  await stopAgain()
  t.teardown(start(twoOfIPv6))
  await world.pass(1)
  t.same(await cidrs(world, 'pi-1'), ['10.244.0.0/24', 'fd00:10:244::/64'])
  t.same(await cidrs(world, 'pi-2'), ['10.244.1.0/24', 'fd00:10:244:1::/64'])
})

test('an IPv6 range that an administrator gave is kept, and given to no other', async (t) => {
  const { world, start } = opened(t)
  const given = (...podCIDRs: readonly string[]) => ({ podCIDR: podCIDRs[0] ?? '', podCIDRs })
  const first = given('fd00:10:244::/64', '10.244.0.0/24')
  const sloppy = given('10.9.1.0/24', 'FD00:7::1/64')
  await world.join({ name: 'pi-1', spec: first }, { name: 'pi-2', spec: given('10.9.0.0/24') })
  await world.join({ name: 'pi-3', spec: sloppy })
  t.teardown(start('fd00:10:244::/62'))
  await world.pass(1)
  t.same((await world.node('pi-1')).spec, first)
  t.same(await cidrs(world, 'pi-2'), ['10.9.0.0/24', 'fd00:10:244:1::/64'], 'its IPv4 range is elsewhere')
  t.same((await world.node('pi-3')).spec, sloppy, 'also one with bits beyond its mask')
})

test('a node for which no IPv6 range is left has that of IPv4, and later that of a node that goes', async (t) => {
  const { world, start } = opened(t)
  const spec = (range: string) => ({ podCIDR: range, podCIDRs: [range] })
  t.teardown(start(twoOfIPv6))
  await world.join({ name: 'pi-1' }, { name: 'pi-2' })
  await world.join({ name: 'pi-3', spec: spec('10.9.0.0/24') })
  await world.pass(60)
  t.same(await cidrs(world, 'pi-3'), ['10.9.0.0/24'])
  t.same(await world.reasons('pi-3'), ['CIDRNotAvailable'])
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  world.silence('pi-1')
  await world.pass(1)
  t.same(await cidrs(world, 'pi-3'), ['10.9.0.0/24', 'fd00:10:244::/64'])
})
