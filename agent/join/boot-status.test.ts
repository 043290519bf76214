import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { writeBootStatus } from './boot-status.ts'

const nowMs = Date.UTC(2026, 10, 29, 12, 34, 56)

test('a text is written with its time, and the same text not again', async (t) => {
  const folder = testFolder(t)
  const log = quietLog(t)
  const read = () => readFile(join(folder, 'bramble-status.txt'), 'utf8')
  await writeBootStatus(folder, ['It waits.', 'Do this.'], { nowMs, log })
  t.equal(await read(), 'Bramble, 2026-11-29 12:34 UTC by the clock of this machine:\nIt waits.\nDo this.\n')
  await writeBootStatus(folder, ['It waits.', 'Do this.'], { nowMs: nowMs + 3600_000, log })
  t.match(await read(), /12:34/)
  await writeBootStatus(folder, ['It joined.'], { nowMs: nowMs + 3600_000, log })
  t.match(await read(), /13:34 UTC by the clock of this machine:\nIt joined\.\n$/)
})

test('a boot partition that takes no writes stops nothing', async (t) => {
  const folder = join(testFolder(t), 'gone')
  const log = quietLog(t)
  await writeBootStatus(folder, ['It waits.'], { nowMs, log })
  t.same(log.messages('debug'), ['The boot partition does not take the status'])
  t.notOk(existsSync(folder))
})
