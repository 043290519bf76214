import { test } from 'tap'
import { warningHeaders } from './answer-writer.ts'

test('warnings are sent whole, or cut and left out where they are too long for headers', async (t) => {
  t.same(warningHeaders(['a "b"', 'c']), ['299 - "a \\"b\\""', '299 - "c"'])
  const many = warningHeaders(Array.from({ length: 10_000 }, () => 'x'.repeat(300)))
  t.equal(many.length, 16)
  t.ok(many.every((text) => text.length < 300))
})
