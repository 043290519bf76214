import { test } from 'tap'
import { coversPath } from './policy-rules.ts'

test('a star at the end of a path stands for the rest', async (t) => {
  t.ok(coversPath('*', '/a'))
  t.ok(coversPath('/a/*', '/a/b/c'))
  t.ok(coversPath('/a**', '/ab'))
  t.notOk(coversPath('/a/*', '/a'))
  t.notOk(coversPath('/a/*/b', '/a/x/b'), 'only at the end')
  t.ok(coversPath('/a/*/b', '/a/*/b'))
})

test('a path of many stars takes no longer than another one', async (t) => {
  const startMs = performance.now()
  t.notOk(coversPath(`${'*'.repeat(200_000)}x*`, '/a'))
  t.ok(performance.now() - startMs < 1000)
})
