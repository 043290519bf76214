import { test } from 'tap'
import { diskShortages } from './disk-shortages.ts'
import { evictionThresholds } from './eviction-settings.ts'
import type { Signal } from './observations.ts'

const gibi = 2 ** 30
const disk = (signal: Signal, available: number, capacity = 100) => ({ signal, available, capacity })
const sharedDisk = (free: number) => [
  disk('nodefs.available', free * gibi, 100 * gibi),
  disk('imagefs.available', free * gibi, 100 * gibi),
]
const folders = { dataDirectory: '/var/lib/bramble/agent', imageDirectory: '/var/lib/docker' }

test('a disk below a default threshold is named with its figure, the threshold and the setting', async (t) => {
  const thresholds = evictionThresholds({}, [])
  const at = (free: number) => diskShortages({ thresholds, observed: sharedDisk(free), ...folders })
  t.same(at(12), [
    'The disk of /var/lib/docker has 12 % free (12 GiB of 100 GiB); the agent evicts pods below 15 % (evictionHard imagefs.available)',
  ])
  t.same(at(15), [], 'a threshold is met below it')
  t.match(at(14.96), [/has 14\.9 % free .* below 15 %/])
  t.match(at(3), [
    /bramble\/agent has 3 % free .* below 10 % \(evictionHard nodefs\.available\)/,
    /docker has 3 % free/,
  ])
})

test('the configured thresholds count, hard and soft, in bytes and inodes', async (t) => {
  const problems: string[] = []
  const thresholds = evictionThresholds(
    {
      evictionHard: { 'nodefs.inodesFree': '50%', 'memory.available': '99%' },
      evictionSoft: { 'imagefs.available': '20Gi' },
      evictionSoftGracePeriod: { 'imagefs.available': '1m' },
    },
    problems,
  )
  t.same(problems, [])
  const observed = [...sharedDisk(12), disk('nodefs.inodesFree', 20), disk('memory.available', 1)]
  t.same(diskShortages({ thresholds, observed, ...folders }), [
    'The disk of /var/lib/bramble/agent has 20 % of its inodes free (20 of 100); the agent evicts pods below 50 % (evictionHard nodefs.inodesFree)',
    'The disk of /var/lib/docker has 12 % free (12 GiB of 100 GiB); the agent evicts pods below 20Gi (evictionSoft imagefs.available)',
  ])
  t.match(
    diskShortages({ thresholds, observed: sharedDisk(19.99), ...folders }),
    [/has 19\.9 % free \(19 GiB of 100 GiB\); .* below 20Gi/],
    'what is too little is not shown as enough',
  )
})

test('a disk that was not read is not judged', async (t) => {
  t.same(diskShortages({ thresholds: evictionThresholds({}, []), observed: [], ...folders }), [])
})
