import { test } from 'tap'
import { keptSeeds } from './kept-seeds.ts'
import { simulate } from './simulation.ts'

for (const { why, ...settings } of keptSeeds) {
  test(`seed ${settings.seed} holds: ${why}`, async (t) => {
    const { violations, story } = await simulate(settings)
    t.same(violations, [], violations.length === 0 ? 'nothing is violated' : story.join('\n'))
  })
}

test('one seed gives the same story each time, to the byte', async (t) => {
  const [first, second, other] = [
    await simulate({ seed: 7, faultMinutes: 8 }),
    await simulate({ seed: 7, faultMinutes: 8 }),
    await simulate({ seed: 8, faultMinutes: 8 }),
  ]
  t.ok(first.story.length > 100, `${first.story.length} lines`)
  t.equal(first.story.join('\n'), second.story.join('\n'))
  t.not(first.story.join('\n'), other.story.join('\n'))
})
