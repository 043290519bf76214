import { test } from 'tap'
import { refusal } from '../testing/refusal.ts'
import { jsonPatch, mergePatch } from './patch.ts'

test('a merge patch lays fields over, and null removes them', async (t) => {
  const target = { metadata: { name: 'a', labels: { app: 'web', tier: 'front' } }, list: [1, 2] }
  const patch = { metadata: { labels: { tier: null, zone: 'a' } }, list: [3], new: { deep: { kept: 1, gone: null } } }
  t.same(mergePatch(target, patch), {
    metadata: { name: 'a', labels: { app: 'web', zone: 'a' } },
    list: [3],
    new: { deep: { kept: 1 } },
  })
  t.same(target.metadata.labels, { app: 'web', tier: 'front' }, 'the target is as it was')
  t.equal(
    refusal(() => mergePatch(target, [])),
    'BadRequest',
  )
  t.equal(
    refusal(() => mergePatch(target, JSON.parse('{"a":{"__proto__":{"b":1}}}'))),
    'BadRequest',
  )
  t.same(mergePatch({}, { constructor: { prototype: { x: 1 } } }), { constructor: { prototype: { x: 1 } } })
  t.notOk('x' in {}, 'nothing reached what all objects share')
})

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

test('a JSON patch that does not apply is invalid, one that is none is a bad request', async (t) => {
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
    { op: 'add', path: '/a' },
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

test('copies of copies do not grow without end', async (t) => {
  const doubling = Array.from({ length: 60 }, (_, operation) => ({ op: 'copy', from: '', path: `/${operation}` }))
  t.equal(
    refusal(() => jsonPatch({ text: 'x'.repeat(1000) }, doubling)),
    'Invalid',
  )
})
