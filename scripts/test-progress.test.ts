import { test } from 'tap'
import { testProgress } from './test-progress.ts'

const failed = `TAP version 14
# Subtest: dist/a.test.js
    # Subtest: outer
        ok 1 - fine
        # Subtest: inner
            not ok 1 - numbers
              ---
              compare: ===
              at:
                fileName: test/a.test.ts
                lineNumber: 2
              stack: |
                Test.<anonymous> (test/a.test.ts:2:81)
              source: |
                code: one
              diff: |
                --- expected
                +++ actual
                @@ -1,1 +1,1 @@
                -2
                +1
              ...
        not ok 2 - inner # time=36.947ms
          ---
          at:
            fileName: test/a.test.ts
            lineNumber: 1
          ...
    not ok 1 - outer # time=51.4ms
    1..1
not ok 1 - dist/a.test.js # time=59.352ms
  ---
  exitCode: 1
  ...`
const passed = `# Subtest: dist/b.test.js
    ok 1 - fine # time=1ms
ok 2 - dist/b.test.js # time=3.2ms
ok 3 - dist/c.test.js`

test('a line for each file, and below it what failed', async (t) => {
  t.same(printed(failed), [
    '    not ok  dist/a.test.js  59.352ms',
    '          numbers (test/a.test.ts:2)',
    '              -2',
    '              +1',
    '          inner # time=36.947ms (test/a.test.ts:1)',
    '          outer # time=51.4ms',
  ])
  t.same(printed(passed), ['    ok  dist/b.test.js  3.2ms', '    ok  dist/c.test.js  '])
})

test('nothing of a failed file is shown with the next one', async (t) => {
  t.same(printed(`${failed}\nnot ok 2 - dist/b.test.js # time=30000ms`).slice(-1), [
    '    not ok  dist/b.test.js  30000ms',
  ])
})

test('a file of many and long failures fills no screen', async (t) => {
  const long = Array.from({ length: 40 }, () => `    +${'x'.repeat(1_000)}`).join('\n')
  const one = `    not ok 1 - one\n      ---\n      diff: |\n${long}\n      ...\n`
  const lines = printed(`${one.repeat(50)}not ok 1 - dist/a.test.js # time=1ms`)
  t.equal(lines.length, 111)
  t.equal(Math.max(...lines.map(({ length }) => length)), 214)
})

function printed(tap: string): readonly string[] {
  return tap.split('\n').flatMap(testProgress())
}
