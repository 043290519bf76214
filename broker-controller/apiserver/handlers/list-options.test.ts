import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { podStrategy } from '../kinds/pod.ts'
import { exactFields, pageOf, pageOfList, selectionOf, watchStart } from './list-options.ts'

const query = (text: string) => new URLSearchParams(text)
const pods = ['c', 'a', 'b', 'e', 'd'].map((name) => aPod({ name }))
const names = (items: readonly { metadata: { name?: string } }[]) => items.map(({ metadata }) => metadata.name)

test('label and field selectors combine', async (t) => {
  const { matches, isEverything } = selectionOf(
    podStrategy,
    query('labelSelector=app%3Dweb&fieldSelector=spec.nodeName%3Dpi-01,status.phase!%3DFailed'),
  )
  t.notOk(isEverything)
  t.ok(matches(aPod({ labels: { app: 'web' }, nodeName: 'pi-01' })))
  t.notOk(matches(aPod({ labels: { app: 'web' }, nodeName: 'pi-01', phase: 'Failed' })))
  t.notOk(matches(aPod({ labels: { app: 'db' }, nodeName: 'pi-01' })))
  t.ok(selectionOf(podStrategy, query('')).isEverything)
  t.throws(() => selectionOf(podStrategy, query('fieldSelector=spec.color%3Dred')), {
    code: 400,
    message: 'field label not supported: spec.color',
  })
  t.throws(() => selectionOf(podStrategy, query('labelSelector=a%20b')), { code: 400 })
})

test('the equality requirements of a field selector are parsed before the read', async (t) => {
  const fields = exactFields(podStrategy, query('fieldSelector=spec.nodeName%3Dpi-01,status.phase!%3DFailed'))
  t.same([...fields], [['spec.nodeName', 'pi-01']])
})

test('a long list comes in pages, all of them with the version of the first', async (t) => {
  const first = pageOfList(pods, '7', pageOf(query('limit=2')), true)
  t.same(names(first.items), ['a', 'b'])
  t.match(first.metadata, { resourceVersion: '7', remainingItemCount: 3 })
  const second = pageOfList(pods, '9', pageOf(query(`limit=2&continue=${first.metadata.continue}`)), false)
  t.same(names(second.items), ['c', 'd'])
  t.match(second.metadata, { resourceVersion: '7', remainingItemCount: undefined })
  const last = pageOfList(pods, '9', pageOf(query(`limit=2&continue=${second.metadata.continue}`)), true)
  t.same(names(last.items), ['e'])
  t.same(last.metadata, { resourceVersion: '7' })
  t.throws(() => pageOf(query('continue=nonsense')), { code: 400 })
  t.throws(() => pageOf(query('limit=-1')), { code: 400 })
})

test('a watch begins at the resourceVersion of the request', async (t) => {
  const start = (text: string) => watchStart(query(text), '5')
  t.match(start(''), { from: undefined, markInitialEnd: false }, 'with everything there is')
  t.match(start('resourceVersion=0'), { from: undefined })
  t.match(start('resourceVersion=3&timeoutSeconds=300'), { from: '3', timeoutMs: 300_000, bookmarks: false })
  const streaming = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  t.match(start(streaming), { from: undefined, bookmarks: true, markInitialEnd: true })
  t.match(start(`${streaming}&resourceVersion=3`), { from: undefined, markInitialEnd: true })
  t.match(start('sendInitialEvents=false&resourceVersionMatch=NotOlderThan'), { from: '5' }, 'now')
})

test('a watch that contradicts itself is invalid', async (t) => {
  const refused = { code: 422, message: /^ListOptions.meta.k8s.io "" is invalid: / }
  t.throws(() => watchStart(query('sendInitialEvents=true'), '5'), refused)
  t.throws(() => watchStart(query('resourceVersionMatch=NotOlderThan'), '5'), refused)
  t.throws(() => watchStart(query('resourceVersion=abc'), '5'), refused)
})
