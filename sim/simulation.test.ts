import { test } from 'tap'
import { simulate } from './simulation.ts'

for (const world of ['budgets', 'shared-claims'] as const) {
  test(`one seed gives the same story each time, to the byte (${world})`, async (t) => {
    const story = async () => (await simulate({ seed: 7, world, faultMinutes: 5 })).story.join('\n')
    const [first, second] = [await story(), await story()]
    t.ok(first.length > 10_000, `${first.length} characters`)
    t.equal(first, second)
  })
}
