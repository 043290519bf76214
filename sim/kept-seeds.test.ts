import { test } from 'tap'
import { keptSeeds } from './kept-seeds.ts'
import { simulate } from './simulation.ts'

for (const { why, world = 'workloads', ...settings } of keptSeeds) {
  test(`seed ${settings.seed} holds: ${why}`, async (t) => {
    const { violations, story } = await simulate({ ...settings, world })
    t.same(violations, [], violations.length === 0 ? 'nothing is violated' : story.join('\n'))
  })
}
