import { type Test, test } from 'tap'
import { pendingReboot, rebootStatusOf } from '../../../api/node/remote-reboot.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { rebootRequestController } from './reboot-request-controller.ts'

async function opened(t: Test, allows = 'enabled') {
  const world = fleet(t)
  await world.join({ name: 'pi-1', annotations: { 'bramble.dev/remote-reboot': allows } })
  await world.reboot('pi-1')
  const start = () => world.start(rebootRequestController(world))
  return { world, start }
}

async function annotate(world: Fleet, requestedAt: string) {
  const node = await world.node('pi-1')
  const annotations = { ...node.metadata.annotations, 'bramble.dev/reboot-requested-at': requestedAt }
  await world.store.update('nodes', { ...node, metadata: { ...node.metadata, annotations } })
  await world.clock.settle()
}

const state = async (world: Fleet) => rebootStatusOf(await world.node('pi-1'))?.state

test('a request is published to the node until the machine has rebooted', async (t) => {
  const { world, start } = await opened(t)
  t.teardown(start())
  const bootID = (await world.node('pi-1')).status?.nodeInfo?.bootID
  const requestedAt = rfc3339(world.clock.wallMs())
  await annotate(world, requestedAt)
  await world.pass(1)
  t.same(pendingReboot(await world.node('pi-1')), { requestedAt, bootID })
  await world.reboot('pi-1')
  await world.pass(1)
  t.equal(await state(world), 'Completed')
  t.equal(pendingReboot(await world.node('pi-1')), undefined)
  t.same(await world.reasons('pi-1'), ['RebootRequested', 'RebootCompleted'])
  await world.reboot('pi-1')
  await world.pass(600)
  t.equal((await world.reasons('pi-1')).length, 2, 'later reboots are of no request')
})

test('a controller that is restarted goes on with the request, and begins none again', async (t) => {
  const { world, start } = await opened(t)
  let stop = start()
  await annotate(world, rfc3339(world.clock.wallMs()))
  await world.pass(1)
  await stop()
  await world.reboot('pi-1')
  stop = start()
  await world.pass(1)
  t.equal(await state(world), 'Completed')
  await stop()
  t.teardown(start())
  await world.pass(600)
  t.same(await world.reasons('pi-1'), ['RebootRequested', 'RebootCompleted'])
})

test('a request that no reboot follows is withdrawn after five minutes', async (t) => {
  const { world, start } = await opened(t)
  t.teardown(start())
  await annotate(world, rfc3339(world.clock.wallMs()))
  await world.pass(299)
  t.equal(await state(world), 'Pending')
  await world.pass(3)
  t.equal(await state(world), 'Expired')
  t.same(await world.reasons('pi-1'), ['RebootRequested', 'RebootExpired'])
})

test('a machine that does not allow it is not asked', async (t) => {
  const { world, start } = await opened(t, 'disabled')
  t.teardown(start())
  await annotate(world, rfc3339(world.clock.wallMs()))
  await world.pass(1)
  t.equal(pendingReboot(await world.node('pi-1')), undefined)
  t.same(await world.reasons('pi-1'), ['RebootRefused'])
})
