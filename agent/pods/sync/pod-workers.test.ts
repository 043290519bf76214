import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { podWorkers } from './pod-workers.ts'

test('a sync that fails again for the same reason is retried and logged once', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  let reason: string | undefined = 'the volume is mounted'
  let tries = 0
  const sync = async () => {
    tries++
    if (reason !== undefined) throw new Error(reason)
    return undefined
  }
  const workers = podWorkers({
    parallel: 1,
    clock,
    random: () => 0.5,
    log,
  })
  const stopping = new AbortController()
  const done = workers.run(sync, stopping.signal)
  const fails = async (because: string | undefined) => {
    reason = because
    workers.add(['uid'])
    await clock.advance(600_000)
    return log.messages('warn').length
  }
  t.equal(await fails('the volume is mounted'), 1)
  t.ok(tries > 2, `${tries} tries`)
  t.equal(await fails('the disk fails'), 2)
  t.equal(await fails(undefined), 2)
  t.equal(await fails('the disk fails'), 3, 'after it went well')
  stopping.abort()
  await clock.advance(10_000)
  await done
})
