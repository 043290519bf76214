import { test } from 'tap'
import { growth, linearAtMost } from './growth.ts'

/** What `growth` finds where a run costs `plain` microseconds by the size, times the `load` in that run, and how many were measured. */
function found(plain: (size: number) => number, load: (run: number) => number, atMost?: number) {
  let measured = 0
  const costOf = (work: () => unknown) => Number(work()) * load(measured++)
  const risen = growth(1000, (size) => () => plain(size), { costOf, ...(atMost !== undefined && { atMost }) })
  return { risen, measured }
}
const linear = (size: number) => size
const square = (size: number) => size * size

test('cost that grows with the input rises by 8, and with its square by 64', async (t) => {
  t.same(
    found(linear, () => 1),
    { risen: 8, measured: 14 },
  )
  t.ok(found(square, () => 1).risen === 64)
  t.ok(linearAtMost > 8 && linearAtMost < 64)
})

test('load that begins or ends between two runs does not change the figure', async (t) => {
  for (let at = 2; at <= 12; at++) {
    t.equal(found(linear, (run) => (run < at ? 4 : 1)).risen, 8, `it ends at run ${at}`)
    t.equal(found(linear, (run) => (run < at ? 1 : 4)).risen, 8, `it begins at run ${at}`)
  }
})

test('a figure above the limit is measured again, and not without end', async (t) => {
  const first = (run: number) => (run < 14 && run % 2 === 1 ? 5 : 1)
  t.same(found(linear, first), { risen: 8, measured: 28 })
  t.equal(found(square, () => 1).measured, 56)
  t.same(found(linear, first, 50), { risen: 40, measured: 14 }, 'what is below the limit of the caller counts')
})
