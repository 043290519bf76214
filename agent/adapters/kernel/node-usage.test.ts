import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { savedTree } from '../../testing/saved-trees.ts'
import { hostSignals } from './host-signals.ts'
import { nodeUsage } from './node-usage.ts'

const filesystemAt = async () => undefined

test('the usage of memory and tasks is what pods are evicted by', async (t) => {
  const machines = readdirSync(savedTree('')).map(savedTree).filter(isWhole)
  t.ok(machines.length > 2)
  for (const root of machines) {
    const machine = { root, dataDirectory: '/', imageDirectory: () => undefined }
    const { observed } = await hostSignals(machine).observe()
    const { memory, pids } = await nodeUsage({ ...machine, filesystemAt }).nodeReading()
    const seen = (wanted: string) => observed.find(({ signal }) => signal === wanted)?.available
    t.equal(memory?.availableBytes, seen('memory.available'), root)
    t.equal(pids && pids.limit - pids.current, seen('pid.available'), root)
  }
})

/** Of some machines only a few lines were kept. */
function isWhole(root: string): boolean {
  const text = (path: string) => {
    try {
      return readFileSync(join(root, path), 'utf8')
    } catch {
      return ''
    }
  }
  const hasGroup = ['', 'memory/'].some((folder) => text(`sys/fs/cgroup/${folder}memory.stat`) !== '')
  return text('proc/loadavg') !== '' && (hasGroup || /^Cached:/m.test(text('proc/meminfo')))
}
