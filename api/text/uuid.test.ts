import { test } from 'tap'
import { seededRandom } from '../../daemon/testing/seeded-random.ts'
import { uuidOf } from './uuid.ts'

test('a UUID has the form of version 4, and repeats with its seed', async (t) => {
  const random = seededRandom(1)
  const [one, two] = [uuidOf(random), uuidOf(random)]
  for (const uuid of [one, two]) t.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.not(one, two)
  t.equal(uuidOf(seededRandom(1)), one)
})
