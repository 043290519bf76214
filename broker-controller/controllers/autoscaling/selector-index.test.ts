import { test } from 'tap'
import type { Labels } from '../../../api/selectors.ts'
import { selectorIndex } from './selector-index.ts'

test('it finds the autoscalers of the namespace that select one of the pods', async (t) => {
  const index = selectorIndex()
  const has = (key: string) => (labels: Labels | undefined) => labels?.[key] !== undefined
  index.set('default/b', 'default', has('app'))
  index.set('default/a', 'default', has('tier'))
  index.set('other/c', 'other', has('app'))
  const pods = [{ metadata: {} }, { metadata: { labels: { app: 'web', tier: 'front' } } }]
  t.same(await index.selecting('default', pods), ['default/a', 'default/b'])
  t.same(await index.selecting('default', [{ metadata: { labels: { app: 'web' } } }]), ['default/b'])
  index.remove('default/b')
  t.same(await index.selecting('default', pods), ['default/a'])
})
