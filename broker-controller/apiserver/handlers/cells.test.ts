import { test } from 'tap'
import { ageOf, humanDuration, orNone, orUnknown, tableColumns } from './cells.ts'

test('a duration is printed as kubectl does', async (t) => {
  const durations: [number, string][] = [
    [-2.5, '<invalid>'],
    [-1, '0s'],
    [119, '119s'],
    [120, '2m'],
    [125, '2m5s'],
    [600, '10m'],
    [10_799, '179m'],
    [10_800, '3h'],
    [12_000, '3h20m'],
    [28_800, '8h'],
    [172_799, '47h'],
    [172_800, '2d'],
    [180_000, '2d2h'],
    [8 * 86_400, '8d'],
    [700 * 86_400, '700d'],
    [731 * 86_400, '2y1d'],
    [730 * 86_400, '2y'],
    [9 * 365 * 86_400, '9y'],
  ]
  for (const [seconds, words] of durations) t.equal(humanDuration(seconds * 1000), words)
})

test('short durations have two units, and an earlier end where the second is zero', async (t) => {
  const [minute, hour, day] = [60, 3_600, 86_400]
  const durations: [number, string][] = [
    [-1.9, '0s'],
    [-2, '<invalid>'],
    [0.999, '0s'],
    [10 * minute - 1, '9m59s'],
    [10 * minute + 59, '10m'],
    [3 * hour + 59 * minute + 59, '3h59m'],
    [8 * hour - 1, '7h59m'],
    [2 * day + hour - 1, '2d'],
    [8 * day - 1, '7d23h'],
    [2 * 365 * day - 1, '729d'],
    [8 * 365 * day - 1, '7y364d'],
    [8 * 365 * day, '8y'],
  ]
  for (const [seconds, words] of durations) t.equal(humanDuration(seconds * 1000), words, words)
})

test('an age is the time since an instant, which must be one', async (t) => {
  const now = Date.parse('2026-01-01T00:10:00Z')
  t.equal(ageOf('2026-01-01T00:00:00Z', now), '10m')
  t.equal(ageOf('2026-01-01T00:09:59.500000Z', now), '0s')
  t.equal(ageOf('2026-01-01T00:11:00Z', now), '<invalid>')
  for (const none of [undefined, '', 'yesterday']) t.equal(ageOf(none, now), '<unknown>')
})

test('a column has its type, and its place in the wide form, at the end of its name', async (t) => {
  t.same(tableColumns('Name', 'Count#', 'Ready?', 'Node*'), [
    { name: 'Name', type: 'string', format: 'name', priority: 0 },
    { name: 'Count', type: 'integer', priority: 0 },
    { name: 'Ready', type: 'boolean', priority: 0 },
    { name: 'Node', type: 'string', priority: 1 },
  ])
})

test('a text that is absent or empty has a word in its place', async (t) => {
  t.same([undefined, '', 'a'].map(orNone), ['<none>', '<none>', 'a'])
  t.same([undefined, '', 'a'].map(orUnknown), ['<unknown>', '<unknown>', 'a'])
})
