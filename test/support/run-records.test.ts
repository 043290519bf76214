import { test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { overlaps, runsIn } from './run-records.ts'

test('runs of one name at one time are found, runs one after the other are not', async (t) => {
  const folder = testFolder(t, {
    'db-0~u1~a': '10.00\n10.20\n11.00\n',
    'db-0~u2~b': '11.10\n12.00\n',
    'db-1~u3~c': '10.00\n12.00\n',
    'db-1~u3~d': '11.90\n13.00\n',
    'db-1~u4~e': '',
  })
  const runs = await runsIn(folder)
  t.match(runs, [{ pod: 'db-0', uid: 'u1', run: 'a', firstS: 10, lastS: 11 }, { run: 'c' }, { run: 'b' }, { run: 'd' }])
  t.same(
    overlaps(runs, ({ pod }) => pod),
    ['db-1: 10 to 12, and 11.9 to 13'],
  )
})
