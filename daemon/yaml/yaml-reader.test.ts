import { test } from 'tap'
import { growth, linearAtMost } from '../testing/growth.ts'
import { yamlCases, yamlRefusals } from '../testing/yaml-table.ts'
import { readYaml, readYamlInTurns } from './yaml-reader.ts'

test('values are those that Kubernetes reads', async (t) => {
  for (const { text, content } of yamlCases) t.same(readYaml(text, { allowDuplicates: true }), content, text)
  t.same(readYaml('{"a":0.5,"b":[true,null,"yes"]}'), { a: 0.5, b: [true, null, 'yes'] }, 'JSON is YAML')
})

test('what Kubernetes refuses is refused with its words', async (t) => {
  for (const [text, message] of yamlRefusals)
    t.throws(() => readYaml(text), { message: new RegExp(escaped(message)) }, text)
})

test('the first document counts, and what follows it is not read', async (t) => {
  t.same(readYaml('---\na: 1\n---\nb: 2\n'), { a: 1 })
  t.same(readYaml('a: 1\n---\nb: [\n'), { a: 1 })
  t.same(readYaml('a: 1\n---\n'), { a: 1 })
  for (const empty of ['', '\n', '# only a comment\n', '---\n', '---\n---\na: 1\n']) t.equal(readYaml(empty), null)
})

test('equal keys are an error with their line, where they are not allowed', async (t) => {
  t.throws(() => readYaml('a: 1\nb: 2\na: 3\n'), { name: 'YamlError', message: 'line 3: key "a" already set in map' })
  t.throws(() => readYaml('x:\n- {1: a, "1": b}\n'), { message: 'line 2: key "1" already set in map' })
  t.throws(() => readYaml('a: [1\n'), { name: 'YamlError', message: /^\S.* at line \d+, column \d+$/ })
})

test('a key is never more than a key', async (t) => {
  const content = readYaml('__proto__: {a: 1}\nconstructor: 2\n')
  t.same(Object.entries(content ?? {}), [
    ['__proto__', { a: 1 }],
    ['constructor', 2],
  ])
  t.equal(Object.getPrototypeOf(content), Object.prototype)
})

test('size, levels and aliases are bounded', async (t) => {
  t.throws(() => readYaml('x'.repeat(1024 * 1024 + 1)), { message: 'it is longer than 1048576 bytes' })
  t.same(JSON.stringify(readYaml(`${'['.repeat(100)}${']'.repeat(100)}`)).length, 200)
  for (const levels of [101, 50_000]) {
    t.throws(() => readYaml(`${'['.repeat(levels)}${']'.repeat(levels)}`), { message: 'it has more than 100 levels' })
  }
  const chain = Array.from({ length: 5_000 }, (_, level) => `a${level + 1}: &a${level + 1} {<<: *a${level}}`)
  t.throws(
    () => readYaml(['a0: &a0 {}', ...chain].join('\n')),
    { message: 'it has more than 100 levels' },
    'merged maps',
  )
  const doubled = (first: string, next: (last: string) => string) =>
    [
      `a0: &a0 ${first}`,
      ...Array.from({ length: 40 }, (_, level) => `a${level + 1}: &a${level + 1} ${next(`*a${level}`)}`),
    ].join('\n')
  const excessive = { message: 'document contains excessive aliasing' }
  t.throws(() => readYaml(doubled('[x]', (last) => `[${last}, ${last}]`)), excessive)
  t.throws(() => readYaml(doubled('{}', (last) => `{<<: [${last}, ${last}]}`)), excessive, 'merged maps that are empty')
})

test('keys that are given again are named where the last one counts', async (t) => {
  const found: string[] = []
  const options = { allowDuplicates: true, onDuplicate: (sentence: string) => found.push(sentence) } as const
  t.same(readYaml('a: 1\nb: {c: 1, c: 2}\na: 3\n', options), { a: 3, b: { c: 2 } })
  t.same(found, ['line 2: key "c" already set in map', 'line 3: key "a" already set in map'])
})

test('the cost grows with the text', async (t) => {
  const cost = growth(500, (keys) => {
    const text = Array.from({ length: keys }, (_, key) => `k${key}: v`).join('\n')
    return () => readYaml(text)
  })
  t.ok(cost < linearAtMost, `${cost} times for 8 times the keys`)
})

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

test('a text that is read in several turns means the same', async (t) => {
  for (const { text, content } of yamlCases)
    t.same(await readYamlInTurns(text, { allowDuplicates: true }), content, text)
  for (const [text, message] of yamlRefusals)
    await t.rejects(readYamlInTurns(text), { message: new RegExp(escaped(message)) }, text)
  for (const [text, content] of Object.entries({ 'a: 1\n---\nb: [\n': { a: 1 }, '---\n---\na: 1\n': null, '': null })) {
    t.same(await readYamlInTurns(text), content)
  }
  await t.rejects(readYamlInTurns(`${'['.repeat(101)}${']'.repeat(101)}`), { message: 'it has more than 100 levels' })
})

test('a manifest of the allowed length is read in turns, or refused for its parts', async (t) => {
  const others = Array.from({ length: 3_000 }, (_, key) => `k${key}: v`).join('\n')
  t.match(await readYamlInTurns(`${others}\nlong: |\n${'  a line of a text\n'.repeat(50_000)}`), { k2999: 'v' })
  const most = { message: 'it has more than 65536 words and signs' }
  await t.rejects(readYamlInTurns(`[${'a,'.repeat(500_000)}]`), most)
})
