import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { machineStats } from './machine-stats.ts'

test('the hottest of all sensors counts, and what the machine does not have is left out', async (t) => {
  const root = testFolder(t)
  const zone = (name: string, celsius: number) => ({ name, celsius, trips: [] })
  const reading = (...zones: readonly ReturnType<typeof zone>[]) => ({ zones, board: undefined })
  t.same(machineStats({ root, temperature: () => reading() }), {})
  mkdirSync(join(root, 'proc'))
  writeFileSync(join(root, 'proc/loadavg'), '0.42 0.30 0.20 1/200 4711\n')
  const temperature = () => reading(zone('cpu-thermal', 51.2), zone('wifi', 60))
  t.same(machineStats({ root, temperature }), { celsius: 60, load: 0.42 })
})
