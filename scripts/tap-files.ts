/** Reads the TAP of a run of test files, in which each file is a subtest: what ended how, and what failed in it. */

export type TapFile = {
  readonly path: string
  readonly isOk: boolean
  readonly time: string
  /** Assertions. A failed file in which none failed counts as one, as with tap. */
  readonly passed: number
  readonly failed: number
  readonly failures: readonly TapFailure[]
}
/** A subtest fails for what failed in it. */
export type TapFailure = {
  readonly name: string
  readonly isSubtest: boolean
  place: string
  readonly details: string[]
}

/** `output` holds the file's own lines. `problem` is what the runner reports of its process or its time. */
export type TapResult = TapFile & { readonly output: string; readonly problem: string }
/** `isWhole` is false where the runner broke off: it wrote no totals, or failed although no file did. */
export type TapRun = { readonly files: readonly TapResult[]; readonly isWhole: boolean }

/** In place of the time of a file that did not begin. */
export const skippedFile = 'SKIP no time left'

const maxDetails = 10
const maxColumns = 200

/** Takes the lines of a TAP one by one; returns the file that ends with the line, for most lines undefined. */
export function tapFiles(): (line: string) => TapFile | undefined {
  let reading = newFile()
  return (line) => {
    const file = /^(ok|not ok) \d+ - (\S+\.test\.js)(?: # (?:time=)?(.*))?$/.exec(line)
    if (file === null) {
      readLine(reading, line)
      return undefined
    }
    const [, result, path = '', time = ''] = file
    const { passed, failed, failures } = reading
    // A process that was killed may have ended within a diagnostic.
    reading = newFile()
    const isOk = result === 'ok'
    return { path, isOk, time, passed, failed: isOk ? failed : Math.max(1, failed), failures }
  }
}

/** A file, as far as it was read. */
type Reading = {
  passed: number
  failed: number
  readonly failures: TapFailure[]
  inDiff: boolean
  /** The line that ends the diagnostic; undefined: outside of one. */
  diagnosticEnd: string | undefined
  lastIndent: number
}

function newFile(): Reading {
  return { passed: 0, failed: 0, failures: [], inDiff: false, diagnosticEnd: undefined, lastIndent: 0 }
}

function readLine(file: Reading, line: string): void {
  if (file.diagnosticEnd !== undefined) {
    if (line === file.diagnosticEnd) file.diagnosticEnd = undefined
    const failure = file.failures.at(-1)
    if (failure) file.inDiff = readDiagnostic(failure, line.trim(), file.inDiff)
    return
  }
  const [, diagnosticIndent] = /^( +)---$/.exec(line) ?? []
  if (diagnosticIndent !== undefined) file.diagnosticEnd = `${diagnosticIndent}...`
  const [, indent, what, name = ''] = /^( +)(?:(ok|not ok) \d+(?: - (.*))?|1\.\.\d+.*)$/.exec(line) ?? []
  if (indent === undefined) return
  // The line of a subtest follows its own lines, which are indented deeper.
  const isSubtest = indent.length < file.lastIndent
  file.lastIndent = indent.length
  if (what === 'not ok') file.failures.push({ name, isSubtest, place: '', details: [] })
  if (what !== undefined && !isSubtest && !/ # (SKIP|TODO)/i.test(line)) file[what === 'ok' ? 'passed' : 'failed'] += 1
  file.inDiff = false
}

/** Each file that ended, in that order. */
export function readTapRun(tap: string): TapRun {
  const files = tap.split(/^(?=# Subtest: |# \{)/m).flatMap((output) => {
    const read = tapFiles()
    const file = output
      .split('\n')
      .map((line) => read(line))
      .find((ended) => ended !== undefined)
    return file === undefined ? [] : [{ ...file, output, problem: file.isOk ? '' : problemOf(output) }]
  })
  // test.sh adds the status of the runner.
  const failsAlone = /^# status: [1-9]/m.test(tap) && !/^not ok /m.test(tap)
  return { files, isWhole: /^# \{/m.test(tap) && !failsAlone }
}

/** From the diagnostic of the file: its process. */
function problemOf(output: string): string {
  const signal = /^ {2}signal: (SIG\w+)$/m.exec(output)?.[1]
  const status = /^ {2}exitCode: (\d+)$/m.exec(output)?.[1]
  if (/^ {2}expired: /m.test(output)) return 'did not end in time'
  if (signal !== undefined) return `its process ended by ${signal}`
  return status === undefined || status === '0' ? '' : `its process ended with status ${status}`
}

/** Whether the next line is one of a diff. */
function readDiagnostic(failure: TapFailure, line: string, inDiff: boolean): boolean {
  const [, key, value = ''] = /^([A-Za-z]+): ?(.*)$/.exec(line) ?? []
  if (key === 'diff') return true
  if (key === 'fileName') failure.place = value
  else if (key === 'lineNumber') failure.place += `:${value}`
  const isShown = inDiff ? /^[-+](?!--|\+\+)/.test(line) : /^(found|wanted|expired)$/.test(key ?? '')
  if (isShown && failure.details.length < maxDetails) failure.details.push(line.slice(0, maxColumns))
  return inDiff && !/^(\.\.\.$|(at|stack|source|compare|tapCaught):)/.test(line)
}
