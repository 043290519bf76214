/**
 * `unit-tests.js [PART OF A PATH...]`: runs the compiled tests that need Node.js alone; `--list-real` prints the others.
 * `test-division.ts` divides them. With `--again` up to three files that failed are run once more, alone: one that then passes is printed
 * as unsteady, and does not fail the run.
 *
 * A worker for each core runs one file after the other in its process: the start of a process takes half a second of CPU time,
 * most files a hundredth of that. The files that need a process of their own get one. The PATH is empty, so that a test that starts
 * a program fails here. The last line holds the numbers of assertions.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { divideTests, readSources } from './test-division.ts'
import type { FileOrder, FileReport } from './unit-test-worker.ts'

type FileRun = FileReport & { readonly path: string; readonly ms: number }
/** `text` is what the process wrote besides its reports. */
type TestProcess = { readonly child: ChildProcess; text: string }

const root = fileURLToPath(new URL('../..', import.meta.url))
const timeoutMs = 120_000
/** For the worker to name what does not end; one whose event loop is held cannot. */
const reportMs = 10_000
const maxUnsteady = 3
const [first, ...others] = process.argv.slice(2)
const runsAgain = first === '--again'
const wanted = runsAgain || first === undefined ? others : [first, ...others]
const division = divideTests(readSources(root))

if (wanted[0] === '--list-real') console.log(division.real.map(compiled).join('\n'))
else process.exitCode = await runUnitTests(wanted)

async function runUnitTests(parts: readonly string[]): Promise<number> {
  const paths = division.unit.filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
  if (paths.length === 0) {
    console.error(
      `No unit test has ${parts.join(' or ')} in its path; tests with real parts are run by npm run test:real`,
    )
    return 1
  }
  const beganMs = performance.now()
  const runs = await withSecondRuns(await runFiles(paths))
  for (const { path, ms } of [...runs].sort((a, b) => b.ms - a.ms).slice(0, 3)) console.log(`${seconds(ms)}  ${path}`)
  const failedFiles = runs.filter(hasFailed).length
  const passed = runs.reduce((sum, run) => sum + run.passed, 0)
  const failed = runs.reduce((sum, run) => sum + (hasFailed(run) ? Math.max(1, run.failed) : 0), 0)
  console.log(`${runs.length} files, ${failedFiles} of them failed, in ${seconds(performance.now() - beganMs)}`)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

/** A file that failed has the result of its second run where there is one. */
async function withSecondRuns(runs: readonly FileRun[]): Promise<readonly FileRun[]> {
  const failed = runs.filter(hasFailed)
  if (!runsAgain || failed.length === 0 || failed.length > maxUnsteady) return runs
  const seconds = new Map<FileRun, FileRun>()
  for (const run of failed) {
    const used = startProcess(0)
    const second = await runFile(used, run.path.replace(/^dist\/(.*)\.js$/, '$1.ts'))
    used.child.kill('SIGKILL')
    console.log(hasFailed(second) ? failureText(second) : `unsteady: ${run.path} (${shortText(run)})`)
    seconds.set(run, second)
  }
  return runs.map((run) => seconds.get(run) ?? run)
}

async function runFiles(paths: readonly string[]): Promise<readonly FileRun[]> {
  const runs: FileRun[] = []
  const waiting = inOrder(paths)
  const work = async (_: unknown, worker: number) => {
    let used: TestProcess | undefined
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      used ??= startProcess(worker)
      const run = await runFile(used, path)
      runs.push(run)
      if (hasFailed(run)) console.log(failureText(run))
      if (!run.isLast && !division.alone.has(path)) continue
      used.child.kill('SIGKILL')
      used = undefined
    }
    used?.child.kill('SIGKILL')
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  return runs
}

/** Those alone first, while no process has run another file; then the largest, so that none of them is the last to end. */
function inOrder(paths: readonly string[]): string[] {
  const sizes = new Map(paths.map((path) => [path, statSync(join(root, compiled(path))).size]))
  const rank = (path: string) => (division.alone.has(path) ? Number.POSITIVE_INFINITY : (sizes.get(path) ?? 0))
  return [...paths].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)))
}

function startProcess(worker: number): TestProcess {
  const child = fork(join(root, 'dist/scripts/unit-test-worker.js'), [String(worker)], {
    cwd: root,
    // The worker itself watches the time of a file.
    env: { ...process.env, PATH: '/nonexistent', TAP_TIMEOUT: '0' },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const started: TestProcess = { child, text: '' }
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      started.text += chunk.toString()
    })
  return started
}

async function runFile(used: TestProcess, path: string): Promise<FileRun> {
  const beganMs = performance.now()
  used.text = ''
  const order: FileOrder = { path: compiled(path), timeoutMs }
  used.child.send(order)
  const report = await reportOf(used)
  return { ...report, path: compiled(path), ms: performance.now() - beganMs, output: report.output + used.text }
}

/** What the process reports of its file; that of a process that ends or is silent names how. */
function reportOf({ child }: TestProcess): Promise<FileReport> {
  return new Promise((resolve) => {
    const settle = (report: FileReport) => {
      clearTimeout(timer)
      child.off('message', onMessage).off('close', onClose)
      resolve(report)
    }
    const fail = (problem: string) => settle({ passed: 0, failed: 0, problems: [problem], output: '', isLast: true })
    // tap sends messages of its own.
    const onMessage = (message: object) => {
      if ('isLast' in message) settle(message as FileReport)
    }
    const onClose = (status: number | null, signal: string | null) => fail(`ends its process with ${signal ?? status}`)
    const timer = setTimeout(() => fail('holds the event loop, and has not ended in time'), timeoutMs + reportMs)
    child.on('message', onMessage).on('close', onClose)
  })
}

function hasFailed({ failed, problems }: FileReport): boolean {
  return failed > 0 || problems.length > 0
}

function failureText({ path, problems, output }: FileRun): string {
  return [`not ok ${path}`, ...problems.map((problem) => `  ${path} ${problem}`), failuresIn(output)].join('\n')
}

/** What failed in it, in a line. */
function shortText({ problems, output }: FileRun): string {
  const names = [...output.matchAll(/^ *not ok \d+ - (.*)$/gm)].map(([, name = '']) => name)
  return [...names, ...problems].slice(0, 3).join('; ').slice(0, 300).replaceAll('\n', ' ')
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
