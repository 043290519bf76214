import { test } from 'tap'
import { list, listBy, object, optional, setOf, text } from '../../../api/schema.ts'
import { mergedValue } from './applied.ts'

const schema = object({
  items: optional(listBy('name', object({ name: text, value: optional(text) }))),
  words: optional(setOf(text)),
  args: optional(list(text)),
})

const order = (live: string, given: string) => {
  const merged = mergedValue(schema, { words: [...live] }, { words: [...given] }) as { words: readonly string[] }
  return merged.words.join('')
}

test('lists that are applied keep the order of both sides as far as they agree', async (t) => {
  const cases: readonly (readonly [live: string, given: string, merged: string])[] = [
    ['', 'ab', 'ab'],
    ['ab', 'ab', 'ab'],
    ['abc', 'b', 'abc'],
    ['abc', 'd', 'abcd'],
    ['ab', 'xa', 'xab'],
    ['ab', 'bx', 'abx'],
    ['xay', 'ab', 'xayb'],
    ['xay', 'ba', 'xbay'],
    // Where they disagree the applier is followed.
    ['ab', 'ba', 'ba'],
    ['axb', 'ba', 'xba'],
    ['abc', 'cba', 'cba'],
    ['xaybz', 'ba', 'xybza'],
  ]
  for (const [live, given, merged] of cases) t.equal(order(live, given), merged, `${live} with ${given}`)
})

test('an item that both have is merged, and one that the applier has twice is its last', async (t) => {
  const live = { items: [{ name: 'a', value: '1' }, { name: 'b' }], args: ['1', '2'] }
  const given = { items: [{ name: 'a' }, { name: 'c', value: '1' }, { name: 'c', value: '2' }], args: ['3'] }
  t.same(mergedValue(schema, live, given), {
    items: [{ name: 'a', value: '1' }, { name: 'b' }, { name: 'c', value: '2' }],
    args: ['3'],
  })
})

test('an object or a list that is null in what is applied changes nothing', async (t) => {
  const live = { items: [{ name: 'a' }] }
  t.same(mergedValue(schema, live, { items: null }), live)
  t.same(mergedValue(schema, live, null), live)
  t.same(mergedValue(schema, live, undefined), live)
})
