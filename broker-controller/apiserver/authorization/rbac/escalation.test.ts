import { test } from 'tap'
import type { PolicyRule } from '../../../../api/access/role.ts'
import { growth, linearAtMost } from '../../../../daemon/testing/growth.ts'
import { escalationProblem, missingRules, mostRights } from './escalation.ts'

const eve = { user: 'eve', groups: ['team', 'system:authenticated'] }
const on = (verbs: string, resources: string, more: Partial<PolicyRule> = {}): PolicyRule => ({
  verbs: verbs.split(' '),
  apiGroups: [''],
  resources: resources.split(' '),
  ...more,
})
const everything: PolicyRule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

test('rights that one has may be granted, together or in parts', async (t) => {
  const may = (own: readonly PolicyRule[], ...wanted: readonly PolicyRule[]) =>
    escalationProblem(eve, own, wanted) === undefined
  t.ok(may([on('get list', 'pods'), on('get', 'nodes')], on('get', 'pods nodes')))
  t.ok(may([everything], on('*', '*')))
  t.notOk(may([on('get list', 'pods')], on('*', 'pods')), 'all verbs are more than each of today')
  t.notOk(may([on('*', 'pods')], on('get', '*')))
  t.ok(may([on('*', 'pods')], on('get', 'pods', { resourceNames: ['web'] })))
  t.notOk(may([on('get', 'pods', { resourceNames: ['web'] })], on('get', 'pods')))
  t.ok(may([on('get', 'pods', { resourceNames: ['web', 'db'] })], on('get', 'pods', { resourceNames: ['web'] })))
  t.ok(may([on('get', '*/status')], on('get', 'pods/status')))
  t.notOk(may([on('get', '*/status')], on('get', 'pods')))
  t.ok(may([{ verbs: ['get'], nonResourceURLs: ['/a/*'] }], { verbs: ['get'], nonResourceURLs: ['/a/b', '/a/*'] }))
  t.notOk(may([everything], { verbs: ['get'], nonResourceURLs: ['/a'] }))
  t.ok(may([], { verbs: [], apiGroups: [''], resources: ['pods'] }), 'no right at all')
})

test('a refusal names the missing rights in Kubernetes’ words', async (t) => {
  t.equal(
    escalationProblem(
      eve,
      [on('get', 'pods')],
      [on('get delete create', 'pods'), on('get', 'secrets', { resourceNames: ['x'] })],
    ),
    'user "eve" (groups=["team" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
      '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "create"]}\n' +
      '{APIGroups:[""], Resources:["secrets"], ResourceNames:["x"], Verbs:["get"]}',
  )
  t.match(
    escalationProblem(eve, [], [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }]),
    '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
  )
})

test('a role of more rights than can be compared in time is refused', async (t) => {
  const many = Array.from({ length: 8000 }, (_, index) => `r${index}`)
  const rule = { verbs: many, apiGroups: [''], resources: many }
  t.match(escalationProblem(eve, [], [rule]), `more than the ${mostRights} that can be compared`)
  const unheld = (size: number) => {
    const verbs = many.slice(0, size)
    return () => escalationProblem(eve, [], [{ verbs, apiGroups: [''], resources: ['a', 'b'] }])
  }
  t.match(unheld(8000)(), 'not currently held')
  t.ok(growth(1000, unheld) <= linearAtMost, 'even where no right is held')
})

test('the rules that another set lacks', async (t) => {
  t.same(missingRules([on('get', 'pods')], [on('get', 'pods'), on('list', 'pods')]), [on('list', 'pods')])
  t.same(missingRules([everything], [on('list', 'pods')]), [])
})

test('rights are not compared with more rules than time allows', async (t) => {
  const own = Array.from({ length: 20_000 }, (_, index) => on('get', 'pods', { resourceNames: [`x${index}`] }))
  const verbs = Array.from({ length: 10_000 }, (_, index) => `v${index}`)
  t.match(escalationProblem(eve, own, [{ verbs, apiGroups: [''], resources: ['pods'] }]), 'comparisons')
  t.match(escalationProblem(eve, own, [on('get', 'pods', { resourceNames: ['y'] })]), 'not currently held')
  t.equal(escalationProblem(eve, own, [on('get', 'pods', { resourceNames: ['x7'] })]), undefined)
})

test('a right on a path needs a rule with its verb and the path', async (t) => {
  const paths = (verbs: string, ...nonResourceURLs: readonly string[]): PolicyRule => ({
    verbs: verbs.split(' '),
    nonResourceURLs,
  })
  const may = (own: readonly PolicyRule[], ...wanted: readonly PolicyRule[]) =>
    escalationProblem(eve, own, wanted) === undefined
  t.ok(may([paths('get', '/metrics', '/logs/*')], paths('get', '/logs/a')))
  t.notOk(may([paths('get', '/metrics')], paths('get', '/logs')))
  t.notOk(may([paths('get', '/metrics')], paths('post', '/metrics')))
  t.ok(may([paths('*', '/metrics')], paths('post', '/metrics')))
  t.ok(may([on('get', 'pods'), paths('get', '/metrics')], on('get', 'pods'), paths('get', '/metrics')))
})

test('the names of a rule and its paths count among its rights', async (t) => {
  const names = Array.from({ length: mostRights }, (_, index) => `n${index}`)
  const named = (count: number) => on('get', 'pods', { resourceNames: names.slice(0, count) })
  t.match(escalationProblem(eve, [], [named(mostRights), on('get', 'nodes')]), `the ${mostRights} that can be compared`)
  t.equal(escalationProblem(eve, [on('get', 'pods')], [named(mostRights)]), undefined)
  const paths = { verbs: ['get'], nonResourceURLs: names }
  t.match(escalationProblem(eve, [], [{ ...paths, apiGroups: [''], resources: ['pods'] }]), 'that can be compared')
})

test('the missing rights are sorted, and only so many are named', async (t) => {
  const resources = Array.from({ length: 30 }, (_, index) => `r${String(index).padStart(2, '0')}`).toReversed()
  const lines =
    escalationProblem(eve, [], [{ verbs: ['get'], apiGroups: [''], resources }])
      ?.split('\n')
      .slice(1) ?? []
  t.equal(lines.length, 20)
  t.match(lines[0], /"r00"/)
  t.match(lines[19], /"r19"/)
})
