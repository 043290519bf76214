import { test } from 'tap'
import { linesRun, linesText, type ScriptCoverage } from './lines-run.ts'

const text = [
  'function one(a) {',
  '  // a comment',
  '  return a ? yes : no',
  '}',
  'function two() {',
  '  three()',
  '}',
].join('\n')
const needs = {
  textOf: () => text,
  // The source has a line more at its top; the last line has no place in it.
  sourceLineOf: (_: string, line: number) => (line < 6 ? line + 2 : undefined),
}
const range = (part: string, count: number) => {
  const startOffset = text.indexOf(part)
  return { startOffset, endOffset: startOffset + part.length, count }
}
const whole = { startOffset: 0, endOffset: text.length, count: 1 }
const script = (...ranges: readonly ReturnType<typeof range>[]): ScriptCoverage => ({
  url: 'file:///a.js',
  functions: [{ ranges: [whole] }, ...ranges.map((one) => ({ ranges: [one] }))],
})
const two = text.slice(text.indexOf('function two'))

test('a line counts as missed when a part of it never ran in any process', async (t) => {
  const missed = (...scripts: readonly ScriptCoverage[]) =>
    linesRun(
      scripts.map((one) => [one]),
      () => true,
      needs,
    )
  t.same(missed(script()), [{ url: 'file:///a.js', lines: 4, missed: [] }], 'all ran')
  t.same(missed(script(range('no', 0)))[0]?.missed, [4], 'a branch of a line')
  t.same(missed(script(range(two, 0)))[0]?.missed, [6, 7], 'a function')
  t.same(missed(script(range('yes', 0)), script(range('no', 0)))[0]?.missed, [], 'each branch in one of two processes')
  t.same(missed(script(range('no', 0)), script(range('no', 0), range(two, 0)))[0]?.missed, [4], 'one branch in both')
  t.same(missed(script(range(two, 1), range('three', 0)))[0]?.missed, [7], 'the innermost range counts')
})

test('only the files that are wanted are read, in the order of their names', async (t) => {
  const of = (url: string): ScriptCoverage => ({ ...script(), url })
  const files = linesRun(
    [[of('file:///c.js'), of('file:///b.js')], [of('file:///a.js')]],
    (url) => !url.includes('c'),
    needs,
  )
  t.same(
    files.map(({ url }) => url),
    ['file:///a.js', 'file:///b.js'],
  )
})

test('the text has the lines as spans, and a sum', async (t) => {
  const files = [
    { url: 'a', lines: 9, missed: [1, 2, 3, 7] },
    { url: 'b', lines: 2, missed: [] },
  ]
  t.same(
    linesText(files, (url) => `${url}.ts`),
    ['Lines of which a part never ran:', '  a.ts: 1-3 7', '7 of 11 lines ran as a whole, in 2 files'],
  )
})
