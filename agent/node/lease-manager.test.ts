import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { fakeControlPlane } from '../testing/fake-control-plane.ts'
import { leaseManager } from './lease-manager.ts'

test('the heart beats four times in a lease, a little late at random, link or no link', async (t) => {
  const [clock, controlPlane] = [fakeClock(), fakeControlPlane()]
  const stopping = new AbortController()
  const manager = leaseManager({ controlPlane, clock, random: () => 1 }, { nodeLeaseDurationSeconds: 40 })
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
