import { type Test, test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { aPod } from '../../api/testing/builders.ts'
import { cell } from '../../daemon/cell.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { Ending } from './evictable-pods.ts'
import { storageLimits } from './storage-limits.ts'

function machine(t: Test, pods: readonly Pod[]) {
  const clock = fakeClock()
  const ended = new Map<string, Ending>()
  const log = quietLog(t)
  const world: { walks: number; tookMs: number; usedBytes: number; incomplete?: string } = {
    walks: 0,
    tookMs: 0,
    usedBytes: 0,
  }
  const loop = storageLimits({
    pods: {
      active: () => pods.filter(({ metadata }) => !ended.has(metadata.uid ?? '')),
      endPod: (uid, ending) => void ended.set(uid, ending),
    },
    usage: {
      async podDiskUsage() {
        world.walks++
        await clock.sleep(world.tookMs)
        const { usedBytes, incomplete } = world
        const partly = incomplete === undefined ? {} : { incomplete }
        const volumes = [{ name: 'scratch', inMemory: false, usedBytes, inodesUsed: 1, ...partly }]
        return pods.map(({ metadata }) => ({ uid: metadata.uid ?? '', containers: [], volumes }))
      },
    },
    reads: { imagesApart: cell(false) },
    clock,
    log,
  })
  const stopping = new AbortController()
  const done = loop.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  return { clock, ended, world, log }
}

const limited = (name: string, priority = 0) =>
  aPod({ name, spec: { priority, volumes: [{ name: 'scratch', emptyDir: { sizeLimit: '1Ki' } }] } })

test('nothing is measured as long as no pod has a limit', async (t) => {
  const { clock, world } = machine(t, [aPod()])
  await clock.advance(60_000)
  t.equal(world.walks, 0)
})

test('every pod that exceeds a limit is evicted at once, without a DisruptionTarget', async (t) => {
  const { clock, world, ended } = machine(t, [limited('a'), limited('b'), aPod({ name: 'free' })])
  await clock.settle()
  t.equal(ended.size, 0)
  world.usedBytes = 1025
  await clock.advance(10_000)
  t.same([...ended.keys()], ['uid-of-a', 'uid-of-b'])
  t.same(ended.get('uid-of-a'), {
    reason: 'Evicted',
    message: 'Usage of EmptyDir volume "scratch" exceeds the limit "1Ki". ',
    gracePeriodSeconds: 1,
    event: 'Warning',
  })
})

test('pods that take long to measure are measured less often', async (t) => {
  const { clock, world } = machine(t, [limited('a')])
  world.tookMs = 2_000
  await clock.advance(100_000)
  t.ok(world.walks <= 3, `${world.walks} walks`)
})

test('what could not be counted is logged once for each reason, and no pod goes for it', async (t) => {
  const { clock, world, ended, log } = machine(t, [limited('a')])
  world.incomplete = '"photo": EIO'
  await clock.advance(60_000)
  t.match(log.lines, [{ level: 'warn', facts: { pod: 'default/a', because: 'volume scratch: "photo": EIO' } }])
  world.incomplete = 'more than 100000 entries'
  await clock.advance(60_000)
  t.equal(log.lines.length, 2)
  t.equal(ended.size, 0)
  world.usedBytes = 1025
  await clock.advance(60_000)
  t.equal(ended.size, 1, 'the counted part is enough')
})

test('a critical pod is not evicted for its limit', async (t) => {
  const { clock, world, ended } = machine(t, [limited('critical', 2_000_000_000), limited('b')])
  world.usedBytes = 1025
  await clock.advance(10_000)
  t.same([...ended.keys()], ['uid-of-b'])
})
