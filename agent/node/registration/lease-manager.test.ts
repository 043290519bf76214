import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { fakeControlPlane } from '../../testing/fake-control-plane.ts'
import { leaseManager } from './lease-manager.ts'

test('a long lease is also renewed four times, with the jitter of a short one', async (t) => {
  const [clock, controlPlane] = [fakeClock(), fakeControlPlane()]
  controlPlane.leaseDurationSeconds = 1_200
  const stopping = new AbortController()
  const done = leaseManager({ controlPlane, clock, random: () => 1 }).run(stopping.signal)
  await clock.advance(300_400 * 4 - 1)
  t.equal(controlPlane.heartbeats.count, 4)
  controlPlane.leaseDurationSeconds = 40
  await clock.advance(1 + 10_400)
  t.equal(controlPlane.heartbeats.count, 6, 'the controller grants no more than the usual')
  stopping.abort()
  await done
})

test('the lease is renewed four times in its duration, with jitter, connected or not', async (t) => {
  const [clock, controlPlane] = [fakeClock(), fakeControlPlane()]
  const stopping = new AbortController()
  const manager = leaseManager({ controlPlane, clock, random: () => 1 })
  const done = manager.run(stopping.signal)
  await clock.advance(10_400 * 4 - 1)
  t.equal(controlPlane.heartbeats.count, 4)
  controlPlane.connected = false
  await clock.advance(60_000)
  t.equal(controlPlane.heartbeats.count, 4)
  controlPlane.connected = true
  await clock.advance(10_400)
  t.equal(controlPlane.heartbeats.count, 5)
  stopping.abort()
  await done
})
