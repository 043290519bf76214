/**
 * What `test.sh` decides by the TAP of the tests on real parts. Those wait for programs, so a file that failed among others is run
 * once more, alone. One that passes then is unsteady: it is reported, and does not fail the run, as long as there are few.
 *
 * `test-verdict.js --again FIRST` prints the files to run again. `test-verdict.js FIRST SECOND UNITS FOLDER FILE…` prints the result,
 * with the totals as the last line, and keeps the first output of unsteady files in FOLDER; its status is 1 when anything failed. FIRST and
 * SECOND are TAP, UNITS is the output of unit-tests.js; what was not run has no file.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readTapRun, skippedFile, type TapResult, type TapRun } from './tap-files.ts'

/** `units` is the output of unit-tests.js. */
export type TestOutput = { readonly first: TapRun; readonly second?: TapRun; readonly units?: string }
export type Verdict = {
  /** What is not as it should be, a line each. */
  readonly lines: readonly string[]
  readonly passed: number
  readonly failed: number
  readonly unsteady: readonly TapResult[]
}
type Totals = { readonly passed: number; readonly failed: number }

/** More than these are not an accident, and running them all again takes long. */
const maxUnsteady = 3
const maxNames = 3
const maxColumns = 200

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2))

function main(args: readonly string[]): number {
  if (args[0] === '--again') {
    for (const path of filesToRunAgain(readRun(args[1] ?? ''))) console.log(path)
    return 0
  }
  const [first = '', second = '', units = '', folder = '', ...files] = args
  const verdict = testVerdict(namesInTap(files), {
    first: readRun(first),
    ...(existsSync(second) && { second: readRun(second) }),
    ...(existsSync(units) && { units: readFileSync(units, 'utf8') }),
  })
  for (const line of verdict.lines) console.log(line)
  for (const file of verdict.unsteady) console.log(`    its first output: ${keepOutput(file, folder)}`)
  console.log(`${verdict.passed} passed, ${verdict.failed} failed`)
  return verdict.failed === 0 ? 0 : 1
}

/** Those that failed, unless there are too many. None where the runner broke off. */
export function filesToRunAgain({ files, isWhole }: TapRun): readonly string[] {
  const failed = files.filter(({ isOk }) => !isOk).map(({ path }) => path)
  return isWhole && failed.length <= maxUnsteady ? failed : []
}

/** The result of all tests. For a file that was run again the second run counts. */
export function testVerdict(wanted: readonly string[], { first, second, units }: TestOutput): Verdict {
  const again = new Set(second && filesToRunAgain(first))
  const secondFiles = new Map(second?.files.map((file) => [file.path, file]))
  const firstFiles = new Map(first.files.map((file) => [file.path, file]))
  const results = wanted.map((path) => (again.has(path) ? secondFiles : firstFiles).get(path) ?? notRun(path))
  const unsteady = first.files.filter(({ path, isOk }) => !isOk && again.has(path) && secondFiles.get(path)?.isOk)
  const failed = results.filter(({ isOk }) => !isOk)
  const skipped = results.filter(({ time }) => time === skippedFile).map(({ path }) => path)
  const brokenOff = [first, second].filter((run) => run?.isWhole === false).length
  const unsteadyUnits = [...(units ?? '').matchAll(/^unsteady: .*$/gm)].map(([line]) => line)
  const isMostSkipped = skipped.length * 2 > results.length
  const isTooMany = unsteadyUnits.length + unsteady.length > maxUnsteady
  const totals = [
    ...results,
    unitTotals(units),
    { passed: 0, failed: brokenOff + Number(isTooMany) + Number(isMostSkipped) },
  ]
  return {
    lines: [
      ...(brokenOff > 0
        ? ['The runner of the tests broke off: its TAP has no totals, or none that fit its status']
        : []),
      ...failed.map(
        (file) =>
          `failed${again.has(file.path) && firstFiles.has(file.path) ? ' twice' : ''}: ${file.path} (${whatFailed(file)})`,
      ),
      ...(first.isWhole && again.size === 0 && failed.length > maxUnsteady
        ? [
            `${failed.length} files failed: none was run again, because more than ${maxUnsteady} fail the run in any case`,
          ]
        : []),
      ...unsteadyUnits,
      ...unsteady.map((file) => `unsteady: ${file.path} (${whatFailed(file)})`),
      ...(skipped.length > 0
        ? [
            `${skipped.length} of ${results.length} files did not begin in the time that the run has here. To run them: scripts/test.sh --quick ${skipped.join(' ')}`,
          ]
        : []),
      ...(isMostSkipped ? ['These are most of the files: this fails the run'] : []),
      ...(isTooMany ? [`More than ${maxUnsteady} files are unsteady: this fails the run`] : []),
    ],
    passed: totals.reduce((sum, { passed }) => sum + passed, 0),
    failed: totals.reduce((sum, { failed }) => sum + failed, 0),
    unsteady,
  }
}

/** A run of unit tests that broke off has no line of totals. */
function unitTotals(output: string | undefined): Totals {
  if (output === undefined) return { passed: 0, failed: 0 }
  const [, passed, failed] = /^(\d+) passed, (\d+) failed$/m.exec(output) ?? []
  return passed === undefined ? { passed: 0, failed: 1 } : { passed: Number(passed), failed: Number(failed) }
}

function notRun(path: string): TapResult {
  return { path, isOk: false, time: '', passed: 0, failed: 1, failures: [], output: '', problem: 'was not run' }
}

/** The names of the assertions, and how the file's process ended where no name shows it. */
function whatFailed({ failures, problem }: TapResult): string {
  const names = failures.filter(({ isSubtest }) => !isSubtest).map(({ name, place }) => name + (place && `, ${place}`))
  const shown = names.slice(0, maxNames).map((name) => name.slice(0, maxColumns))
  const more = names.length > maxNames ? [`${names.length - maxNames} more`] : []
  return [...shown, ...more, ...(names.length === 0 || /time|SIG/.test(problem) ? [problem] : [])].join('; ')
}

function keepOutput({ path, output }: TapResult, folder: string): string {
  mkdirSync(folder, { recursive: true })
  const kept = join(folder, `${basename(path, '.test.js')}.tap`)
  writeFileSync(kept, output)
  return relative(process.cwd(), kept)
}

/** From the folder in which tap runs, each once. */
function namesInTap(files: readonly string[]): readonly string[] {
  return [...new Set(files.map((path) => relative(process.cwd(), path)))]
}

function readRun(path: string): TapRun {
  return readTapRun(existsSync(path) ? readFileSync(path, 'utf8') : '')
}
