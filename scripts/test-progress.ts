/**
 * `test-progress.js`: reads the TAP of test files as they run, and prints a line for each file that ended, with what failed in
 * it below. `test.sh` shows this, as the whole TAP is too long to look for a failure in.
 */
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

type Failure = { readonly name: string; place: string; readonly details: string[] }

const maxFailures = 10
const maxDetails = 10
const maxColumns = 200

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const progress = testProgress()
  for await (const line of createInterface({ input: process.stdin }))
    for (const printed of progress(line)) console.log(printed)
}

/** Takes the lines of a TAP one by one; each time the lines to print, mostly none. Subtests are indented in it. */
export function testProgress(): (line: string) => readonly string[] {
  let failures: Failure[] = []
  let inDiff = false
  return (line) => {
    const file = /^(ok|not ok) \d+ - (.*\.test\.js)(?: # time=(.*))?$/.exec(line)
    if (file) {
      const [, result, path, time = ''] = file
      const below = result === 'ok' ? [] : failures.slice(0, maxFailures).flatMap(linesOf)
      failures = []
      return [`    ${result}  ${path}  ${time}`, ...below]
    }
    const assertion = /^ +(ok|not ok) \d+(?: - (.*))?$/.exec(line)
    if (assertion) {
      inDiff = false
      if (assertion[1] === 'not ok') failures.push({ name: assertion[2] ?? '', place: '', details: [] })
      return []
    }
    const failure = failures.at(-1)
    if (failure) inDiff = readDiagnostic(failure, line.trim(), inDiff)
    return []
  }
}

/** Whether the next line is one of a diff. */
function readDiagnostic(failure: Failure, line: string, inDiff: boolean): boolean {
  const [, key, value = ''] = /^([A-Za-z]+): ?(.*)$/.exec(line) ?? []
  if (key === 'diff') return true
  if (key === 'fileName') failure.place = value
  else if (key === 'lineNumber') failure.place += `:${value}`
  const isShown = inDiff ? /^[-+](?!--|\+\+)/.test(line) : /^(found|wanted|expired)$/.test(key ?? '')
  if (isShown && failure.details.length < maxDetails) failure.details.push(line.slice(0, maxColumns))
  return inDiff && !/^(\.\.\.$|(at|stack|source|compare|tapCaught):)/.test(line)
}

function linesOf({ name, place, details }: Failure): readonly string[] {
  return [`          ${name}${place && ` (${place})`}`, ...details.map((detail) => `              ${detail}`)]
}
