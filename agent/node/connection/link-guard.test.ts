import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { linkGuard, type SentData } from './link-guard.ts'
import { networkWatch } from './reconnect-wait.ts'

/** A connection whose acknowledgements the test decides on. */
function guarded(t: Test) {
  const clock = fakeClock()
  const network = new Set(['link eth0 2'])
  const world = { sent: undefined as SentData | undefined, asked: 0, network, clock, dead: '', hasAddress: true }
  const guard = linkGuard({
    clock,
    network: networkWatch({ clock, random: () => 0, network: () => new Set(network) }),
    sentData: async () => {
      world.asked++
      return world.sent
    },
    hasAddress: async () => world.hasAddress,
  })
  const stopping = new AbortController()
  const done = guard.run(stopping.signal).then((dead) => {
    world.dead = dead?.message ?? ''
  })
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  return Object.assign(world, { guard })
}

test('a link that acknowledges is asked about once after each heartbeat, and left alone', async (t) => {
  const world = guarded(t)
  world.sent = { waitingBytes: 0, deliveredBytes: 100 }
  for (let i = 0; i < 6; i++) {
    world.guard.check()
    await world.clock.advance(10_000)
  }
  t.equal(world.asked, 6)
  await world.clock.advance(1800_000)
  t.equal(world.asked, 6)
  t.equal(world.dead, '')
})

test('a link that acknowledges nothing for 20 s is dead', async (t) => {
  const world = guarded(t)
  world.guard.check()
  world.sent = { waitingBytes: 93, deliveredBytes: 100 }
  await world.clock.advance(19_000)
  t.equal(world.dead, '')
  await world.clock.advance(2_000)
  t.match(world.dead, /acknowledged nothing for 20 s/)
})

test('a slow link that acknowledges a little of much is not dead', async (t) => {
  const world = guarded(t)
  world.guard.check()
  for (let i = 0; i < 20; i++) {
    world.sent = { waitingBytes: 100_000, deliveredBytes: i * 500 }
    await world.clock.advance(10_000)
  }
  t.equal(world.dead, '')
})

test('a cable that is back shows within three seconds that the old connection stalls', async (t) => {
  const world = guarded(t)
  world.guard.check()
  world.sent = { waitingBytes: 93, deliveredBytes: 100 }
  await world.clock.advance(9_000)
  world.network.add('link eth0 4')
  await world.clock.advance(3_000)
  t.match(world.dead, /A network came up/)
})

test('a cable that is back before the kernel gave up leaves a link that acknowledges again', async (t) => {
  const world = guarded(t)
  world.guard.check()
  world.sent = { waitingBytes: 93, deliveredBytes: 100 }
  await world.clock.advance(4_000)
  world.network.add('link eth0 4')
  await world.clock.advance(1_500)
  world.sent = { waitingBytes: 0, deliveredBytes: 193 }
  await world.clock.advance(60_000)
  t.equal(world.dead, '')
})

test('a network that came up long before does not shorten the time a stalled link has', async (t) => {
  const world = guarded(t)
  world.guard.check()
  world.sent = { waitingBytes: 93, deliveredBytes: 100 }
  await world.clock.advance(4_000)
  world.sent = { waitingBytes: 0, deliveredBytes: 193 }
  await world.clock.advance(10_000)
  world.network.add('link wlan0 2')
  await world.clock.advance(3600_000)
  world.guard.check()
  world.sent = { waitingBytes: 93, deliveredBytes: 193 }
  await world.clock.advance(15_000)
  t.equal(world.dead, '')
  await world.clock.advance(8_000)
  t.match(world.dead, /acknowledged nothing for 20 s/)
})

test('a connection from an address that the machine has lost is dead within five seconds', async (t) => {
  const world = guarded(t)
  await world.clock.advance(60_000)
  t.equal(world.dead, '')
  world.hasAddress = false
  await world.clock.advance(5_000)
  t.match(world.dead, /lost the address/)
})

test('without a reading from the kernel no link is dead', async (t) => {
  const world = guarded(t)
  world.guard.check()
  await world.clock.advance(600_000)
  t.equal(world.dead, '')
})
