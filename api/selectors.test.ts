import { test } from 'tap'
import { growth } from '../daemon/testing/growth.ts'
import {
  fieldMatcher,
  type Labels,
  labelMatcher,
  matchesFields,
  matchesLabels,
  matchesNodeSelectorTerm,
  parseFieldSelector,
  parseLabelSelector,
  requirementsOf,
} from './selectors.ts'
import { aNode, aPod } from './testing/builders.ts'

const chosen = (selector: string, labels: { [key: string]: string }) => {
  const parsed = parseLabelSelector(selector)
  return parsed.ok ? matchesLabels(parsed.value, labels) : parsed.problem
}

test("kubectl's label selectors choose as Kubernetes does", async (t) => {
  const labels = { app: 'web', 'example.com/tier': 'front', empty: '', level: '5' }
  const yes = [
    '',
    'app=web',
    'app==web',
    'app = web , empty',
    'app!=db',
    'gone!=x',
    'app in (db,web)',
    'app in ( web )',
    'app notin (db)',
    'gone notin (x)',
    'app',
    '!gone',
    'empty=',
    'empty in (,x)',
    'empty=,app=web',
    'example.com/tier=front',
    'level>4',
    'level<6,app',
  ]
  const no = ['app=db', 'app!=web', 'app notin (web,db)', 'gone', '!app', 'gone=', 'level>5', 'app>1', 'app=web,app=db']
  for (const selector of yes) t.equal(chosen(selector, labels), true, `${selector} chooses it`)
  for (const selector of no) t.equal(chosen(selector, labels), false, `${selector} does not`)
  t.equal(chosen('constructor', {}), false, 'only labels that are there')
})

test('what is not a label selector is rejected', async (t) => {
  for (const selector of [
    '=a',
    'a in',
    'a in b',
    'a in (b',
    'a b',
    'a=b,',
    ',a',
    'a=b=c',
    '!',
    'a!',
    'a>x',
    '-a',
    'a=-b',
    'a in (b c)',
  ]) {
    t.match(chosen(selector, {}), /^unable to parse label selector "/, selector)
  }
})

test('a selector object is the same thing; absent is not empty', async (t) => {
  const selector = requirementsOf({
    matchLabels: { app: 'web' },
    matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['back'] }],
  })
  t.ok(selector?.ok && matchesLabels(selector.value, { app: 'web' }))
  t.notOk(selector?.ok && matchesLabels(selector.value, { app: 'web', tier: 'back' }))
  t.equal(requirementsOf(undefined), undefined)
  t.same(requirementsOf({}), { ok: true, value: [] })
  t.match(requirementsOf({ matchExpressions: [{ key: 'a', operator: 'Is' }] }), { ok: false })
  t.match(requirementsOf({ matchExpressions: [{ key: 'a', operator: 'In' }] }), { ok: false })
  for (const operator of ['Gt', 'Lt']) {
    t.same(requirementsOf({ matchExpressions: [{ key: 'a', operator, values: ['1'] }] }), {
      ok: false,
      problem: `"${operator}" is not a valid operator`,
    })
  }
})

test('a term chooses nodes by labels and by name', async (t) => {
  const node = aNode({ name: 'pi-01', labels: { cores: '4', disk: 'ssd' } })
  const matches = (key: string, operator: string, values?: string[]) =>
    matchesNodeSelectorTerm({ matchExpressions: [{ key, operator, ...(values && { values }) }] }, node)
  t.ok(matches('disk', 'In', ['ssd', 'nvme']))
  t.ok(matches('cores', 'Gt', ['3']))
  t.notOk(matches('cores', 'Lt', ['4']))
  t.notOk(matches('disk', 'Gt', ['3']), 'what is not a number is neither more nor less')
  t.ok(matches('gpu', 'DoesNotExist'))
  t.notOk(matches('gpu', 'Exists'))
  t.ok(matches('gpu', 'NotIn', ['a']))
  t.notOk(matches('disk', 'Like', ['s']))
  t.ok(matchesNodeSelectorTerm({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['pi-01'] }] }, node))
  t.notOk(matchesNodeSelectorTerm({}, node), 'asking nothing chooses nothing')
})

test('field selectors look into objects', async (t) => {
  const pod = aPod({ name: 'web', nodeName: 'pi-01', phase: 'Running' })
  const matches = (text: string) => {
    const parsed = parseFieldSelector(['spec.nodeName', 'spec.hostNetwork', 'status.phase', 'status.podIP'], text)
    return parsed.ok ? matchesFields(parsed.value, pod) : parsed.problem
  }
  t.equal(matches(''), true)
  t.equal(matches('metadata.name=web,metadata.namespace==default'), true)
  t.equal(matches('spec.nodeName=pi-01,status.phase!=Failed'), true)
  t.equal(matches('status.phase!=Running'), false)
  t.equal(matches('status.podIP='), true, 'absent is empty')
  t.equal(matches('spec.hostNetwork=false'), true)
  t.equal(matches('spec.image=x'), 'field label not supported: spec.image')
  t.equal(matches('web'), 'invalid field selector: "web"')
  t.equal(matches(' spec.nodeName =pi-01'), true)
  t.equal(matches(' =pi-01'), 'invalid field selector: " =pi-01"')
  t.same(parseFieldSelector(['reason'], 'reason=a\\,b\\=c'), {
    ok: true,
    value: [{ field: 'reason', equal: true, value: 'a,b=c' }],
  })
  t.ok(
    parseFieldSelector(
      ['involvedObject.namespace', 'involvedObject.uid'],
      'involvedObject.namespace=,involvedObject.uid=x',
    ).ok,
  )
})

test('the source of an Event is its component, or else the controller that reports it', async (t) => {
  const matches = (event: object) => {
    const parsed = parseFieldSelector(['source'], 'source=robot')
    return parsed.ok && matchesFields(parsed.value, event)
  }
  t.equal(matches({ source: { component: 'robot' }, reportingComponent: 'other' }), true)
  t.equal(matches({ source: { component: 'other' }, reportingComponent: 'robot' }), false)
  t.equal(matches({ source: { component: '' }, reportingComponent: 'robot' }), true)
  t.equal(matches({ reportingComponent: 'robot' }), true)
  t.equal(matches({ source: {} }), false)
})

test('a matcher for many objects agrees with the requirements one by one', async (t) => {
  const selectors = ['a=b', 'a!=b', 'a!=b,a!=c', 'a in (b,c),a notin (c)', 'a,!d', 'a notin (x,b),d=e', 'a=b,a=c', '']
  for (const text of selectors) {
    const parsed = parseLabelSelector(text)
    if (!parsed.ok) return t.fail(parsed.problem)
    const all: readonly (Labels | undefined)[] = [{}, { a: 'b' }, { a: 'c' }, { a: 'c', d: 'e' }, undefined]
    for (const labels of all)
      t.equal(
        labelMatcher(parsed.value)(labels),
        matchesLabels(parsed.value, labels),
        `${text} of ${JSON.stringify(labels)}`,
      )
  }
  const fields = parseFieldSelector(['spec.nodeName'], 'spec.nodeName!=pi-1,spec.nodeName!=pi-2,metadata.name=a')
  if (!fields.ok) return t.fail(fields.problem)
  const matches = fieldMatcher(fields.value)
  const pod = (name: string, nodeName: string) => ({ metadata: { name }, spec: { nodeName } })
  t.same([pod('a', 'pi-1'), pod('a', 'pi-2'), pod('a', 'pi-3'), pod('b', 'pi-3')].map(matches), [
    false,
    false,
    true,
    false,
  ])
  const never = parseFieldSelector([], 'metadata.name=a,metadata.name=b')
  t.equal(never.ok && fieldMatcher(never.value)(pod('a', '')), false)
})

test('the cost of a long field selector does not rise with what it repeats', async (t) => {
  const object = { metadata: { name: 'a' }, spec: { nodeName: 'pi-1' } }
  const prepare = (size: number) => {
    const text = Array.from({ length: size }, () => 'spec.nodeName=pi-1').join(',')
    const parsed = parseFieldSelector(['spec.nodeName'], text)
    const matches = fieldMatcher(parsed.ok ? parsed.value : [])
    return () => {
      for (let count = 0; count < 3_000; count++) matches(object)
    }
  }
  const ratio = growth(2_000, prepare, { atMost: 4 })
  t.ok(ratio < 4, `8 times the selector took ${ratio.toFixed(1)} times as long`)
})
