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
