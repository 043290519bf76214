/** Prints a line for each test file that ended, with what failed in it below: the TAP of all is too long to look for a failure in. */
import { type TapFailure, tapFiles } from './tap-files.ts'

const maxFailures = 10

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
