import { test } from 'tap'
import { type LogFormat, openLog, storyOf } from './log.ts'

const linesOf = (format: LogFormat, write: (log: ReturnType<typeof openLog>) => void): string[] => {
  const lines: string[] = []
  write(openLog({ level: 'info', format, write: (line) => lines.push(line) }))
  return lines
}

test('a line is one JSON object: constant words, facts, and an error with its causes', async (t) => {
  const error = new Error('Cannot stop container x', { cause: new Error('connect ECONNREFUSED') })
  const lines = linesOf('json', (log) => {
    log.debug('Not wanted')
    log.with({ node: 'pi-01' }).warn('Stop failed', { tookMs: 8, error })
  })
  t.equal(lines.length, 1)
  const { time, ...rest } = JSON.parse(lines[0] ?? '')
  t.match(time, /^\d{4}-\d\d-\d\dT/)
  t.same(rest, {
    level: 'warn',
    message: 'Stop failed',
    node: 'pi-01',
    tookMs: 8,
    error: 'Cannot stop container x: connect ECONNREFUSED',
  })
  t.ok(lines[0]?.endsWith('\n'))
})

test('facts do not have the names that each line has itself', async (t) => {
  const [line = ''] = linesOf('json', (log) => {
    // @ts-expect-error: the fact would be lost
    log.warn('Hook failed', { message: 'exit code 1' })
  })
  t.equal(JSON.parse(line).message, 'Hook failed')
})

test('on a terminal the same line reads from left to right', async (t) => {
  const [line] = linesOf('text', (log) => log.info('Pod stopped', { pod: 'default/web', times: [1, 2] }))
  t.match(line, /^\d\d:\d\d:\d\d\.\d{3} INFO {2}Pod stopped pod=default\/web times=\[1,2\]\n$/)
})

test('for the journal a line has its priority, no time, and no line breaks', async (t) => {
  const lines = linesOf('journal', (log) => {
    log.error('Loop failed', { error: new Error('one\n  two') })
    log.info('Pod stopped', { pod: 'default/web', tookMs: 8 })
  })
  t.same(lines, ['<3>Loop failed error=one | two\n', '<6>Pod stopped pod=default/web tookMs=8\n'])
})

test('a fact that JSON has no form for does not end the program, and levels below the chosen one are silent', async (t) => {
  const circle: { name: string; self?: unknown } = { name: 'pi-01' }
  circle.self = circle
  const lines = linesOf('json', (log) => {
    log.info('Circle', { circle, bytes: 5n, nothing: undefined, text: 'as it is' })
    log.with({ pod: 'web' }).debug('Not wanted')
    log.with({ pod: 'web' }).with({ container: 'main' }).error('Both')
  })
  t.equal(lines.length, 2)
  t.match(JSON.parse(lines[0] ?? ''), { circle: /pi-01.*Circular/s, bytes: '5', text: 'as it is' })
  t.match(JSON.parse(lines[1] ?? ''), { pod: 'web', container: 'main', message: 'Both' })
})

test('an error of our own making keeps its stack', async (t) => {
  t.match(storyOf(new TypeError('x is not a function')), /x is not a function\n\s+at /)
  t.equal(storyOf('text'), 'text')
})

test('causes that form a cycle are written once', async (t) => {
  const inner = new Error('inner')
  const outer = new Error('outer', { cause: inner })
  inner.cause = outer
  t.equal(storyOf(outer), 'outer: inner')
  outer.cause = outer
  t.equal(storyOf(outer), 'outer')
})
