/** Warnings that Node.js prints in a program: each is a defect, such as a leaking listener or the use of a deprecated API. */

/** As Node prints them: `(node:4711) MaxListenersExceededWarning: Possible EventTarget memory leak detected. …` */
const processWarning = /^\(node:\d+\) (\[\w+\] )?\w*Warning: /

/** The lines of `output` that are warnings of Node. */
export function processWarnings(output: string): readonly string[] {
  return output.split('\n').filter((line) => processWarning.test(line))
}

/** Throws when `output` of `program` has a warning of Node. */
export function refuseWarnings(program: string, output: string): void {
  const warnings = processWarnings(output)
  if (warnings.length > 0) throw new Error(`${program} printed warnings:\n${warnings.join('\n')}`)
}
