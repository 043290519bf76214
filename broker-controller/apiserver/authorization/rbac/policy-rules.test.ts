import { test } from 'tap'
import type { PolicyRule } from '../../../../api/access/role.ts'
import { growth, linearAtMost } from '../../../../daemon/testing/growth.ts'
import type { Attributes } from '../../handlers/authorizer.ts'
import { coversPath, coversResource, includesOrAll, ruleAllows } from './policy-rules.ts'

const podsRule: PolicyRule = { verbs: ['get'], apiGroups: [''], resources: ['pods'] }

function aRequest(over: Partial<Attributes & { readonly kind: 'resource' }> = {}): Attributes {
  const pods = { resource: 'pods', subresource: '', name: 'web', namespace: 'default', fields: new Map() }
  return { kind: 'resource', verb: 'get', group: '', ...pods, ...over }
}

test('a rule allows a request if its verb, its group, its resource and its name all match', async (t) => {
  t.ok(ruleAllows(podsRule, aRequest()))
  t.notOk(ruleAllows(podsRule, aRequest({ verb: 'list' })))
  t.notOk(ruleAllows(podsRule, aRequest({ group: 'apps' })))
  t.notOk(ruleAllows(podsRule, aRequest({ resource: 'secrets' })))
  t.notOk(ruleAllows(podsRule, aRequest({ subresource: 'log' })), 'a subresource is a resource of its own')
  t.ok(ruleAllows({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, aRequest({ subresource: 'log' })))
  const options = aRequest({ verb: '', subresource: 'proxy' })
  t.ok(ruleAllows({ verbs: ['*'], apiGroups: [''], resources: ['pods/proxy'] }, options), 'a method without a verb')
  const all = ['get', 'create', 'update', 'patch', 'delete']
  t.notOk(ruleAllows({ verbs: all, apiGroups: [''], resources: ['pods/proxy'] }, options))
})

test('a rule with names is for these objects; an empty list is for all', async (t) => {
  const named = { ...podsRule, resourceNames: ['web', 'db'] }
  t.ok(ruleAllows(named, aRequest({ name: 'db' })))
  t.notOk(ruleAllows(named, aRequest({ name: 'cache' })))
  t.notOk(ruleAllows(named, aRequest({ name: '' })), 'a list or a create has no name')
  t.ok(ruleAllows({ ...podsRule, resourceNames: [] }, aRequest({ name: '' })))
})

test('a rule that lacks a list allows nothing that the list would be asked for', async (t) => {
  t.notOk(ruleAllows({ verbs: ['get'], resources: ['pods'] }, aRequest()), 'no groups')
  t.notOk(ruleAllows({ verbs: ['get'], apiGroups: [''] }, aRequest()), 'no resources')
  t.notOk(ruleAllows(podsRule, { kind: 'path', verb: 'get', path: '/metrics' }), 'no paths')
})

test('a rule on paths allows paths, with its verbs, and no objects', async (t) => {
  const rule: PolicyRule = { verbs: ['get'], nonResourceURLs: ['/metrics', '/healthz/*'] }
  const path = (path: string, verb = 'get'): Attributes => ({ kind: 'path', verb, path })
  t.ok(ruleAllows(rule, path('/metrics')))
  t.ok(ruleAllows(rule, path('/healthz/etcd')), 'one of several is enough')
  t.notOk(ruleAllows(rule, path('/version')))
  t.notOk(ruleAllows(rule, path('/metrics', 'post')))
  t.notOk(ruleAllows(rule, aRequest()))
})

test('resources are named plainly, with their subresource, or by a star', async (t) => {
  t.ok(coversResource(['nodes', 'pods'], 'pods', ''))
  t.ok(coversResource(['pods/log'], 'pods', 'log'))
  t.ok(coversResource(['*/log'], 'pods', 'log'), 'the subresource of every resource')
  t.ok(coversResource(['*'], 'pods', 'log'))
  t.notOk(coversResource(['pods'], 'pods', 'log'))
  t.notOk(coversResource(['pods/log'], 'pods', ''))
  t.notOk(coversResource(['*/log'], 'pods', 'exec'))
  t.notOk(coversResource(['*/'], 'pods', ''), 'without a subresource there is none to match')
  t.notOk(coversResource([], 'pods', ''))
})

test('a list includes what it names, and a star includes all', async (t) => {
  t.ok(includesOrAll(['get', 'list'], 'list'))
  t.ok(includesOrAll(['*'], 'list'))
  t.notOk(includesOrAll(['get'], 'list'))
  t.notOk(includesOrAll(undefined, 'list'))
})

test('a star at the end of a path stands for the rest', async (t) => {
  t.ok(coversPath('*', '/a'))
  t.ok(coversPath('/a/*', '/a/b/c'))
  t.ok(coversPath('/a**', '/ab'))
  t.notOk(coversPath('/a/*', '/a'))
  t.notOk(coversPath('/a/*/b', '/a/x/b'), 'only at the end')
  t.notOk(coversPath('/a', '/ab'), 'without a star it is the whole path')
  t.ok(coversPath('/a/*/b', '/a/*/b'))
})

test('a path of many stars takes no longer than another one', async (t) => {
  const stars = (size: number) => () => coversPath(`${'*'.repeat(size)}x*`, '/a')
  t.notOk(stars(200_000)())
  t.ok(growth(25_000, stars) <= linearAtMost)
})
