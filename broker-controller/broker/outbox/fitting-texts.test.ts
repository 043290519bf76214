import { test } from 'tap'
import { fittingTexts } from './fitting-texts.ts'

test('texts that fit are kept in their order, and of others the longest are left out', async (t) => {
  const texts = new Map([
    ['a', '1'],
    ['b', '22222'],
    ['c', '333'],
    ['d', '4444'],
  ])
  t.same(fittingTexts(texts, 17), { kept: ['1', '22222', '333', '4444'], leftOut: [] })
  t.same(fittingTexts(texts, 16), { kept: ['1', '333', '4444'], leftOut: ['b'] })
  t.same(fittingTexts(texts, 8), { kept: ['1', '333'], leftOut: ['b', 'd'] })
  t.same(fittingTexts(texts, 0), { kept: [], leftOut: ['b', 'd', 'c', 'a'] })
  t.same(fittingTexts(new Map(), 0), { kept: [], leftOut: [] })
})
