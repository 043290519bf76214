/**
 * `unit-test-worker.js NUMBER`: imports the compiled tests that its parent orders, one after the other, and reports what each of
 * them showed. Node.js, tap and the modules of the programs are loaded once for all of them.
 *
 * A file has ended when nothing keeps the event loop alive any more, as in a process of its own. NUMBER differs between workers
 * that run at the same time: tap names the folders of `t.testdir()` after the arguments and the title of the test.
 */
import { resolve } from 'node:path'
import { Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { t } from 'tap'

/** `path` is that of a compiled test, from the working directory. */
export type FileOrder = { readonly path: string; readonly timeoutMs: number }
/**
 * Numbers of assertions, what is wrong with the file besides, and what tap wrote. With `isLast` the process runs no other file:
 * something of this one is still there, or tap has ended.
 */
export type FileReport = {
  readonly passed: number
  readonly failed: number
  readonly problems: readonly string[]
  readonly output: string
  readonly isLast: boolean
}
type CurrentFile = {
  readonly began: Counts
  readonly process: string
  readonly timer: NodeJS.Timeout
  readonly problems: string[]
  isImported: boolean
}
type Counts = { readonly total: number; readonly pass: number; readonly fail: number }

let current: CurrentFile | undefined
let output = ''

// tap ends with the first file if it writes to standard output itself.
t.pipe(
  new Writable({
    write(chunk, _encoding, done) {
      output += String(chunk)
      done()
    },
  }),
)

// Before the first file: it is not a listener that a file leaves. Each warning is a defect: a listener that leaks, an API that goes away.
process.on('warning', ({ name, message, stack }) => {
  current?.problems.push(`emits a warning: ${stack ?? `${name}: ${message}`}`)
})
process.on('message', (order: FileOrder) => start(order))
process.on('beforeExit', () => report())

function start({ path, timeoutMs }: FileOrder): void {
  const timer = setTimeout(() => report(process.getActiveResourcesInfo()), timeoutMs).unref()
  const { total, pass, fail } = t.counts
  const file: CurrentFile = {
    began: { total, pass, fail },
    process: processState(),
    timer,
    problems: [],
    isImported: false,
  }
  current = file
  output = ''
  process.channel?.unref()
  import(pathToFileURL(resolve(path)).href)
    .catch((error) => file.problems.push(`cannot be imported: ${inspect(error)}`))
    .finally(() => {
      file.isImported = true
    })
}

/** `open` is what keeps the event loop alive although the time is up. */
function report(open: readonly string[] = []): void {
  if (current === undefined) return
  const { began, process: before, timer, problems, isImported } = current
  current = undefined
  clearTimeout(timer)
  const isInTest = !t.idle && t.results === undefined
  // Names the tests that have not ended.
  if (isInTest) t.endAll()
  const waits = isInTest || !isImported
  const after = processState()
  const { total, pass, fail } = t.counts
  if (open.length > 0) problems.push(`has not ended in time; open are ${open.join(', ')}`)
  else if (waits) problems.push('waits for a promise that nothing can settle any more')
  if (total === began.total) problems.push('asserts nothing')
  if (after !== before) problems.push(`leaves the process changed, from ${before} to ${after}`)
  const isLast = waits || open.length > 0 || t.results !== undefined
  const answer: FileReport = { passed: pass - began.pass, failed: fail - began.fail, problems, output, isLast }
  process.channel?.ref()
  process.send?.(answer)
}

/** What a test that shares its process must leave as it was. The listeners for errors are tap's. */
function processState(): string {
  const events = process.eventNames().filter((name) => !/^un(caught|handled)/.test(String(name)))
  const listeners = events.map((name) => `${String(name)} ${process.listenerCount(name)}`).sort()
  return JSON.stringify({ folder: process.cwd(), status: process.exitCode, listeners })
}
