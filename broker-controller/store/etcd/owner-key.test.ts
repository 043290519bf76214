import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { EtcdClient } from './etcd-client.ts'
import { keptAlive } from './owner-key.ts'

test('a lease that etcd does not answer for is given up when its time has passed by the given clock', async (t) => {
  const clock = fakeClock()
  let closed = 0
  const silent: Pick<EtcdClient, 'stream'> = { stream: () => ({ close: () => void closed++ }) }
  let failure: unknown
  const asked = keptAlive(silent, '1', clock).catch((error: unknown) => {
    failure = error
  })
  await clock.advance(1_400)
  t.equal(failure, undefined)
  await clock.advance(100)
  await asked
  t.match(failure, { message: 'No answer from etcd' })
  t.equal(closed, 1)
})
