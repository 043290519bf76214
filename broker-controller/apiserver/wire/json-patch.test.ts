import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { growth, linearAtMost } from '../../../daemon/testing/growth.ts'
import { refusal } from '../../testing/refusal.ts'
import { jsonPatch } from './json-patch.ts'

test('a JSON patch does one operation after the other', async (t) => {
  const target = { a: { b: [1, 2, 3] }, 'x/y~z': 'odd' }
  const after = jsonPatch(target, [
    { op: 'test', path: '/a/b/0', value: 1 },
    { op: 'add', path: '/a/b/1', value: 9 },
    { op: 'add', path: '/a/b/-', value: 4 },
    { op: 'remove', path: '/a/b/0' },
    { op: 'replace', path: '/x~1y~0z', value: 'even' },
    { op: 'copy', from: '/a/b', path: '/c' },
    { op: 'move', from: '/a/b', path: '/d' },
    { op: 'add', path: '/a/n', value: null },
  ])
  t.same(after, { a: { n: null }, 'x/y~z': 'even', c: [9, 2, 3, 4], d: [9, 2, 3, 4] })
  t.same(target, { a: { b: [1, 2, 3] }, 'x/y~z': 'odd' }, 'the target is as it was')
  t.same(jsonPatch(target, [{ op: 'replace', path: '', value: { new: 1 } }]), { new: 1 })
})

test('a negative index of a JSON patch counts from the end', async (t) => {
  const after = (...operations: readonly object[]) => jsonPatch({ a: [1, 2, 3], b: [{ c: 1 }] }, operations)
  t.same(after({ op: 'remove', path: '/a/-1' }), { a: [1, 2], b: [{ c: 1 }] })
  t.same(after({ op: 'replace', path: '/a/-3', value: 9 }), { a: [9, 2, 3], b: [{ c: 1 }] })
  t.same(after({ op: 'add', path: '/a/-1', value: 4 }), { a: [1, 2, 3, 4], b: [{ c: 1 }] })
  t.same(after({ op: 'add', path: '/a/-2', value: 4 }), { a: [1, 2, 4, 3], b: [{ c: 1 }] })
  t.same(after({ op: 'test', path: '/a/-1', value: 3 }, { op: 'add', path: '/b/-1/d', value: 2 }), {
    a: [1, 2, 3],
    b: [{ c: 1, d: 2 }],
  })
  t.equal(
    refusal(() => after({ op: 'remove', path: '/a/-4' })),
    'Invalid',
  )
})

test('a JSON patch that does not apply is invalid, a malformed one is a bad request', async (t) => {
  const target = { a: [1], b: { c: 1 } }
  const invalid = [
    { op: 'test', path: '/b/c', value: 2 },
    { op: 'remove', path: '/none' },
    { op: 'replace', path: '/b/none', value: 1 },
    { op: 'add', path: '/a/2', value: 1 },
    { op: 'add', path: '/a/01', value: 1 },
    { op: 'add', path: '/b/none/deep', value: 1 },
    { op: 'remove', path: '/a/-' },
    { op: 'remove', path: '' },
    { op: 'move', from: '/b', path: '/b/c/d' },
    { op: 'remove', path: '/b/constructor' },
  ]
  for (const operation of invalid)
    t.equal(
      refusal(() => jsonPatch(target, [operation])),
      'Invalid',
      operation.op,
    )
  const bad = [
    {},
    1,
    { op: 'jump', path: '/a' },
    { op: 'add', path: 'a', value: 1 },
    { op: 'add', path: '/__proto__', value: 1 },
  ]
  for (const operation of bad)
    t.equal(
      refusal(() => jsonPatch(target, [operation])),
      'BadRequest',
    )
  t.equal(
    refusal(() => jsonPatch(target, {})),
    'BadRequest',
  )
})

test('a value that is missing is null, and a field that is missing is equal to null', async (t) => {
  const target = { a: 1, b: {}, list: [] }
  const after = [
    { op: 'test', path: '/none', value: null },
    { op: 'test', path: '/b/none' },
    { op: 'add', path: '/c' },
    { op: 'replace', path: '/a', value: null },
  ]
  t.same(jsonPatch(target, after), { a: null, b: {}, c: null, list: [] })
  for (const path of ['/a', '/none/deep', '/list/0']) {
    const test = [{ op: 'test', path, value: null }]
    t.equal(
      refusal(() => jsonPatch(target, test)),
      'Invalid',
      path,
    )
  }
})

test('copies of copies do not grow without end', async (t) => {
  const doubling = Array.from({ length: 60 }, (_, operation) => ({ op: 'copy', from: '', path: `/${operation}` }))
  t.equal(
    refusal(() => jsonPatch({ text: 'x'.repeat(1000) }, doubling)),
    'Invalid',
  )
})

test('neither the target nor the patch is changed, also where a value is changed after it was added', async (t) => {
  const target = { list: [{ a: 1 }], other: { kept: 1 } }
  const operations = [
    { op: 'add', path: '/given', value: { list: [1] } },
    { op: 'add', path: '/given/list/0', value: 0 },
    { op: 'copy', from: '/given', path: '/again' },
    { op: 'remove', path: '/again/list/0' },
    { op: 'replace', path: '/list/0/a', value: 2 },
    { op: 'move', from: '/list/0', path: '/list/-' },
  ]
  const before = JSON.stringify([target, operations])
  const after = jsonPatch(target, operations)
  t.same(after, { list: [{ a: 2 }], other: { kept: 1 }, given: { list: [0, 1] }, again: { list: [1] } })
  t.equal((after as typeof target).other, target.other, 'what is not changed is not copied')
  t.equal(JSON.stringify([target, operations]), before)
  t.same(jsonPatch(target, operations), after, 'the same patch applies again')
})

test('each operation costs its path, whatever the size of the document', async (t) => {
  const document = (keys: number) => ({
    data: Object.fromEntries(Array.from({ length: keys }, (_, key) => [`k${key}`, 'v'])),
  })
  const adding = growth(1_200, (size) => {
    const operations = Array.from({ length: size }, (_, key) => ({ op: 'add', path: `/data/n${key}`, value: 'v' }))
    return () => jsonPatch(document(size), operations)
  })
  t.ok(adding < linearAtMost, `${adding} times for 8 times the operations`)
  const mixed = growth(400, (size) => {
    const operations = Array.from({ length: size }, (_, key) => [
      { op: 'test', path: `/data/k${key}`, value: 'v' },
      { op: 'move', from: `/data/k${key}`, path: `/data/m${key}` },
      { op: 'copy', from: `/data/m${key}`, path: `/data/k${key}` },
    ]).flat()
    return () => jsonPatch(document(size), operations)
  })
  t.ok(mixed < linearAtMost, `${mixed} times for 8 times the operations`)
})

test('what operations multiply is bounded: items moved by insertions, levels of copies', async (t) => {
  const long = { list: Array.from({ length: 100_000 }, () => 0) }
  const heads = Array.from({ length: 10_000 }, () => ({ op: 'add', path: '/list/0', value: 1 }))
  t.equal(
    refusal(() => jsonPatch(long, heads)),
    'Invalid',
  )
  t.same(jsonPatch({ list: [] }, heads), { list: heads.map(() => 1) })
  const nesting = Array.from({ length: 1_000 }, (_, level) => {
    const [from, to] = level % 2 === 0 ? ['a', 'b'] : ['b', 'a']
    return [
      { op: 'add', path: `/${to}`, value: {} },
      { op: 'move', from: `/${from}`, path: `/${to}/${from}` },
    ]
  }).flat()
  t.equal(
    refusal(() => jsonPatch({ a: {} }, [...nesting, { op: 'copy', from: '/a', path: '/c' }])),
    'Invalid',
  )
})

test('the error of a JSON patch is what kubectl shows, with a bounded length', async (t) => {
  const message = (operation: object) => {
    try {
      jsonPatch({ a: [1], b: { c: 1 } }, [operation])
    } catch (error) {
      if (isApiError(error)) {
        t.same(error.details, {}, 'kubectl prints the message of a refusal only where the details are there and empty')
        return error.message.replace('the server rejected our request due to an error in our request: ', '')
      }
    }
    return 'no refusal'
  }
  t.equal(message({ op: 'test', path: '/b/c', value: 2 }), 'testing value /b/c failed: test failed')
  t.equal(
    message({ op: 'replace', path: '/none', value: 2 }),
    'replace operation does not apply: doc is missing path: "/none": missing value',
  )
  t.equal(
    message({ op: 'remove', path: '/a/7' }),
    'Unable to access invalid index: 7 in path "/a/7": invalid index referenced',
  )
  t.ok(message({ op: 'remove', path: `/${'x'.repeat(100_000)}` }).length < 300)
})

test('operations that copy many fields are refused before they take long', async (t) => {
  const data = Object.fromEntries(Array.from({ length: 5000 }, (_, number) => [`k${number}`, 'v']))
  const copies = (count: number) =>
    Array.from({ length: count }, (_, number) => ({ op: 'copy', from: '/data', path: `/c${number}` }))
  t.throws(() => jsonPatch({ data }, copies(21)), { message: /copy more than 100000 fields and items/ })
  t.doesNotThrow(() => jsonPatch({ data }, copies(15)))
})
