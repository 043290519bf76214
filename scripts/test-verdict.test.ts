import { test } from 'tap'
import { readTapRun, skippedFile } from './tap-files.ts'
import { filesToRunAgain, testVerdict } from './test-verdict.ts'

const [a, b, c, d] = ['dist/a.test.js', 'dist/b.test.js', 'dist/c.test.js', 'dist/d.test.js'] as const

test('a file that failed, crashed or did not end in time is run again', async (t) => {
  const first = run([passes(a), fails(b), crashes(c)])
  t.same(filesToRunAgain(first), [b, c])
  t.same(filesToRunAgain(run([passes(a), expires(b)])), [b])
  t.same(filesToRunAgain(run([passes(a)])), [])
})

test('a file that passes alone is unsteady, and does not fail the run', async (t) => {
  const verdict = testVerdict([a, b], { first: run([passes(a), fails(b)]), second: run([passes(b)]) })
  t.same(verdict.lines, ['unsteady: dist/b.test.js (numbers, test/b.test.ts:2)'])
  t.same([verdict.passed, verdict.failed], [4, 0])
  t.equal(verdict.unsteady.length, 1)
  t.ok(verdict.unsteady[0]?.output.startsWith(fails(b)), 'with its first output')
})

test('a file that fails twice fails the run, with the assertions of its second run', async (t) => {
  const verdict = testVerdict([a, b], { first: run([crashes(a), fails(b)]), second: run([passes(a), fails(b)]) })
  t.same(verdict.lines, [
    'failed twice: dist/b.test.js (numbers, test/b.test.ts:2)',
    'unsteady: dist/a.test.js (its process ended by SIGKILL)',
  ])
  t.same([verdict.passed, verdict.failed], [3, 1])
})

test('more than three failed files fail the run, and none is run again', async (t) => {
  const files = [a, b, c, d]
  const first = run([fails(a), crashes(b), expires(c), fails(d)])
  t.same(filesToRunAgain(first), [])
  const verdict = testVerdict(files, { first })
  t.same(verdict.lines, [
    'failed: dist/a.test.js (numbers, test/a.test.ts:2)',
    'failed: dist/b.test.js (its process ended by SIGKILL)',
    'failed: dist/c.test.js (timeout!; did not end in time)',
    'failed: dist/d.test.js (numbers, test/d.test.ts:2)',
    '4 files failed: none was run again, because more than 3 fail the run in any case',
  ])
  t.same([verdict.passed, verdict.failed], [3, 4])
})

test('three failed files are run again', async (t) => {
  const files = [a, b, c]
  const verdict = testVerdict(files, { first: run(files.map(fails)), second: run(files.map(passes)) })
  t.equal(verdict.unsteady.length, 3)
  t.same([verdict.passed, verdict.failed], [6, 0])
})

test('files that did not begin in time are named, and fail the run only if they are most of it', async (t) => {
  const first = run([passes(a), skips(b)])
  const verdict = testVerdict([a, b], { first })
  t.match(verdict.lines, [/^1 of 2 files did not begin .*: scripts\/test\.sh --quick dist\/b\.test\.js$/])
  t.same([verdict.passed, verdict.failed], [2, 0])
  const most = testVerdict([a, b, c], { first: run([passes(a), skips(b), skips(c)]) })
  t.match(most.lines, [/^2 of 3 files/, /most of the files/])
  t.same([most.passed, most.failed], [2, 1])
})

test('a file of which neither run has a result fails', async (t) => {
  const verdict = testVerdict([a, b], { first: run([passes(a)]), second: run([]) })
  t.same(verdict.lines, ['failed: dist/b.test.js (was not run)'])
  t.same([verdict.passed, verdict.failed], [2, 1])
})

test('a runner that broke off fails the run, and nothing is run again', async (t) => {
  const first = readTapRun(`TAP version 14\n1..2\n${passes(a)}# Subtest: dist/b.test.js\n    ok 1 - fine\n`)
  t.same(filesToRunAgain(first), [])
  const verdict = testVerdict([a, b], { first })
  t.match(verdict.lines, [/^The runner of the tests broke off/, 'failed: dist/b.test.js (was not run)'])
  t.same([verdict.passed, verdict.failed], [2, 2])
  t.equal(testVerdict([a], { first: readTapRun('') }).failed, 2)
})

test('a second runner that broke off fails the run', async (t) => {
  const second = readTapRun(passes(b))
  t.equal(testVerdict([a, b], { first: run([passes(a), fails(b)]), second }).failed, 1)
})

test('a runner that fails although no file failed fails the run', async (t) => {
  const verdict = testVerdict([a], { first: readTapRun(`${tapOf([passes(a)])}# status: 1\n`) })
  t.equal(verdict.failed, 1)
  const usual = readTapRun(`${tapOf([passes(a), fails(b)])}# status: 1\n`)
  t.same(filesToRunAgain(usual), [b])
})

test('the totals have those of the unit tests; unit tests without totals fail the run', async (t) => {
  const first = run([passes(a)])
  const passed = testVerdict([a], { first, units: '0.9 s  dist/u.test.js\n1200 passed, 0 failed\n' })
  t.same([passed.passed, passed.failed], [1202, 0])
  t.equal(testVerdict([a], { first, units: '10 passed, 2 failed\n' }).failed, 2)
  t.equal(testVerdict([a], { first, units: 'Error: out of memory\n' }).failed, 1)
})

test('unsteady unit tests are reported with the others, and together they may be three', async (t) => {
  const units = ['dist/u.test.js', 'dist/v.test.js', 'dist/w.test.js'].map((path) => `unsteady: ${path} (late)\n`)
  const totals = '10 passed, 0 failed\n'
  const few = testVerdict([a], { first: run([passes(a)]), units: `${units.join('')}${totals}` })
  t.match(
    few.lines,
    units.map((line) => line.trim()),
  )
  t.equal(few.failed, 0)
  const both = { first: run([passes(a), fails(b)]), second: run([passes(b)]), units: `${units.join('')}${totals}` }
  t.equal(testVerdict([a, b], both).failed, 1)
  t.match(testVerdict([a, b], both).lines.at(-1), 'More than 3 files are unsteady')
})

test('a line names few of many failures', async (t) => {
  const many = Array.from({ length: 40 }, (_, index) => `    not ok ${index + 1} - ${'x'.repeat(300)}\n`).join('')
  const first = run([`# Subtest: ${a}\n${many}    1..40\nnot ok 1 - ${a} # time=1ms\n  ---\n  exitCode: 1\n  ...\n`])
  const [line = ''] = testVerdict([a], { first, second: first }).lines
  t.match(line, /37 more\)$/)
  t.ok(line.length < 700, `${line.length} columns`)
})

function run(blocks: readonly string[]) {
  return readTapRun(tapOf(blocks))
}

function tapOf(blocks: readonly string[]): string {
  return `TAP version 14\n1..${blocks.length}\n${blocks.join('\n')}\n# No coverage generated\n# { total: 2 }\n# time=6364.068ms\n`
}

function passes(path: string): string {
  return `# Subtest: ${path}
    # Subtest: outer
        ok 1 - fine
        # Subtest: inner
            ok 1 - also
            1..1
        ok 2 - inner # time=3ms
        ok 3 - absent # SKIP not here
        1..3
    ok 1 - outer # time=9ms

    1..1
ok 3 - ${path} # time=21.721ms
`
}

function fails(path: string): string {
  return `# Subtest: ${path}
    # Subtest: outer
        ok 1 - fine
        not ok 2 - numbers
          ---
          at:
            fileName: ${path.replace('dist', 'test').replace('.js', '.ts')}
            lineNumber: 2
          diff: |
            --- expected
            +++ actual
            -    ok 1 - text that looks like a result
            +    not ok 2 - text that looks like a result
          ...
        1..2
    not ok 1 - outer # time=59.767ms
      ---
      at:
        lineNumber: 2
      ...

    1..1
not ok 1 - ${path} # time=115.543ms
  ---
  exitCode: 1
  ...
`
}

function crashes(path: string): string {
  return `# Subtest: ${path}
    # Subtest: p
        ok 1 - fine
    1..0 # no tests found
        # test count(1) != plan(null)
    TAP version 14
    1..0 # no tests found
not ok 1 - ${path} # time=5571.192ms
  ---
  signal: SIGKILL
  ...
`
}

function expires(path: string): string {
  return `# Subtest: ${path}
    # Subtest: p
        not ok 1 - timeout!
          ---
          signal: SIGALRM
          expired: TAP
          ...
        1..1
    not ok 1 - p # time=6044.07ms
    1..1
not ok 4 - ${path} # time=6061.756ms
  ---
  exitCode: 1
  expired: 900000
  ...
`
}

function skips(path: string): string {
  return `# Subtest: ${path}\nok 1 - ${path} # ${skippedFile}\n`
}
