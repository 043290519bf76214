/**
 * `unit-tests.js [PART OF A PATH...]`: runs the compiled tests that need Node.js alone; `--list-real` prints the others.
 * `test-division.ts` divides them.
 *
 * Each file is a process of `node` itself: the loader with which tap's runner records what a test loads takes longer than most of
 * them. Their PATH is empty, so that a test that starts a program fails here.
 */
import { spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { divideTests, readImports } from './test-division.ts'

type FileRun = { readonly path: string; readonly status: number | null; readonly output: string; readonly ms: number }

const root = fileURLToPath(new URL('../..', import.meta.url))
const testTimeoutS = 120
const wanted = process.argv.slice(2)
const division = divideTests(readImports(root))

if (wanted[0] === '--list-real') console.log(division.real.map(compiled).join('\n'))
else process.exitCode = await runUnitTests(wanted)

async function runUnitTests(parts: readonly string[]): Promise<number> {
  const paths = division.unit
    .filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
    .map(compiled)
  if (paths.length === 0) {
    console.error(
      `No unit test has ${parts.join(' or ')} in its path; tests with real parts are run by npm run test:real`,
    )
    return 1
  }
  const beganMs = performance.now()
  // The largest first, so that none of them is the last to end.
  const waiting = [...paths].sort((a, b) => statSync(join(root, b)).size - statSync(join(root, a)).size)
  const runs: FileRun[] = []
  const work = async () => {
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      const run = await runFile(path)
      runs.push(run)
      if (run.status !== 0) console.log(`not ok ${run.path}\n${failuresIn(run.output)}`)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  for (const { path, ms } of [...runs].sort((a, b) => b.ms - a.ms).slice(0, 3)) console.log(`${seconds(ms)}  ${path}`)
  const failed = runs.filter(({ status }) => status !== 0).length
  const passes = runs.map(({ output }) => Number(/^# \{ .*\bpass: (\d+)/m.exec(output)?.[1] ?? 0))
  const assertions = passes.reduce((sum, pass) => sum + pass, 0)
  console.log(
    `${runs.length - failed} files passed with ${assertions} assertions, ${failed} failed, in ${seconds(performance.now() - beganMs)}`,
  )
  return failed === 0 ? 0 : 1
}

function runFile(path: string): Promise<FileRun> {
  const beganMs = performance.now()
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [path], {
      cwd: root,
      env: { ...process.env, PATH: '/nonexistent', TAP_TIMEOUT: String(testTimeoutS) },
      stdio: ['ignore', 'pipe', 'pipe'],
      // After tap's own timeout, for a test that holds the event loop.
      timeout: (testTimeoutS + 10) * 1000,
      killSignal: 'SIGKILL',
    })
    let output = ''
    const take = (chunk: Buffer) => {
      output += chunk.toString()
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.once('error', (error) => take(Buffer.from(`not ok - ${error.message}\n`)))
    child.once('close', (status) => resolve({ path, status, output, ms: performance.now() - beganMs }))
  })
}

/** What is not ok, with the diagnostics below it, and what was written besides; without the passed assertions. */
function failuresIn(output: string): string {
  return output
    .split('\n')
    .filter((line) => !/^\s*(ok \d|# Subtest|1\.\.\d|TAP version)/.test(line))
    .join('\n')
}

function compiled(path: string): string {
  return join('dist', path.replace(/\.ts$/, '.js'))
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
