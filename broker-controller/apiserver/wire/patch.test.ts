import { test } from 'tap'
import { growth, linearAtMost } from '../../../daemon/testing/growth.ts'
import { refusal } from '../../testing/refusal.ts'
import { mergePatch } from './patch.ts'

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

test('a merge patch leaves nulls out of the objects of a list, and keeps the nulls that are its items', async (t) => {
  const patch = { list: [{ a: null, b: { c: null } }, null, [{ d: null }], 'x'] }
  t.same(mergePatch({ list: [{ a: 1 }] }, patch), { list: [{ b: {} }, null, [{}], 'x'] })
})

test('the cost of a merge patch grows with its keys, not with their square', async (t) => {
  const cost = growth(3_000, (keys) => {
    const fields = Object.fromEntries(Array.from({ length: keys }, (_, key) => [`k${key}`, 'v']))
    const target = { data: Object.fromEntries(Object.keys(fields).map((key) => [`old-${key}`, 'v'])) }
    return () => mergePatch(target, { data: fields })
  })
  t.ok(cost < linearAtMost, `${cost} times for 8 times the keys`)
})
