import { test } from 'tap'
import { anything, atomic, integer, list, listBy, mapOf, object, optional, setOf, text } from '../../../api/schema.ts'
import { mergedValue, prunedValue } from './applied.ts'
import {
  countMembers,
  difference,
  elementText,
  equalSets,
  fieldSet,
  formatFieldsV1,
  intersection,
  noFields,
  oneField,
  parseFieldsV1,
  pathsOfMembers,
  setOfPaths,
  sizeOfSet,
  union,
  unionOf,
  without,
} from './field-set.ts'
import { compareValues, fieldsOfValue } from './typed-fields.ts'
import { problemLines, typedProblems } from './typed-problems.ts'

const item = object({
  name: text,
  value: optional(text),
  ports: optional(
    listBy('port', object({ port: integer, protocol: optional(text) }), { keys: { port: undefined, protocol: 'TCP' } }),
  ),
})
const schema = object({
  items: optional(listBy('name', item)),
  words: optional(setOf(text)),
  args: optional(list(text)),
  parts: optional(list(item)),
  labels: optional(mapOf(text)),
  selector: optional(atomic(mapOf(text))),
  inner: optional(object({ a: optional(text), b: optional(object({ c: optional(text) })) })),
  raw: optional(anything),
})

const fields = (value: unknown) => formatFieldsV1(fieldsOfValue(schema, value))
const compared = (before: unknown, after: unknown) => {
  const { changed, removed } = compareValues(schema, before, after)
  return { changed: formatFieldsV1(changed), removed: formatFieldsV1(removed) }
}
const parsed = (fieldsV1: object) => parseFieldsV1(fieldsV1) ?? noFields

test('atomic lists and maps are one field; items and keys are fields of their own', async (t) => {
  t.same(
    fields({
      items: [{ name: 'a', value: '1', ports: [{ port: 53 }, { port: 53, protocol: 'UDP' }] }],
      words: ['x', 'y'],
      args: ['1', '2'],
      labels: { app: 'web' },
      selector: { app: 'web' },
      inner: { b: { c: '1' } },
      raw: { any: { thing: 1 } },
      other: 'not in the schema',
    }),
    {
      'f:args': {},
      'f:inner': { 'f:b': { 'f:c': {} } },
      'f:items': {
        'k:{"name":"a"}': {
          '.': {},
          'f:name': {},
          'f:ports': {
            'k:{"port":53,"protocol":"TCP"}': { '.': {}, 'f:port': {} },
            'k:{"port":53,"protocol":"UDP"}': { '.': {}, 'f:port': {}, 'f:protocol': {} },
          },
          'f:value': {},
        },
      },
      'f:labels': { 'f:app': {} },
      'f:raw': {},
      'f:selector': {},
      'f:words': { 'v:"x"': {}, 'v:"y"': {} },
    },
  )
})

test('an empty object and null are fields, an empty list is not', async (t) => {
  t.same(fields({ inner: {}, items: [], labels: {}, words: null }), { 'f:inner': {}, 'f:labels': {}, 'f:words': {} })
  t.same(fields({ inner: { a: null } }), { 'f:inner': { 'f:a': {} } })
})

test('what came is itself a field, with all below it; what went likewise', async (t) => {
  const value = { items: [{ name: 'a' }], labels: { app: 'web' }, selector: { app: 'web' } }
  const whole = {
    'f:items': { '.': {}, 'k:{"name":"a"}': { '.': {}, 'f:name': {} } },
    'f:labels': { '.': {}, 'f:app': {} },
    'f:selector': {},
  }
  t.same(compared({}, value), { changed: whole, removed: {} })
  t.same(compared(value, {}), { changed: {}, removed: whole })
  t.same(compared(value, value), { changed: {}, removed: {} })
  t.same(compared(value, structuredClone(value)), { changed: {}, removed: {} })
})

test('a change is the field that has another value', async (t) => {
  t.same(compared({ labels: { a: '1', b: '1' } }, { labels: { a: '2', c: '1' } }), {
    changed: { 'f:labels': { 'f:a': {}, 'f:c': {} } },
    removed: { 'f:labels': { 'f:b': {} } },
  })
  t.same(compared({ args: ['1'] }, { args: ['1', '2'] }), { changed: { 'f:args': {} }, removed: {} })
  t.same(compared({ selector: { a: '1' } }, { selector: { a: '1', b: '1' } }), {
    changed: { 'f:selector': {} },
    removed: {},
  })
  t.same(compared({ words: ['a', 'b'] }, { words: ['b', 'c'] }), {
    changed: { 'f:words': { 'v:"c"': {} } },
    removed: { 'f:words': { 'v:"a"': {} } },
  })
  t.same(compared({ labels: { a: '1' } }, { labels: {} }), { changed: {}, removed: { 'f:labels': { 'f:a': {} } } })
  t.same(compared({ labels: {}, items: [] }, { labels: {}, items: [] }), { changed: {}, removed: {} })
  t.same(
    compared({ items: [{ name: 'a' }, { name: 'b' }] }, { items: [{ name: 'b' }, { name: 'a' }] }),
    { changed: {}, removed: {} },
    'an order has no owner',
  )
})

test('items that share their keys are one field together', async (t) => {
  const one = { items: [{ name: 'a', value: '1' }] }
  const two = {
    items: [
      { name: 'a', value: '1' },
      { name: 'a', value: '2' },
    ],
  }
  const three = {
    items: [
      { name: 'a', value: '1' },
      { name: 'a', value: '3' },
    ],
  }
  const field = { 'f:items': { 'k:{"name":"a"}': {} } }
  t.same(fields(two), field)
  t.same(compared(two, two), { changed: {}, removed: {} })
  t.same(compared(two, structuredClone(two)), { changed: {}, removed: {} })
  t.same(compared(two, three), { changed: field, removed: {} })
  const inner = { 'f:items': { 'k:{"name":"a"}': { '.': {}, 'f:name': {}, 'f:value': {} } } }
  t.same(compared(one, two), { changed: field, removed: inner })
  t.same(compared(two, one), { changed: inner, removed: field })
})

test('a body of an apply changes what it names', async (t) => {
  const live = {
    items: [{ name: 'a', value: '1' }],
    labels: { a: '1' },
    inner: { a: '1' },
    selector: { a: '1' },
    args: ['1'],
    words: ['a'],
  }
  const merged = (given: object) => mergedValue(schema, live, given)
  t.same(merged({ labels: { b: '2' }, selector: { b: '2' }, args: ['2'], words: ['b'], inner: { b: { c: '1' } } }), {
    ...live,
    labels: { a: '1', b: '2' },
    selector: { b: '2' },
    args: ['2'],
    words: ['a', 'b'],
    inner: { a: '1', b: { c: '1' } },
  })
  t.same(merged({ labels: null, items: null, inner: {}, words: [] }), live, 'nothing in it changes nothing')
  t.same(mergedValue(schema, {}, { labels: null, inner: {} }), { labels: null, inner: {} })
  t.same(merged({ items: [{ name: 'a', ports: [{ port: 1 }] }] }), {
    ...live,
    items: [{ name: 'a', value: '1', ports: [{ port: 1 }] }],
  })
  t.throws(() => merged({ labels: JSON.parse('{"__proto__":"1"}') }), { message: /__proto__/ })
})

test('merged lists keep both orders as far as they agree', async (t) => {
  const names = (live: string, given: string) => {
    const items = (text: string) => ({ items: [...text].map((name) => ({ name })) })
    const merged = mergedValue(schema, items(live), items(given)) as { items: { name: string }[] }
    return merged.items.map(({ name }) => name).join('')
  }
  t.equal(names('', 'ab'), 'ab')
  t.equal(names('ab', ''), 'ab')
  t.equal(names('ab', 'ba'), 'ba')
  t.equal(names('axb', 'ab'), 'axb')
  t.equal(names('xa', 'na'), 'xna')
  t.equal(names('axby', 'ba'), 'xbya')
  t.equal(names('abc', 'cn'), 'abcn')
  t.equal(names('a', 'b'), 'ab')
})

test('what an applier drops goes unless it is owned, with all that stands below it', async (t) => {
  const value = {
    items: [{ name: 'a', value: '1' }, { name: 'b' }],
    labels: { a: '1', b: '1' },
    inner: { a: '1', b: { c: '1' } },
  }
  const pruned = (dropped: object, owned: object) => prunedValue(schema, value, parsed(dropped), parsed(owned))
  t.same(pruned({}, {}), value)
  const { items, labels, inner } = value
  t.same(pruned({ 'f:labels': { 'f:a': {} } }, { 'f:labels': { 'f:b': {} } }), { items, inner, labels: { b: '1' } })
  t.same(pruned({ 'f:labels': { 'f:a': {} } }, {}), { items, inner }, 'a field of which nothing is owned goes whole')
  t.same(pruned({ 'f:labels': { 'f:a': {} } }, { 'f:labels': { 'f:a': {} } }), value)
  t.same(pruned({ 'f:inner': { 'f:b': { 'f:c': {} } } }, { 'f:inner': { 'f:a': {} } }), {
    items,
    labels,
    inner: { a: '1' },
  })
  t.same(pruned({ 'f:inner': { 'f:b': { 'f:c': {} } } }, { 'f:inner': { 'f:b': { 'f:c': {} } } }), value)
  const first = { '.': {}, 'f:name': {}, 'f:value': {} }
  t.same(pruned({ 'f:items': { 'k:{"name":"a"}': first } }, { 'f:items': { 'k:{"name":"b"}': { '.': {} } } }), {
    labels,
    inner,
    items: [{ name: 'b' }],
  })
  t.same(
    pruned({ 'f:items': { 'k:{"name":"a"}': first } }, { 'f:items': { 'k:{"name":"a"}': { '.': {}, 'f:name': {} } } }),
    { ...value, items: [{ name: 'a' }, { name: 'b' }] },
  )
  t.same(
    pruned({ 'f:items': { 'k:{"name":"a"}': first } }, { 'f:items': { 'k:{"name":"a"}': { 'f:value': {} } } }),
    { ...value, items: [{ name: 'b' }] },
    'an item goes although something in it is owned',
  )
  t.same(
    pruned({ 'f:labels': { 'f:a': {}, 'f:b': {} } }, { 'f:labels': {} }),
    { items, inner },
    'nothing is left of it',
  )
})

test('problems of a body have their paths', async (t) => {
  t.same(typedProblems(schema, { items: [{ name: 'a', value: '1' }], labels: { any: '1' }, raw: { any: 1 } }), [])
  t.same(
    typedProblems(schema, { no: 1, inner: { no: 1 }, parts: [{ name: 'a', no: 1 }], items: [{ name: 'a', no: 1 }] }),
    [
      '.no: field not declared in schema',
      '.inner.no: field not declared in schema',
      '.parts[0].no: field not declared in schema',
      '.items[name="a"].no: field not declared in schema',
    ],
  )
  const missing = `associative list with keys has an element that omits key field "name" (and doesn't have default value)`
  t.same(typedProblems(schema, { items: [{ value: '1' }, 7, { name: null }] }), [
    `.items: element 0: ${missing}`,
    '.items: element 1: associative list with keys may not have non-map elements',
    `.items: element 2: ${missing}`,
  ])
  t.same(typedProblems(schema, { items: [{ name: 'a' }, { name: 'a' }, { name: 'a' }], words: ['x', 'x', {}] }), [
    '.items: duplicate entries for key [name="a"]',
    '.words: element 2: associative list without keys has an element that cannot be one of a set',
    '.words: duplicate entries for key [="x"]',
  ])
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`no-${at}`, 1]))
  t.equal(typedProblems(schema, many).length, 100)
  t.equal(problemLines(['.a: bad']), '.a: bad')
  t.equal(problemLines(['.a: bad', '.b: bad']), 'errors:\n  .a: bad\n  .b: bad')
})

test('elements are read in any spelling and written in one', async (t) => {
  t.same(formatFieldsV1(parsed({ 'k:{"b":2,"a":"x"}': {}, 'v: "x"': {}, 'i:3': { '.': {} }, 'f:__proto__': {} })), {
    'f:__proto__': {},
    'i:3': {},
    'k:{"a":"x","b":2}': {},
    'v:"x"': {},
  })
  for (const bad of ['x:a', 'f', 'k:[]', 'k:{', 'k:{"a":{}}', 'v:{}', 'v:', 'i:x', '']) {
    t.equal(parseFieldsV1({ [bad]: {} }), undefined, bad)
  }
  t.same(['f:a', 'v:"x"', 'i:3', 'k:{"a":"x","b":2}'].map(elementText), ['.a', '[="x"]', '[3]', '[a="x",b=2]'])
})

test('sets are joined, subtracted and compared by their members', async (t) => {
  const ab = parsed({ 'f:m': { '.': {}, 'f:a': {}, 'f:b': {} } })
  const bc = parsed({ 'f:m': { 'f:b': {}, 'f:c': {} } })
  t.same(formatFieldsV1(union(ab, bc)), { 'f:m': { '.': {}, 'f:a': {}, 'f:b': {}, 'f:c': {} } })
  t.same(formatFieldsV1(unionOf([ab, bc, noFields])), { 'f:m': { '.': {}, 'f:a': {}, 'f:b': {}, 'f:c': {} } })
  t.equal(unionOf([]), noFields)
  t.equal(unionOf([ab]), ab)
  t.same(formatFieldsV1(difference(ab, bc)), { 'f:m': { '.': {}, 'f:a': {} } })
  t.equal(difference(ab, parsed({ 'f:x': {} })), ab, 'the very set where it loses nothing')
  t.equal(difference(ab, ab), noFields)
  t.same(formatFieldsV1(intersection(ab, bc)), { 'f:m': { 'f:b': {} } })
  t.equal(intersection(ab, noFields), noFields)
  t.equal(union(noFields, ab), ab)
  t.equal(union(ab, noFields), ab)
  t.same(formatFieldsV1(without(ab, setOfPaths(['m.a']))), { 'f:m': { '.': {}, 'f:b': {} } })
  t.equal(without(ab, setOfPaths(['m'])), noFields, 'with all below it')
  t.ok(equalSets(ab, parsed({ 'f:m': { 'f:b': {}, 'f:a': {}, '.': {} } })))
  t.notOk(equalSets(ab, bc))
  t.notOk(equalSets(ab, parsed({ 'f:m': { 'f:b': {}, 'f:a': {} } })), 'without the element itself')
  t.notOk(equalSets(ab, union(ab, bc)))
  t.same(pathsOfMembers(ab), ['.m', '.m.a', '.m.b'])
  t.same(pathsOfMembers(ab, 2), ['.m', '.m.a'])
  t.equal(countMembers(ab), 3)
  t.equal(sizeOfSet(ab), 4)
  t.equal(fieldSet([['f:a', noFields]]), noFields)
  t.equal(fieldSet([], true), oneField)
})
