import { test } from 'tap'
import { simulate } from './simulation.ts'

test('one seed gives the same story each time, to the byte', async (t) => {
  const story = async (seed: number) => (await simulate({ seed, faultMinutes: 5 })).story.join('\n')
  const [first, second] = [await story(7), await story(7)]
  t.ok(first.length > 10_000, `${first.length} characters`)
  t.equal(first, second)
})
