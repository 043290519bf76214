import { type Test, test } from 'tap'
import { decode } from '../../api/decode.ts'
import { SummarySchema } from '../../api/node/stats.ts'
import { type StatsMessage, StatsMessageSchema } from '../../api/topics.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { aPodReading, fakeUsage } from '../testing/fake-usage.ts'
import { usageSampler } from './usage-sampler.ts'

function aSampler(t: Test, more: Partial<ReturnType<typeof fakeUsage>> = {}) {
  const clock = fakeClock()
  const usage = { ...fakeUsage(clock), ...more }
  const sent: StatsMessage[] = []
  const sampler = usageSampler(
    {
      ...usage,
      machine: () => ({ celsius: 51.5, load: 0.25 }),
      send: (message) => void sent.push(message),
      clock,
      log: quietLog(t, 'Usage not sent: the message is too large'),
    },
    'pi-01',
  )
  const stopping = new AbortController()
  const done = sampler.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  return { clock, usage, sent, sampler }
}

test('the first query waits a second for the rates', async (t) => {
  const { clock, sampler } = aSampler(t)
  const asked = sampler.summary(false)
  await clock.advance(1_000)
  const summary = await asked
  t.match(summary, {
    node: { nodeName: 'pi-01', memory: { availableBytes: 200 * 2 ** 20 }, rlimit: { maxpid: 32_768, curproc: 100 } },
    pods: [
      {
        podRef: { name: 'pod-u1', namespace: 'default', uid: 'u1' },
        containers: [
          {
            name: 'server',
            cpu: { usageNanoCores: 250_000_000 },
            memory: { workingSetBytes: 70 * 2 ** 20, availableBytes: 58 * 2 ** 20 },
            rootfs: { usedBytes: 1000, capacityBytes: 10_000 },
            logs: { usedBytes: 200 },
          },
        ],
        memory: { workingSetBytes: 71 * 2 ** 20 },
        network: { name: 'eth0', rxBytes: 1000 },
        'ephemeral-storage': { usedBytes: 1230, inodesUsed: 15 },
        process_stats: { process_count: 4 },
      },
    ],
  })
  t.ok(decode(SummarySchema, JSON.parse(JSON.stringify(summary))).ok)
})

test('it samples while it is queried, and then stops', async (t) => {
  const { clock, usage, sampler } = aSampler(t)
  await clock.advance(60_000)
  t.equal(usage.reads(), 0, 'no query')
  t.equal(clock.sleepers, 0, 'and no timer runs')
  const asked = sampler.summary(true)
  await clock.advance(1_000)
  await asked
  await clock.advance(30_000)
  t.equal(usage.reads(), 5, 'twice at first, then every 10 s')
  t.match(await sampler.summary(true), { pods: [{ containers: [{ cpu: { usageNanoCores: 250_000_000 } }] }] })
  await clock.advance(200_000)
  const reads = usage.reads()
  t.equal(clock.sleepers, 0, 'no timer any more')
  await clock.advance(200_000)
  t.equal(usage.reads(), reads)
})

test('a call starts publishing for its time, a second one extends it', async (t) => {
  const { clock, sent, sampler } = aSampler(t)
  sampler.call({ call: 'stats', seconds: 30, everySeconds: 10 })
  await clock.advance(1_000)
  t.equal(sent.length, 1)
  t.match(sent[0], { windowSeconds: 1, summary: { pods: [{ containers: [{ name: 'server' }] }] } })
  t.ok(decode(StatsMessageSchema, JSON.parse(JSON.stringify(sent[0]))).ok)
  t.notOk(JSON.stringify(sent[0]).includes('rootfs'), 'CPU and memory only')
  await clock.advance(120_000)
  t.equal(sent.length, 3)
  sampler.call({ call: 'stats', seconds: 5 })
  await clock.advance(1_000)
  t.equal(sent.length, 4)
  sampler.call({ call: 'stats', whole: true })
  await clock.advance(1_000)
  t.match(sent.at(-1), { whole: true, summary: { pods: [{ containers: [{ rootfs: { usedBytes: 1000 } }] }] } })
})

test('a call for the machine has its sensors, load and disk in each message', async (t) => {
  const { clock, sent, sampler } = aSampler(t)
  sampler.call({ call: 'stats', seconds: 30, everySeconds: 10, machine: true })
  await clock.advance(1_000)
  t.match(sent[0]?.machine, { celsius: 51.5, load: 0.25 })
  t.ok(decode(StatsMessageSchema, JSON.parse(JSON.stringify(sent[0]))).ok)
  sampler.call({ call: 'stats', seconds: 30, everySeconds: 10 })
  await clock.advance(1_000)
  t.equal(sent.at(-1)?.machine, undefined, 'a later call without it')
})

test('a message that is too large for the broker is reduced, or not sent', async (t) => {
  const { clock } = aSampler(t)
  const usage = fakeUsage(clock)
  const many = (count: number) => ({
    ...usage.pods,
    podReadings: async () => Array.from({ length: count }, (_, i) => aPodReading(`u${i}`, clock.monotonicMs())),
  })
  const some = aSampler(t, { pods: many(250) })
  some.sampler.call({ call: 'stats', whole: true })
  await some.clock.advance(1_000)
  t.equal(some.sent[0]?.summary.pods.length, 250)
  t.equal(some.sent[0]?.summary.pods[0]?.network, undefined)
  const more = aSampler(t, { pods: many(2_000) })
  more.sampler.call({ call: 'stats', whole: true })
  await more.clock.advance(1_000)
  t.equal(more.sent.length, 0)
})
