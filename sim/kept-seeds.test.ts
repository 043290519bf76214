import { test } from 'tap'
import { keptSeeds } from './kept-seeds.ts'
import { simulate } from './simulation.ts'

for (const { why, world = 'workloads', ...settings } of keptSeeds) {
  test(`seed ${settings.seed} holds: ${why}`, async (t) => {
    const { violations, story } = await simulate({ ...settings, world })
    t.same(violations, [], violations.length === 0 ? 'nothing is violated' : story.join('\n'))
  })
}

test('one seed gives the same story each time, to the byte', async (t) => {
  const story = async (seed: number) => (await simulate({ seed, faultMinutes: 5 })).story.join('\n')
  const [first, second] = [await story(7), await story(7)]
  t.ok(first.length > 10_000, `${first.length} characters`)
  t.equal(first, second)
})
