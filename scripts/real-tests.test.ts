import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { type RealRun, shortestFirst, tapOf } from './real-tests.ts'
import { readTapRun, skippedFile } from './tap-files.ts'
import { testProgress } from './test-progress.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)
const importTap = `import { test } from ${JSON.stringify(import.meta.resolve('tap'))}\n`

test('each file runs in a process of its own, without instrumentation, and its result is printed and kept', async (t) => {
  const folder = t.testdir({
    'passes.test.js': `${importTap}test('p', async (t) => { t.ok(1); t.notOk(process.env.NODE_OPTIONS); t.equal(process.env.TAP_TIMEOUT, '1200') })`,
    'fails.test.js': `${importTap}test('numbers', async (t) => t.equal(1, 2, 'one is two'))`,
    'is-killed.test.js': `${importTap}test('k', async (t) => { t.ok(1); console.error('no more'); process.kill(process.pid, 'SIGKILL') })`,
    'hangs-on.test.js': `import { spawn } from 'node:child_process'
      ${importTap}test('h', async (t) => { t.ok(1); spawn('sleep', ['60'], { stdio: 'inherit', detached: true }).unref() })`,
    'warns.test.js': `${importTap}test('w', async (t) => { t.ok(1); process.emitWarning('a leak') })`,
    'package.json': '{"type": "module"}',
  })
  const paths = ['fails', 'is-killed', 'passes', 'hangs-on', 'warns'].map((name) => join(folder, `${name}.test.js`))
  const output = join(folder, 'results.tap')
  const { NODE_OPTIONS: _options, TAP_TIMEOUT: _timeout, ...env } = process.env
  const ended = await run(process.execPath, ['dist/scripts/real-tests.js', output, ...paths], {
    ...{ cwd: repository, env },
  }).catch((error: { readonly code: number; readonly stdout: string }) => error)
  t.match(ended, { code: 1 })
  t.match(ended.stdout, /^ {4}ok {2}\S+passes\.test\.js {2}\d+\.\d+ms$/m)
  t.match(ended.stdout, /^ {4}not ok {2}\S+fails\.test\.js .*\n {10}one is two/m)
  const tap = await readFile(output, 'utf8')
  const { files, isWhole } = readTapRun(tap)
  t.ok(isWhole)
  const found = files.map(({ path, isOk, passed, failed, problem }) => [path, isOk, passed, failed, problem])
  t.same(
    found.sort(),
    [
      [paths[0], false, 0, 1, 'its process ended with status 1'],
      [paths[1], false, 1, 1, 'its process ended by SIGKILL'],
      [paths[2], true, 3, 0, ''],
      [paths[3], true, 1, 0, ''],
      [paths[4], false, 1, 1, 'its process ended with status 1'],
    ].sort(),
  )
  t.match(tap, /^ {4}# stderr: no more$/m)
  t.match(tap, /^# \{ total: 9, pass: 6, fail: 3 \}$/m)
})

test('without time left no file begins, and each is named as skipped', async (t) => {
  const folder = t.testdir({ 'a.test.js': 'throw new Error()', 'b.test.js': 'throw new Error()' })
  const output = join(folder, 'results.tap')
  const paths = ['a', 'b'].map((name) => join(folder, `${name}.test.js`))
  const { stdout } = await run(process.execPath, ['dist/scripts/real-tests.js', '--seconds', '0', output, ...paths], {
    cwd: repository,
  })
  t.equal(stdout, '')
  const { files, isWhole } = readTapRun(await readFile(output, 'utf8'))
  t.ok(isWhole)
  t.match(
    files,
    paths.map((path) => ({ path, isOk: true, time: skippedFile, passed: 0 })),
  )
})

test('tests of fleets begin last, and of each kind the largest', async (t) => {
  const sizes = new Map([
    ['dist/agent/large.test.js', 900],
    ['dist/test/small.test.js', 10],
    ['dist/agent/small.test.js', 20],
    ['dist/test/hostile/large.test.js', 30],
  ])
  t.same(
    shortestFirst([...sizes.keys()], (path) => sizes.get(path) ?? 0),
    [
      'dist/agent/small.test.js',
      'dist/agent/large.test.js',
      'dist/test/small.test.js',
      'dist/test/hostile/large.test.js',
    ],
  )
})

test('a file that did not end in time fails with that, though its process ended well', async (t) => {
  const [file] = readTapRun(tapOf({ ...ended, isExpired: true }, 1)).files
  t.match(file, { isOk: false, failed: 1, problem: 'did not end in time' })
})

test('a process that is killed within a diagnostic hides no result', async (t) => {
  const stdout = 'TAP version 14\nnot ok 1 - numbers\n  ---\n  diff: |\n    --- expec'
  const text = tapOf({ ...ended, stdout, code: null, signal: 'SIGKILL' }, 1)
  t.match(readTapRun(text).files, [{ path: 'dist/a.test.js', isOk: false, problem: 'its process ended by SIGKILL' }])
  t.match(text.split('\n').flatMap(testProgress()), [/^ {4}not ok {2}dist\/a\.test\.js/, /numbers/])
})

const ended: RealRun = {
  ...{ path: 'dist/a.test.js', ms: 12.3456, stdout: 'ok 1 - fine\n1..1\n', stderr: '' },
  ...{ code: 0, signal: null, isExpired: false },
}
