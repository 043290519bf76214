import { test } from 'tap'
import { compiledCache } from './compiled-cache.ts'

test('what was used last is kept, within the characters that all may have', async (t) => {
  const made: string[] = []
  const cache = compiledCache<string>(1_000)
  const get = (key: string, characters = 400) =>
    cache.get(key, characters, () => {
      made.push(key)
      return key
    })
  for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) t.equal(get(key), key)
  t.same(made, ['a', 'b', 'c', 'b'], 'c took the place of b, and b that of the oldest')
  get('large', 5_000)
  t.equal(get('large', 5_000), 'large')
  t.same(made.slice(4), ['large'], 'one that is too large for others is kept alone')
})
