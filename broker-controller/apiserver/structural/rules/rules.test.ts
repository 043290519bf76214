import { test } from 'tap'
import { problemText } from '../../../../api/problem.ts'
import type { JSONSchemaProps, ValidationRule } from '../../../../api/structural/json-schema-props.ts'
import { objectRuleProblems } from './object-rules.ts'
import { ruleProblems } from './rule-problems.ts'

function finished<T>(work: Generator<undefined, T>): { readonly result: T; readonly pieces: number } {
  for (let pieces = 1; ; pieces++) {
    const step = work.next()
    if (step.done) return { result: step.value, pieces }
  }
}

const text: JSONSchemaProps = { type: 'string', maxLength: 64 }
const object = (properties: { readonly [name: string]: JSONSchemaProps }, more: JSONSchemaProps = {}) => ({
  type: 'object',
  properties,
  ...more,
})
const list = (items: JSONSchemaProps, more: JSONSchemaProps = {}) => ({ type: 'array', items, maxItems: 16, ...more })
const rules = (...all: readonly (string | ValidationRule)[]): JSONSchemaProps => ({
  'x-kubernetes-validations': all.map((rule) => (typeof rule === 'string' ? { rule } : rule)),
})
const inSpec = (spec: JSONSchemaProps) => object({ spec })

/** What is wrong with the definition. */
const defined = (spec: JSONSchemaProps) => finished(ruleProblems('s', inSpec(spec))).result.map(problemText)
/** What is wrong with an object of it. */
const judged = (spec: JSONSchemaProps, now: unknown, old?: unknown) =>
  finished(
    objectRuleProblems(inSpec(spec), { spec: now }, '', old === undefined ? undefined : { spec: old }),
  ).result.map(problemText)

test('a rule that does not hold is a problem of the value that it stands at', async (t) => {
  const port = { type: 'integer' }
  const spec = object({ min: port, max: port }, rules('self.min <= self.max'))
  t.same(defined(spec), [])
  t.same(judged(spec, { min: 1, max: 2 }), [])
  t.same(judged(spec, { min: 3, max: 2 }), ['spec: Invalid value: "object": failed rule: self.min <= self.max'])
  const words = list({ ...text, ...rules({ rule: "self != 'a'", message: 'not this one' }) })
  t.same(judged(words, ['b', 'a']), ['spec[1]: Invalid value: "string": not this one'])
  const labels = { type: 'object', additionalProperties: { ...text, ...rules("self.startsWith('x')") } }
  t.same(judged(labels, { k: 'y' }), [`spec[k]: Invalid value: "string": failed rule: self.startsWith('x')`])
})

test('message, messageExpression, reason and fieldPath make the problem', async (t) => {
  const count = { type: 'integer' }
  const rule = { rule: 'self.count < 3', message: 'plain' }
  const of = (more: Partial<ValidationRule>) => object({ count }, rules({ ...rule, ...more }))
  const expression = "'at most 2, not ' + string(self.count)"
  t.same(judged(of({ messageExpression: expression }), { count: 5 }), [
    'spec: Invalid value: "object": at most 2, not 5',
  ])
  t.same(judged(of({ messageExpression: 'string(1 / 0)' }), { count: 5 }), ['spec: Invalid value: "object": plain'])
  t.same(judged(of({ messageExpression: "'a\\nb'" }), { count: 5 }), ['spec: Invalid value: "object": plain'])
  t.same(judged(of({ reason: 'FieldValueForbidden', fieldPath: '.count' }), { count: 5 }), [
    'spec.count: Forbidden: plain',
  ])
  t.same(judged(of({ reason: 'FieldValueRequired' }), { count: 5 }), ['spec: Required value: plain'])
  t.same(judged(of({ reason: 'FieldValueDuplicate' }), { count: 5 }), ['spec: Duplicate value: "object"'])
  t.match(defined(of({ fieldPath: '.none' })), [/fieldPath: Invalid value: ".none": must be a valid path/])
  t.match(defined(of({ messageExpression: 'self.count' })), [/messageExpression must evaluate to a string/])
})

test('transition rules compare with the earlier value, where there is one', async (t) => {
  const fixed = object({ size: { type: 'integer', ...rules({ rule: 'self == oldSelf', message: 'fixed' }) } })
  t.same(judged(fixed, { size: 1 }), [])
  t.same(judged(fixed, { size: 2 }, { size: 1 }), ['spec.size: Invalid value: "integer": fixed'])
  t.same(judged(fixed, { size: 2 }, {}), [])
  const optional = rules({ rule: 'oldSelf.hasValue() || self > 1', message: 'start higher', optionalOldSelf: true })
  const first = object({ size: { type: 'integer', ...optional } })
  t.same(judged(first, { size: 1 }), ['spec.size: Invalid value: "integer": start higher'])
  t.same(judged(first, { size: 1 }, { size: 3 }), [])
  const item = object({ name: text, port: { type: 'integer' } }, { required: ['name'] })
  const keyed = (more: JSONSchemaProps) =>
    list({ ...item, ...rules({ rule: 'self.port >= oldSelf.port', message: 'up' }) }, more)
  const map = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }
  const [old, now] = [
    [
      { name: 'a', port: 5 },
      { name: 'b', port: 1 },
    ],
    [
      { name: 'b', port: 2 },
      { name: 'a', port: 4 },
    ],
  ]
  t.same(judged(keyed(map), now, old), ['spec[1]: Invalid value: "object": up'])
  t.match(defined(keyed({})), [
    /oldSelf cannot be used on the uncorrelatable portion of the schema within s\.properties\[spec\]/,
  ])
  t.match(defined({ ...text, ...rules({ rule: "self != ''", optionalOldSelf: true }) }), [
    /may not be set if oldSelf is not used/,
  ])
})

test('a part of an object that stays as it was is not judged again', async (t) => {
  const name = { ...text, ...rules("self != 'bad'") }
  const spec = object({ name, other: text })
  t.same(judged(spec, { name: 'bad', other: 'b' }, { name: 'bad', other: 'a' }), [])
  t.match(judged(spec, { name: 'bad' }, { name: 'good' }), [/failed rule/])
  const typed = object({ apiVersion: { ...text, ...rules("self == 'v1'") } })
  const v2 = { apiVersion: 'v2' }
  t.match(finished(objectRuleProblems(typed, v2, '', v2)).result.map(problemText), [/^apiVersion: .*failed rule/])
  const items = list(name)
  t.same(judged(object({ items, other: text }), { items: ['bad'], other: '1' }, { items: ['bad'], other: '2' }), [])
  t.match(judged(object({ items }), { items: ['bad', 'x'] }, { items: ['bad'] }), [/spec.items\[0\]/])
})

test('values have the types of the schema', async (t) => {
  const spec = object({
    time: { type: 'string', format: 'date-time' },
    wait: { type: 'string', format: 'duration' },
    data: { type: 'string', format: 'byte' },
    share: { type: 'number' },
    port: { 'x-kubernetes-int-or-string': true },
    'my-name': text,
    namespace: text,
    names: list(text, { 'x-kubernetes-list-type': 'set' }),
    any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    embedded: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
  })
  const value = {
    time: '2024-01-01T00:00:00Z',
    wait: '90m',
    data: 'YWI=',
    share: 1,
    port: '80%',
    'my-name': 'n',
    namespace: 'x',
    names: ['a', 'b'],
    embedded: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } },
  }
  const holds = (rule: string) => {
    const ruled = { ...spec, ...rules(rule) }
    t.same(defined(ruled), [], rule)
    t.same(judged(ruled, value), [], rule)
  }
  holds("self.time > timestamp('2023-01-01T00:00:00Z')")
  holds("self.wait == duration('1h30m')")
  holds("self.data == b'ab' && self.share / 2.0 == 0.5")
  holds("type(self.port) == string && self.port == '80%'")
  holds("self.__namespace__ == 'x' && self.my__dash__name == 'n'")
  holds("self.names == ['b', 'a'] && self.names + ['a', 'c'] == ['a', 'b', 'c']")
  holds("self.embedded.metadata.name == 'p' && has(self.any) == false")
  t.match(defined({ ...spec, ...rules('self.any.x == 1') }), [/undefined field 'x'/])
  t.match(defined({ ...spec, ...rules("self.share == 'a'") }), [/found no matching overload/])
})

test('null counts as absent, and objects are compared with all that they keep', async (t) => {
  const kept = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const spec = object({ all: list(kept), name: { ...text, nullable: true } })
  const holds = (rule: string, value: unknown) => {
    const ruled = { ...spec, ...rules(rule) }
    t.same([defined(ruled), judged(ruled, value)], [[], []], rule)
  }
  holds('!has(self.name)', { name: null })
  holds('self.all[0] != self.all[1]', { all: [{ x: 1 }, { x: 2 }] })
  holds('self.all[0] == self.all[1]', { all: [{ x: [1] }, { x: [1] }] })
})

test('a definition is refused where a rule does not compile, gives no bool, or may cost too much', async (t) => {
  t.match(defined({ ...text, ...rules('self.x') }), [
    /^s\.properties\[spec\]\.x-kubernetes-validations\[0\]\.rule: Invalid value: "self\.x": compilation failed: ERROR: <input>:1:5: type 'string' does not support field selection/,
  ])
  t.match(defined({ ...text, ...rules('self') }), [/cel expression must evaluate to a bool/])
  const names = { type: 'array', items: { type: 'string' } }
  t.match(defined({ ...names, ...rules('self.all(a, self.all(b, a == b))') }), [
    /rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x \(try simplifying/,
    /contributed to estimated rule cost total/,
    /^s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget/,
  ])
  t.same(defined({ ...list(text), ...rules('self.all(a, self.all(b, a == b))') }), [])
  t.match(defined({ ...text, ...rules(`self != '${'a'.repeat(9_000)}'`) }), [
    /Too long: may not be more than 8192 bytes/,
  ])
  const long = `self != '${'a'.repeat(8_000)}'`
  t.match(defined({ ...text, ...rules(...Array.from({ length: 70 }, () => long)) }), [/more than 500000 characters/])
  const wrong = object({ size: { type: 'integer', default: 1 } }, { default: { size: 1 }, ...rules('self.size > 1') })
  t.match(defined(wrong), [/properties\[spec\]\.default: Invalid value: "object": failed rule/])
})

test('rules that fail when they run are problems too, and those that cost too much end the judgement', async (t) => {
  const port = { 'x-kubernetes-int-or-string': true }
  t.match(judged(object({ port }, rules('self.port > 1')), { port: 'a' }), [
    /'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self\.port > 1/,
  ])
  t.match(judged(object({ a: text }, rules("self.a == 'x'")), {}), [/no such key: a evaluating rule: self\.a == 'x'/])
  t.match(judged(object({ a: text }, rules('self.b')), { a: 'x' }), [/rule compile error: compilation failed/])
  const numbers = { type: 'array', items: { type: 'integer' } }
  const costly = { ...numbers, ...rules('self.all(a, self.all(b, self.all(c, a + b + c >= 0)))', 'false') }
  const many = Array.from({ length: 500 }, (_, index) => index)
  const { result, pieces } = finished(objectRuleProblems(inSpec(costly), { spec: many }, ''))
  t.match(result.map(problemText), [/no further validation rules will be run due to call cost exceeds limit for rule/])
  t.ok(pieces > 20, `${pieces} pieces`)
  const each = { type: 'array', items: costly }
  const few = Array.from({ length: 95 }, (_, index) => index)
  const all = Array.from({ length: 30 }, () => few)
  const whole = { ...numbers, ...rules('self.all(a, self.all(b, self.all(c, a + b + c >= 0)))') }
  t.match(
    finished(
      objectRuleProblems(inSpec({ ...each, items: whole }), { spec: all.map(() => few.slice(0, 50)) }, ''),
    ).result.map(problemText),
    [/running out of cost budget|no further validation rules/],
  )
})
