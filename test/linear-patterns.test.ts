/**
 * Patterns need time in proportion to the text: one that is tried again at each of many places holds the event loop for seconds, or for hours.
 * Each pattern of the product is matched with long texts of the characters that it names, again and again.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runInThisContext } from 'node:vm'
import { test } from 'tap'
import ts from 'typescript'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folders = ['agent', 'api', 'broker-controller', 'certs', 'daemon', 'dashboard']

/** Patterns for short texts alone, and what makes them short. */
const forShortTexts: ReadonlyMap<string, string> = new Map([
  ['/^\\s*(\\d+(\\.\\d+)?\\s*[a-z]*\\s*)+$/i', 'longestSpan'],
  ['/(\\d+)\\.(\\d+)/', 'the version of the engine'],
  ['/[-.]+$/', 'names of at most 63 characters'],
  ['/^(.*)-\\1$/', 'a range of addresses'],
  ['/(^|[.:])0+(?=\\d+(\\.|$))/g', 'longestAddress'],
  ['/^[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?$/', 'numbers of less than 400 characters'],
  ['/^([+-]?)((?:(?:\\d+\\.?\\d*|\\.\\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/', 'longestText of a duration'],
  ['/(\\d*)\\.?(\\d*)(ns|us|µs|μs|ms|s|m|h)/g', 'longestText of a duration'],
  ['/0+$/', 'nine digits'],
])

/** Linear patterns need less than a millisecond for so many characters, quadratic ones a second. */
const length = 40_000
const mostMs = 150
const endlessMs = 3_000

test('patterns need time in proportion to the text', async (t) => {
  const slow: string[] = []
  for (const [pattern, place] of patternsOf(folders)) {
    if (!/[+*]|\{\d+,/.test(pattern) || forShortTexts.has(pattern)) continue
    const found = slowUnit(pattern)
    if (found !== undefined) slow.push(`${pattern} (${place}): many of ${JSON.stringify(found)}`)
  }
  t.same(slow, [])
})

test('what is left out is still there', async (t) => {
  const all = patternsOf(folders)
  t.same(
    [...forShortTexts.keys()].filter((pattern) => !all.has(pattern)),
    [],
  )
})

test('a pattern that is tried again at each place is found', async (t) => {
  t.equal(slowUnit('/ +x/'), ' ')
  t.equal(slowUnit('/^(a+)+$/'), 'a')
  t.equal(slowUnit('/^ +x/'), undefined)
})

/** Each pattern as it is written, with the first place where it is. */
function patternsOf(names: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const file of names.flatMap(sourcesIn)) {
    const source = ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.Latest)
    const visit = (node: ts.Node): void => {
      if (ts.isRegularExpressionLiteral(node) && !found.has(node.text)) found.set(node.text, file)
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return found
}

function sourcesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return ['node_modules', 'testing', 'dist'].includes(entry.name) ? [] : sourcesIn(path)
    return /\.tsx?$/.test(entry.name) && !entry.name.includes('.test.') ? [path] : []
  })
}

/** What makes the pattern slow when it is there many times; undefined: nothing that was tried. */
function slowUnit(pattern: string): string | undefined {
  for (const unit of unitsOf(pattern)) {
    try {
      if (leastMs(pattern, unit) > mostMs) return unit
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return unit
      throw error
    }
  }
  return undefined
}

/** The least of three runs: a machine may stand still in one. */
function leastMs(pattern: string, unit: string): number {
  const script = `(text) => {
    const pattern = ${pattern.replace(/g(?=[a-z]*$)/, '')}
    let least = Infinity
    for (let run = 0; run < 3 && least > ${mostMs}; run++) {
      const began = performance.now()
      pattern.exec(text)
      least = Math.min(least, performance.now() - began)
    }
    return least
  }`
  const text = `${unit.repeat(length / unit.length)}\u0001`
  return runInThisContext(`(${script})(${JSON.stringify(text)})`, { timeout: endlessMs })
}

function unitsOf(pattern: string): readonly string[] {
  const named = [...new Set(pattern.replace(/\\[a-zA-Z]|[\\^$.*+?()[\]{}|]/g, ''))].slice(0, 12)
  const usual = ['a', '0', ' ', '\n', '.', '-', '/', 'A', '=', ':', '"']
  const single = [...new Set([...usual, ...named])]
  const pairs = named.slice(0, 6).flatMap((one) => ['a', '0', ' '].map((other) => one + other))
  return [...single, ...pairs]
}
