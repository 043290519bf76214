import { test } from 'tap'
import type { PodTemplateSpec } from '../../../../api/pod.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { planRevision, revisionData, revisionTemplate, type StoredRevision, surplusRevisions } from './revisions.ts'

const template = (image: string): PodTemplateSpec => ({ spec: { containers: [{ name: 'main', image }] } })
const revision = (revision: number, image: string, name = `web-${revision}`): StoredRevision => ({
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: {
    name,
    namespace: 'default',
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  data: revisionData(template(image)),
  revision,
})
const plan = (revisions: readonly StoredRevision[], image: string) => {
  const { current, number, duplicates, old } = planRevision(revisions, revisionData(template(image)))
  const namesOf = (some: readonly StoredRevision[]) => some.map(({ metadata }) => metadata.name)
  return { current: current?.metadata.name, number, duplicates: namesOf(duplicates), old: namesOf(old) }
}

test('a template that is new gets the next number', async (t) => {
  t.same(plan([], 'a'), { current: undefined, number: 1, duplicates: [], old: [] })
  t.same(plan([revision(2, 'b'), revision(1, 'a')], 'c'), {
    current: undefined,
    number: 3,
    duplicates: [],
    old: ['web-1', 'web-2'],
  })
})

test('a template that did not change keeps its revision, and one that comes back gets a new number', async (t) => {
  const revisions = [revision(1, 'a'), revision(2, 'b')]
  t.same(plan(revisions, 'b'), { current: 'web-2', number: 2, duplicates: [], old: ['web-1'] })
  t.same(plan(revisions, 'a'), { current: 'web-1', number: 3, duplicates: [], old: ['web-2'] })
})

test('of revisions with the same template the one with the highest number is kept', async (t) => {
  const revisions = [revision(4, 'a', 'late'), revision(1, 'a', 'x'), revision(1, 'a', 'b'), revision(2, 'b')]
  t.same(plan(revisions, 'a'), { current: 'late', number: 4, duplicates: ['b', 'x'], old: ['web-2'] })
})

test('a revision is the patch that brings its template back', async (t) => {
  t.equal(
    JSON.stringify(
      revisionData({
        spec: { restartPolicy: 'Always', ...template('a').spec },
        metadata: { labels: { b: '1', a: '2' } },
      }),
    ),
    '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"a":"2","b":"1"}},' +
      '"spec":{"containers":[{"image":"a","name":"main","resources":{}}],"restartPolicy":"Always"}}}}',
    'as Go encodes it',
  )
  const limits = { limits: { cpu: '1' } }
  const initContainers = [{ name: 'first', image: 'b', resources: limits }]
  t.match(revisionData({ spec: { ...template('a').spec, initContainers } }), {
    spec: { template: { spec: { initContainers: [{ resources: limits }] } } },
  })
  t.match(revisionTemplate(revision(1, 'a')), template('a'))
  for (const data of [
    undefined,
    'x',
    {},
    { spec: 1 },
    { spec: { template: [] } },
    { spec: { template: { spec: 7 } } },
  ]) {
    t.equal(revisionTemplate({ data }), undefined)
  }
})

test('the oldest revisions go that are more than the limit, and none that a pod has', async (t) => {
  const old = [1, 2, 3, 4].map((number) => revision(number, `v${number}`))
  const surplus = (limit: number, live: readonly string[], counted: 'all' | 'not-live') =>
    surplusRevisions(old, limit, ({ metadata }) => live.includes(metadata.name), counted).map(
      ({ revision }) => revision,
    )
  t.same(surplus(4, [], 'all'), [])
  t.same(surplus(10, [], 'all'), [])
  t.same(surplus(2, [], 'all'), [1, 2])
  t.same(surplus(0, [], 'not-live'), [1, 2, 3, 4])
  t.same(surplus(2, ['web-1'], 'all'), [2, 3], 'of a DaemonSet the live ones count')
  t.same(surplus(2, ['web-1'], 'not-live'), [2], 'of a StatefulSet they do not')
})

test('revisions with one number are ordered by their names, in whatever order they are found', async (t) => {
  const revisions = [revision(1, 'a', 'x'), revision(1, 'b', 'b'), revision(1, 'c', 'm')]
  t.same(plan(revisions, 'd').old, ['b', 'm', 'x'])
  t.same(plan(revisions.toReversed(), 'd').old, ['b', 'm', 'x'])
  const { revision: _, ...unnumbered } = revision(0, 'a', 'none')
  t.same(plan([revision(1, 'b', 'one'), unnumbered], 'c'), {
    current: undefined,
    number: 2,
    duplicates: [],
    old: ['none', 'one'],
  })
})

test('a field that is undefined does not exist', async (t) => {
  const spec = { ...template('a').spec, hostname: undefined } as unknown as PodTemplateSpec['spec']
  t.ok(equalJSON(revisionData({ spec }), revisionData(template('a'))))
})

test('a revision of a version that kept empty fields holds the template without them', async (t) => {
  const variable = (value: { readonly value?: string }): PodTemplateSpec => ({
    spec: { containers: [{ name: 'main', image: 'a', env: [{ name: 'A', ...value }] }] },
  })
  const stored = { ...revision(1, 'a'), data: revisionData(variable({ value: '' })) }
  t.equal(planRevision([stored], revisionData(variable({}))).current, stored)
  t.equal(planRevision([stored], revisionData(variable({ value: 'x' }))).current, undefined)
  const unreadable = { ...stored, data: { spec: 1 } }
  t.equal(planRevision([unreadable], revisionData(variable({}))).current, undefined)
  t.equal(planRevision([unreadable], { spec: 1 }).current, unreadable)
})
