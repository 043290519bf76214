import { test } from 'tap'
import { readMaintenanceRules, usualMaintenance } from './maintenance-rules.ts'

test('the usual rules hold, one machine at a time', async (t) => {
  t.same(readMaintenanceRules(usualMaintenance), usualMaintenance)
  t.match(usualMaintenance, { perLink: 1, atOnce: 1 })
  t.ok(usualMaintenance.againSeconds < 86_400)
})

const wrong: readonly (readonly [object, RegExp])[] = [
  [{ window: '2-5' }, /window: "2-5" must be two times of day/],
  [{ window: 'x'.repeat(1000) }, /^window: "x{40}" must/],
  [{ perLink: 0 }, /perLink: must be at least 1/],
  [{ perZone: -1 }, /perZone/],
  [{ atOnce: 0 }, /atOnce/],
  [{ drainSeconds: -1 }, /drainSeconds: must be from 0 to 86400/],
  [{ againSeconds: 86_401 }, /againSeconds/],
  [{ rebootSeconds: 'soon' }, /rebootSeconds/],
]
for (const [rules, expected] of wrong)
  test(`rules are refused: ${JSON.stringify(rules).slice(0, 40)}`, async (t) => {
    t.match(readMaintenanceRules({ ...usualMaintenance, ...rules }), expected)
  })

test('limits may be left out, and a window set', async (t) => {
  const { perLink: _, atOnce: __, ...open } = usualMaintenance
  t.same(readMaintenanceRules({ ...open, window: '23:00-01:00' }), { ...open, window: '23:00-01:00' })
})
