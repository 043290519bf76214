import { test } from 'tap'
import { poolFindings } from './pools.ts'

const disk = '3f333df9-90a4-4dda-8dd3-9485d27cee36'
const pools = [
  { name: 'ssd', place: { disk }, reserve: undefined, isDefault: true },
  { name: 'card', place: { path: '/srv/pool' }, reserve: undefined, isDefault: false },
]
const files = (paths: readonly string[], disks: readonly string[]) => ({
  has: async (path: string) => paths.includes(path),
  names: async () => disks,
})

test('a configured pool whose disk or folder is missing is a problem', async (t) => {
  t.same(await poolFindings([], files([], [])), [])
  t.match(await poolFindings(pools, files(['/srv/pool'], ['1234', disk])), [
    { check: 'pools', verdict: 'ok', found: 'There: ssd, card' },
  ])
  t.match(await poolFindings(pools, files([], ['1234'])), [
    { verdict: 'problem', found: /the disk 3f\S+ of the pool ssd, the folder \/srv\/pool of the pool card/ },
  ])
  t.match(await poolFindings(pools, files(['/srv/pool'], [])), [{ verdict: 'unknown' }], 'a machine without udev')
})
