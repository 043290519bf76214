/**
 * `test-progress.js`: reads the TAP of test files as they run, and prints a line for each file that ended, with what failed in
 * it below. `test.sh` shows this, as the whole TAP is too long to look for a failure in.
 */
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type TapFailure, tapFiles } from './tap-files.ts'

const maxFailures = 10

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const progress = testProgress()
  for await (const line of createInterface({ input: process.stdin }))
    for (const printed of progress(line)) console.log(printed)
}

/** Takes the lines of a TAP one by one; each time the lines to print, mostly none. Subtests are indented in it. */
export function testProgress(): (line: string) => readonly string[] {
  const read = tapFiles()
  return (line) => {
    const file = read(line)
    if (file === undefined) return []
    const below = file.isOk ? [] : file.failures.slice(0, maxFailures).flatMap(linesOf)
    return [`    ${file.isOk ? 'ok' : 'not ok'}  ${file.path}  ${file.time}`, ...below]
  }
}

function linesOf({ name, place, details }: TapFailure): readonly string[] {
  return [`          ${name}${place && ` (${place})`}`, ...details.map((detail) => `              ${detail}`)]
}
