import { test } from 'tap'
import { directedPods } from './directed-pods.ts'

test('a pod is looked at at once, and one whose claims wait after a change of volumes or a minute', async (t) => {
  const pods = directedPods()
  t.same([pods.take(0), pods.nextMs()], [[], undefined])
  pods.add('a')
  t.equal(pods.nextMs(), 0)
  t.same(pods.take(0), ['a'])
  t.same(pods.take(0), [], 'once')
  pods.wait('a', 1_000)
  t.same([pods.take(60_999), pods.nextMs()], [[], 61_000])
  t.same(pods.take(61_000), ['a'])
  pods.wait('a', 61_000)
  pods.volumesChanged()
  t.equal(pods.nextMs(), 0)
  t.same(pods.take(61_001), ['a'])
  t.equal(pods.nextMs(), undefined)
})

test('a change of volumes concerns pods that wait, and no pod that is gone', async (t) => {
  const pods = directedPods()
  pods.volumesChanged()
  t.equal(pods.nextMs(), undefined)
  for (const key of ['a', 'b']) pods.wait(key, 0)
  pods.delete('a')
  pods.volumesChanged()
  t.same(pods.take(1), ['b'])
  pods.wait('b', 0)
  pods.add('b')
  pods.volumesChanged()
  t.same(pods.take(2), ['b'], 'once, though it is due for two reasons')
})
