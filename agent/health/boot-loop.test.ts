import { test } from 'tap'
import { type BootNote, judgeBoots } from './boot-loop.ts'

const boots = (...notes: readonly Omit<BootNote, 'bootID'>[]): readonly BootNote[] =>
  notes.map((note, index) => ({ bootID: `boot-${index}`, ...note }))
const noneHeld = new Set<string>()
const guilty = { trial: 'bad', began: true }

test('a boot that broke off makes the next ones look closer, one that lasted or ended in order does not', async (t) => {
  t.match(judgeBoots([], noneHeld), { watch: false, trial: undefined, guilty: undefined })
  t.match(judgeBoots(boots({ lasted: true }, {}, {}), noneHeld), { watch: false, brokenOff: 0 })
  t.match(judgeBoots(boots({ ended: true }, {}, {}), noneHeld), { watch: false })
  t.match(judgeBoots(boots({}, { lasted: true }), noneHeld), { watch: true, trial: undefined, brokenOff: 1 })
})

test('the pod that was started last is suspected, and cleared when the machine goes down without it', async (t) => {
  t.match(judgeBoots(boots({ last: 'bad' }, {}), noneHeld), {
    trial: { uid: 'bad', waitMs: 10_000 },
    guilty: undefined,
  })
  t.match(judgeBoots(boots({ last: 'bad' }), noneHeld), { trial: undefined }, 'once may be a power cut')
  t.match(judgeBoots(boots({}, {}), noneHeld), { trial: undefined }, 'it went down before any pod')
  const quiet = judgeBoots(boots({ trial: 'good', last: 'bad' }, { last: 'good' }, {}), noneHeld)
  t.same([quiet.trial?.uid, ...quiet.acquitted], ['bad', 'good'])
  t.match(judgeBoots(boots({ trial: 'good' }, { last: 'good' }, {}), noneHeld), { trial: undefined })
})

test('a pod is held back after four deaths alike, the last two after the machine lived longer without it', async (t) => {
  const proven = { ...guilty, controlled: true }
  const of = (...notes: readonly Omit<BootNote, 'bootID'>[]) =>
    judgeBoots(boots(...notes, { last: 'bad' }, {}), noneHeld)
  t.match(of(guilty), { trial: { uid: 'bad', waitMs: 10_000, controlled: false } })
  t.match(of(guilty, guilty), { trial: { waitMs: 30_000, controlled: true } })
  t.match(of(proven, guilty, guilty), { trial: { controlled: true }, guilty: undefined })
  t.match(of(proven, proven, guilty, guilty), { trial: undefined, guilty: 'bad' })
  t.match(of(guilty, guilty, guilty, guilty), { guilty: undefined }, 'without that wait it may be anything')
  t.match(of(proven, guilty, guilty, guilty), { guilty: undefined }, 'that wait must precede both')
  t.match(of(proven, proven, { ...guilty, trial: 'other' }, guilty, guilty), { guilty: undefined })
  t.match(judgeBoots(boots(proven, proven, guilty, guilty), noneHeld), { guilty: 'bad' }, 'older boots are not needed')
  t.match(of(proven, { trial: 'bad' }, proven, guilty, guilty), { guilty: undefined })
  t.match(judgeBoots(boots({ last: 'bad' }, {}), new Set(['bad'])), { trial: undefined, guilty: undefined })
  t.match(judgeBoots(boots({ last: 'worse' }, {}), new Set(['bad'])), { trial: { uid: 'worse' } }, 'there may be two')
})

test('deaths after different times prove nothing, and the wait is twice the longest time', async (t) => {
  const after = (ran: number, controlled = true) => ({ ...guilty, ran, controlled })
  const of = (...notes: readonly Omit<BootNote, 'bootID'>[]) =>
    judgeBoots(boots(...notes, { last: 'bad' }, {}), noneHeld)
  t.match(of(after(5), after(0), after(5), after(5)), { guilty: 'bad' })
  t.match(of(after(20), after(0), after(5), after(5)), { guilty: undefined, trial: { waitMs: 10_000 } })
  t.match(of(after(10), after(20)), { trial: { waitMs: 80_000, controlled: true } })
  t.match(of(after(40), after(20)), { trial: { waitMs: 120_000 } })
})
