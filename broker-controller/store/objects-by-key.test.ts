import { test } from 'tap'
import { objectsByKey } from './objects-by-key.ts'

test('objects of one name in several namespaces are apart, and a deleted one is gone', async (t) => {
  const objects = objectsByKey<string>()
  objects.set({ namespace: 'a', name: 'x' }, 'first')
  objects.set({ namespace: 'b', name: 'x' }, 'second')
  objects.set({ name: 'x' }, 'of the cluster')
  objects.set({ namespace: 'a', name: 'x' }, 'replaced')
  t.equal(objects.get({ namespace: 'a', name: 'x' }), 'replaced')
  t.equal(objects.get({ namespace: '', name: 'x' }), 'of the cluster')
  t.same([...objects.values()], ['replaced', 'second', 'of the cluster'])
  objects.delete({ namespace: 'a', name: 'y' })
  objects.delete({ namespace: 'c', name: 'x' })
  objects.delete({ namespace: 'a', name: 'x' })
  t.equal(objects.get({ namespace: 'a', name: 'x' }), undefined)
  t.same([...objects.values()], ['second', 'of the cluster'])
})

test('it is empty until an object is there, and after the last one is gone', async (t) => {
  const objects = objectsByKey<string>()
  t.ok(objects.isEmpty())
  objects.set({ namespace: 'a', name: 'x' }, 'first')
  t.notOk(objects.isEmpty())
  objects.delete({ namespace: 'a', name: 'x' })
  t.ok(objects.isEmpty())
})
