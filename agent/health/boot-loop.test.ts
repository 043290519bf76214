import { test } from 'tap'
import { type BootNote, judgeBoots } from './boot-loop.ts'

const boots = (...notes: readonly Omit<BootNote, 'bootID'>[]): readonly BootNote[] =>
  notes.map((note, index) => ({ bootID: `boot-${index}`, ...note }))
const nobody = new Set<string>()
const guilty = { trial: 'bad', began: true }

test('a boot that broke off makes the next ones look closer, one that lasted or ended in order does not', async (t) => {
  t.match(judgeBoots([], nobody), { watch: false, trial: undefined, guilty: undefined })
  t.match(judgeBoots(boots({ lasted: true }, {}, {}), nobody), { watch: false, brokenOff: 0 })
  t.match(judgeBoots(boots({ ended: true }, {}, {}), nobody), { watch: false })
  t.match(judgeBoots(boots({}, { lasted: true }), nobody), { watch: true, trial: undefined, brokenOff: 1 })
})

test('who was started last is suspected, and let go when the machine goes down without it', async (t) => {
  t.match(judgeBoots(boots({ last: 'bad' }, {}), nobody), { trial: 'bad', guilty: undefined })
  t.match(judgeBoots(boots({}, {}), nobody), { trial: undefined }, 'it went down before any pod')
  const quiet = judgeBoots(boots({ trial: 'good', last: 'bad' }, { last: 'good' }, {}), nobody)
  t.same([quiet.trial, ...quiet.acquitted], ['bad', 'good'])
  t.match(judgeBoots(boots({ trial: 'good' }, { last: 'good' }, {}), nobody), { trial: undefined })
})

test('who takes the machine down three times, alone and last, is held back', async (t) => {
  t.match(judgeBoots(boots(guilty, guilty, { last: 'bad' }, {}), nobody), { trial: 'bad', guilty: undefined })
  t.match(judgeBoots(boots(guilty, guilty, guilty, { last: 'bad' }, {}), nobody), {
    trial: undefined,
    guilty: 'bad',
  })
  t.match(judgeBoots(boots(guilty, { trial: 'bad' }, guilty, guilty), nobody), { guilty: undefined })
  t.match(judgeBoots(boots({ last: 'bad' }, {}), new Set(['bad'])), { trial: undefined, guilty: undefined })
  t.match(judgeBoots(boots({ last: 'worse' }, {}), new Set(['bad'])), { trial: 'worse' }, 'there may be two')
})
