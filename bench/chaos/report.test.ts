import { test } from 'tap'
import { faults } from './faults.ts'
import { reportText } from './report.ts'

test('the report has a row for each fault and system, with a cell for each column', async (t) => {
  const [fault] = faults
  if (fault === undefined) throw new Error('There is no fault')
  const outcome = { allRanS: 12, endedElsewhere: 0, moved: 2, ranTwice: 0, lostRecords: 0 }
  const rows = ['Bramble', 'Docker Swarm'].map((system) => ({ fault, system, outcomes: [outcome] }))
  const text = reportText({ facts: ['a day'], rows })
  const table = text.split('\n').filter((line) => line.startsWith('| fault') || line.startsWith(`| ${fault.text}`))
  t.equal(table.length, 3)
  t.same(new Set(table.map((line) => line.split('|').length)).size, 1, 'as many cells in each line')
  t.match(table[1], '| Bramble | 1 | 12.0 s; 12.0 s | 0 | 0 | 2 | 0 | 0 |')
  t.match(text, /\n- a day\n$/)
})
