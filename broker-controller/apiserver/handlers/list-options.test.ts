import { test } from 'tap'
import { type ApiError, isApiError } from '../../../api/api-error.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { podStrategy } from '../kinds/pod.ts'
import { statusOf } from '../wire/status-errors.ts'
import { exactFields, pageOf, pageOfList, refuseListOptions, selectionOf, watchStart } from './list-options.ts'

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
  const page = (text: string, version: string, isEverything = true) =>
    pageOfList(pods, { resourceVersion: version, nowMs: 1000 }, pageOf(query(text), 1000), isEverything)
  const first = page('limit=2', '7')
  t.same(names(first.items), ['a', 'b'])
  t.match(first.metadata, { resourceVersion: '7', remainingItemCount: 3 })
  const second = page(`limit=2&continue=${first.metadata.continue}`, '9', false)
  t.same(names(second.items), ['c', 'd'])
  t.match(second.metadata, { resourceVersion: '7', remainingItemCount: undefined })
  const last = page(`limit=2&continue=${second.metadata.continue}`, '9')
  t.same(names(last.items), ['e'])
  t.same(last.metadata, { resourceVersion: '7' })
  for (const wrong of [
    'continue=nonsense',
    'continue=WzEsMl0',
    `resourceVersion=7&continue=${first.metadata.continue}`,
  ]) {
    t.throws(() => pageOf(query(wrong), 1000), { code: 400 }, wrong)
  }
})

test('a list expires after five minutes; the token of the error continues with what is there then', async (t) => {
  const list = (text: string, version: string, nowMs: number) =>
    pageOfList(pods, { resourceVersion: version, nowMs }, pageOf(query(text), nowMs), true)
  const first = list('limit=2', '7', 0)
  const second = list(`limit=1&continue=${first.metadata.continue}`, '8', 200_000)
  const expired = errorOf(() => pageOf(query(`limit=1&continue=${second.metadata.continue}`), 300_001))
  t.match(expired, { code: 410, reason: 'Expired', continueToken: /./ })
  t.match(statusOf(expired), { metadata: { continue: expired?.continueToken ?? '' } })
  const rest = list(`limit=1&continue=${expired?.continueToken}`, '9', 600_000)
  t.same(names(rest.items), ['d'], 'after the last object that was delivered')
  t.match(rest.metadata, { resourceVersion: '9', remainingItemCount: 1 })
  const end = list(`limit=1&continue=${rest.metadata.continue}`, '11', 700_000)
  t.same([names(end.items), end.metadata], [['e'], { resourceVersion: '9' }])
})

function errorOf(run: () => unknown): ApiError | undefined {
  try {
    run()
  } catch (error) {
    if (isApiError(error)) return error
  }
  return undefined
}

test('a negative limit does not count, and version 0 may stay in the query of the next page', async (t) => {
  const page = (text: string) => pageOfList(pods, { resourceVersion: '7', nowMs: 0 }, pageOf(query(text), 0), true)
  t.same(page('limit=-1').items.length, pods.length)
  const { metadata } = page('limit=2')
  const next = page(`limit=2&resourceVersion=0&continue=${metadata.continue}`)
  t.same(names(next.items), ['c', 'd'])
})

test('a watch begins at the resourceVersion of the request', async (t) => {
  const start = (text: string) => watchStart(query(text), '5')
  t.match(start(''), { from: undefined, markInitialEnd: false }, 'with everything there is')
  t.match(start('resourceVersion=0'), { from: undefined })
  const marked = { from: undefined, markInitialEnd: true }
  t.match(start('allowWatchBookmarks=true'), marked, 'as with sendInitialEvents')
  t.match(start('resourceVersion=0&allowWatchBookmarks=true'), marked)
  t.match(start('resourceVersion=3&allowWatchBookmarks=true'), { from: '3', markInitialEnd: false })
  t.throws(() => start('timeoutSeconds=soon'), { code: 400 })
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

test('the initial events of a watch are refused as Kubernetes refuses them', async (t) => {
  const match = 'resourceVersionMatch'
  const refused = (text: string) => {
    const error = errorOf(() => watchStart(query(text), '5'))
    t.match(error, { code: 422, reason: 'Invalid' }, text)
    return error?.message.replace('ListOptions.meta.k8s.io "" is invalid: ', '')
  }
  const requires = `${match}: Forbidden: sendInitialEvents requires setting ${match} to NotOlderThan`
  const unless = `${match}: Forbidden: ${match} is forbidden for watch unless sendInitialEvents is provided`
  const unsupported = `${match}: Unsupported value: "Exact": supported values: "NotOlderThan"`
  const continued = `${match}: Forbidden: ${match} is forbidden when continue is provided`
  t.equal(refused('sendInitialEvents=true'), requires)
  t.equal(refused('sendInitialEvents=false'), requires)
  t.equal(refused(`sendInitialEvents=true&${match}=Exact`), `[${requires}, ${unsupported}]`)
  t.equal(refused(`sendInitialEvents=true&${match}=NotOlderThan&continue=a`), continued)
  t.equal(refused(`${match}=NotOlderThan`), unless)
  t.equal(refused(`${match}=Exact&continue=a`), `[${unless}, ${unsupported}, ${continued}]`)
  t.match(watchStart(query('continue=a'), '5'), { from: undefined }, 'by itself it has no effect on a watch')
})

test('a list whose options contradict each other is invalid, in the words of Kubernetes', async (t) => {
  const match = 'resourceVersionMatch'
  const refused = (text: string) => {
    try {
      refuseListOptions(query(text))
      return undefined
    } catch (error) {
      if (!isApiError(error, 'Invalid')) throw error
      return error.message.replace('ListOptions.meta.k8s.io "" is invalid: ', '')
    }
  }
  const fine = ['', 'resourceVersion=0', `resourceVersion=0&${match}=NotOlderThan`, `resourceVersion=5&${match}=Exact`]
  t.same(fine.map(refused), [undefined, undefined, undefined, undefined])
  t.equal(refused(`${match}=Exact`), `${match}: Forbidden: ${match} is forbidden unless resourceVersion is provided`)
  const exact = `${match}: Forbidden: ${match} "exact" is forbidden for resourceVersion "0"`
  t.equal(refused(`resourceVersion=0&${match}=Exact`), exact)
  t.equal(
    refused(`resourceVersion=5&continue=a&${match}=NotOlderThan`),
    `${match}: Forbidden: ${match} is forbidden when continue is provided`,
  )
  t.match(
    refused(`resourceVersion=5&${match}=Odd`),
    `${match}: Unsupported value: "Odd": supported values: "Exact", "NotOlderThan", ""`,
  )
  const initial = 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'
  t.equal(refused('sendInitialEvents=false'), initial)
  t.match(
    refused(`sendInitialEvents=true&${match}=Exact`),
    /^\[.*unless resourceVersion is provided, sendInitialEvents: /,
  )
})
