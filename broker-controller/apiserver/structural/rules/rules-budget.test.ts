/** Rules that cost most to compile or to evaluate hold the event loop for 20 ms at most. */
import { test } from 'tap'
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import { systemClock } from '../../../../daemon/clock.ts'
import { turnCost } from '../../../../daemon/testing/turn-budget.ts'
import { inPieces } from '../../handlers/turns.ts'
import { objectRuleProblems } from './object-rules.ts'
import { ruleProblems } from './rule-problems.ts'

const mostTurnMs = 20

const ruled = (schema: JSONSchemaProps, ...rules: readonly string[]): JSONSchemaProps => ({
  type: 'object',
  properties: { spec: { ...schema, 'x-kubernetes-validations': rules.map((rule) => ({ rule })) } },
})
const text: JSONSchemaProps = { type: 'string' }
const texts: JSONSchemaProps = { type: 'array', items: text }
const lists: JSONSchemaProps = { type: 'array', items: texts }
const map: JSONSchemaProps = { type: 'object', additionalProperties: text }
const many = Array.from({ length: 16_000 }, (_, index) => `${index}`)
const entries = Object.fromEntries(many.map((name) => [`n${name}`, name]))

const cases: (readonly [what: string, schema: JSONSchemaProps, value: unknown])[] = [
  ['loops', ruled(texts, 'self.all(a, self.all(b, self.all(c, a + b + c != "")))'), many],
  ['a list that grows', ruled(texts, 'self.map(a, self.map(b, b)).size() >= 0'), many],
  ['a map that grows', ruled(texts, 'self.transformMap(i, a, a).size() > 0'), many],
  ['lists that are equal', ruled(lists, 'self.all(a, self.all(b, a == b))'), [many, many]],
  ['values in a list', ruled(texts, 'self.all(a, a in self)'), many],
  ['the size of a map, again and again', ruled(map, `self.size() ${'+ self.size() '.repeat(500)}> 0`), entries],
  ['a pattern', ruled(text, 'self.matches("^(a|b|ab|ba|aab)*c$")'), 'ab'.repeat(500_000)],
  ['all places of a pattern', ruled(text, 'self.findAll("a*?b").size() >= 0'), 'ab'.repeat(500_000)],
  ['a search', ruled(text, `self.contains("b${'a'.repeat(4_000)}")`), 'a'.repeat(1_000_000)],
  ['pieces of a text', ruled(text, 'self.split("").join("-").replace("a", "bbbb").size() >= 0'), 'a'.repeat(500_000)],
]

/** Functions and fields with little cost for much work. */
const cheap: readonly (readonly [what: string, rule: string])[] = [
  ['the size of a text', 'self.text.size() > 0'],
  ['a character of a text', 'self.text.charAt(0) != ""'],
  ['the size of a map', 'self.map.size() > 0'],
  ['the keys of a map', 'self.map.exists(k, true)'],
  ['the names of an object', 'dyn(self.object) != dyn(self.other)'],
  ['bytes', 'self.bytes.size() > 0'],
  ['texts in lists', 'self.one == self.two'],
  ['a name that is escaped', 'self.object.__in__ != "x"'],
  ['a text that is not a duration', 'duration(self.digits) == duration("1s") || true'],
  ['a printed list', '"%s".format([self.list]) != ""'],
]
const fields: JSONSchemaProps = {
  type: 'object',
  properties: Object.fromEntries([...many, 'in'].map((name) => [name, text])),
}
const large: JSONSchemaProps = {
  type: 'object',
  properties: {
    ...{ list: texts, text, digits: text, one: texts, two: texts, object: fields, other: fields },
    bytes: { type: 'string', format: 'byte' },
    map: { type: 'object', additionalProperties: text },
  },
}
const longText = () => Buffer.from('ä😀'.repeat(100_000)).toString()
const byName = Object.fromEntries(many.map((name) => [name, '']))
const largeValue = {
  ...{ list: many, text: longText(), digits: '1'.repeat(300_000), one: [longText()], two: [longText()] },
  ...{ bytes: 'AAAA'.repeat(100_000), map: byName, object: { ...byName, in: 'y' }, other: {} },
}

for (const [what, rule] of cheap) {
  cases.push([`${what} in a loop`, ruled(large, `self.list.all(a, self.list.all(b, ${rule}))`), largeValue])
}

for (const [what, schema, value] of cases) {
  test(`a rule with ${what} is evaluated in pieces`, async (t) => {
    const act = () => inPieces(objectRuleProblems(schema, { spec: value }, ''), systemClock)
    const { ms } = await turnCost({ what, bytes: 0, act }, { enoughMs: mostTurnMs })
    t.ok(ms <= mostTurnMs, `${ms.toFixed(0)} ms`)
  })
}

test('an object that is the first to be judged by many rules is judged in pieces', async (t) => {
  const rules = Array.from({ length: 300 }, (_, index) => `self.all(a, self.exists(b, a == b || b != "${index}"))`)
  const act = () => inPieces(objectRuleProblems(ruled(texts, ...rules), { spec: ['a', 'b'] }, ''), systemClock)
  const { ms, result } = await turnCost({ what: 'rules', bytes: 0, act }, { enoughMs: mostTurnMs })
  t.same(result, [])
  t.ok(ms <= mostTurnMs, `${ms.toFixed(0)} ms`)
})

test('many rules, and long ones, are compiled in pieces', async (t) => {
  const long = Array.from({ length: 400 }, (_, index) => `self != "${index}"`).join(' || ')
  const schema = ruled({ ...text, maxLength: 10 }, ...Array.from({ length: 20 }, () => long))
  const act = () => inPieces(ruleProblems('', schema), systemClock)
  const { ms, result } = await turnCost({ what: 'rules', bytes: 0, act }, { enoughMs: mostTurnMs })
  t.same(result, [])
  t.ok(ms <= mostTurnMs, `${ms.toFixed(0)} ms`)
})
