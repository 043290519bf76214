import { test } from 'tap'
import { evictionThresholds } from './eviction-settings.ts'

test('a soft threshold has its grace period, and its minimum reclaim', async (t) => {
  const problems: string[] = []
  const { evictionHard, evictionSoft } = evictionThresholds(
    {
      evictionHard: { 'memory.available': '100Mi' },
      evictionSoft: { 'memory.available': '20%' },
      evictionSoftGracePeriod: { 'memory.available': '1m30s' },
      evictionMinimumReclaim: { 'memory.available': '5%' },
    },
    problems,
  )
  t.same(problems, [])
  t.match(evictionSoft, [{ graceMs: 90_000, value: { percentage: 20 }, minimumReclaim: { percentage: 5 } }])
  t.match(evictionHard, [{ graceMs: undefined, minimumReclaim: { percentage: 5 } }])
})

test('all problems are reported at once', async (t) => {
  const problems: string[] = []
  evictionThresholds(
    {
      evictionSoft: { 'memory.available': '20%', 'nodefs.available': 'much' },
      evictionSoftGracePeriod: { 'pid.available': 'soon', 'disk.available': '1m' },
      evictionMinimumReclaim: { 'nodefs.available': '-1' },
      pressureStallWarning: { 'memory.full': '0%', 'cpu.some': '10%' },
    },
    problems,
  )
  t.same(
    problems.map((problem) => problem.split(':')[0]),
    [
      'evictionSoft[nodefs.available]',
      'evictionSoftGracePeriod[pid.available]',
      'evictionSoftGracePeriod[disk.available]',
      'evictionMinimumReclaim[nodefs.available]',
      'pressureStallWarning[memory.full]',
      'pressureStallWarning[cpu.some]',
      'evictionSoft[memory.available]',
    ],
  )
})
