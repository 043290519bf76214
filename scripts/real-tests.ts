/**
 * `real-tests.js [--jobs NUMBER] [--seconds NUMBER] OUTPUT FILE...`: runs compiled tests, each in a process of its own, and prints a line for
 * each that ends, with what failed in it below. OUTPUT gets the TAP of all, in which each file is a subtest. The status is 1 when a file
 * failed. After `--seconds` no file begins: the rest is skipped.
 *
 * The runner of tap takes files by name, so the longest may be the last to begin. It also has each Node.js program that a test starts
 * load its instrumentation: these programs then start later and need more memory than those that a user has.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readTapRun, skippedFile } from './tap-files.ts'
import { testProgress } from './test-progress.ts'

/** How the process of a file ended. */
export type RealRun = {
  readonly path: string
  readonly ms: number
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly isExpired: boolean
}

/** Tests on real parts wait more than they work. */
const usualJobs = 4
/** For a test that sets no limit: on two busy cores a machine whose power is cut twenty times takes half of it. tap then names what has not ended. */
const testSeconds = 1200
/** For a process that does not end after that. */
const fileMs = 1_500_000
const killAfterMs = 10_000

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { jobs: { type: 'string' }, seconds: { type: 'string' } },
    allowPositionals: true,
  })
  const [output, ...files] = positionals
  const jobs = Number(values.jobs ?? usualJobs)
  const beginWithinMs = Number(values.seconds ?? Number.POSITIVE_INFINITY) * 1000
  if (output === undefined || !(jobs >= 1) || !(beginWithinMs >= 0)) {
    console.error('Usage: real-tests.js [--jobs NUMBER] [--seconds NUMBER] OUTPUT FILE...')
    return 64
  }
  const running = new Set<ChildProcess>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      for (const child of running) child.kill('SIGTERM')
      // Without totals in the output.
      process.exit(1)
    })
  const waiting = shortestFirst(files, (path) => statSync(path).size)
  const totals = { passed: 0, failed: 0 }
  let ended = 0
  let status = 0
  const beganMs = performance.now()
  writeFileSync(output, 'TAP version 14\n')
  const work = async () => {
    while (performance.now() - beganMs < beginWithinMs) {
      const path = waiting.shift()
      if (path === undefined) return
      const text = tapOf(await runFile(path, running), ++ended)
      appendFileSync(output, text)
      for (const line of text.split('\n').flatMap(testProgress())) console.log(line)
      for (const { passed, failed, isOk } of readTapRun(text).files) {
        totals.passed += passed
        totals.failed += failed
        if (!isOk) status = 1
      }
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  for (const path of waiting) appendFileSync(output, skipped(path, ++ended))
  const { passed, failed } = totals
  appendFileSync(output, `1..${ended}\n# { total: ${passed + failed}, pass: ${passed}, fail: ${failed} }\n`)
  appendFileSync(output, `# time=${(performance.now() - beganMs).toFixed(3)}ms\n`)
  return status
}

/** Tests of whole fleets last, and each kind by size: where time ends, few files are skipped. The last ones take about equally long. */
export function shortestFirst(paths: readonly string[], sizeOf: (path: string) => number): string[] {
  const ranked = paths.map((path) => ({ path, isOfFleet: /(?:^|\/)dist\/test\//.test(path), size: sizeOf(path) }))
  return ranked.sort((a, b) => Number(a.isOfFleet) - Number(b.isOfFleet) || a.size - b.size).map(({ path }) => path)
}

/** As TAP has it: a directive. */
function skipped(path: string, number: number): string {
  return `# Subtest: ${path}\nok ${number} - ${path} # ${skippedFile}\n`
}

function runFile(path: string, running: Set<ChildProcess>): Promise<RealRun> {
  const beganMs = performance.now()
  // The places of failures are those in the sources.
  const options = ['--enable-source-maps', '--import=./dist/test/support/fail-on-warning.js']
  const child = spawn(process.execPath, [...options, path], {
    env: { TAP_TIMEOUT: String(testSeconds), ...process.env, TAP: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  const written = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8')
    child[name].on('data', (text: string) => {
      written[name] += text
    })
  }
  let isExpired = false
  const limits = [
    setTimeout(() => {
      isExpired = true
      child.kill('SIGTERM')
    }, fileMs),
    setTimeout(() => child.kill('SIGKILL'), fileMs + killAfterMs),
  ]
  return new Promise((resolve, reject) => {
    const end = (code: number | null, signal: NodeJS.Signals | null) => {
      running.delete(child)
      limits.forEach(clearTimeout)
      // A program that the test left has them open, too.
      child.stdout.destroy()
      child.stderr.destroy()
      resolve({ path, ms: performance.now() - beganMs, ...written, code, signal, isExpired })
    }
    child.once('error', reject)
    child.once('close', end)
    child.once('exit', (code, signal) => void setTimeout(() => end(code, signal), 1_000).unref())
  })
}

/** The file as a subtest; its stderr as comments. */
export function tapOf({ path, ms, stdout, stderr, code, signal, isExpired }: RealRun, number: number): string {
  const isOk = code === 0 && !isExpired
  const lines = stdout.split('\n').filter((line) => !line.startsWith('TAP version'))
  const comments = stderr.split('\n').flatMap((line) => (line === '' ? [] : `# stderr: ${line}`))
  const problem = [
    ...(code === null ? [] : [`exitCode: ${code}`]),
    ...(signal === null ? [] : [`signal: ${signal}`]),
    ...(isExpired ? [`expired: ${fileMs}`] : []),
  ]
  return [
    `# Subtest: ${path}`,
    ...[...lines, ...comments].map((line) => `    ${line}`),
    `${isOk ? 'ok' : 'not ok'} ${number} - ${path} # time=${ms.toFixed(3)}ms`,
    ...(isOk ? [] : ['---', ...problem, '...'].map((line) => `  ${line}`)),
    '',
  ].join('\n')
}
