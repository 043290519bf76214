import { test } from 'tap'
import { withoutEnd } from './without-end.ts'

test('characters at the end are removed, and no others', async (t) => {
  t.equal(withoutEnd('/a//b///', '/'), '/a//b')
  t.equal(withoutEnd('/a', '/'), '/a')
  t.equal(withoutEnd('///', '/'), '')
  t.equal(withoutEnd('', '/'), '')
})
