import { test } from 'tap'
import type { Webhook, WebhookRule } from '../../../api/admission/webhook.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import type { KindStrategy, ResourceRoute } from '../handlers/strategy.ts'
import { chosenForm, isExemptFromWebhooks, isSelected } from './webhook-match.ts'

function aRoute(id: string, subresource = ''): ResourceRoute {
  const resource = builtInKinds.get(id)
  if (resource === undefined) throw new Error(id)
  return { kind: 'resource', verb: 'create', resource, namespace: 'default', name: 'x', subresource }
}

function kindAt(group: string, version: string, plural: string): KindStrategy {
  const resource = builtInKinds.at(group, version, plural)
  if (resource === undefined) throw new Error(plural)
  return resource
}

function aWebhook(more: Partial<Webhook> = {}): Webhook {
  return { name: 'a.b.c', clientConfig: { url: 'https://localhost' }, ...more }
}

const all: WebhookRule = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], scope: '*' }
const chooses = (rule: WebhookRule, route: ResourceRoute, operation: 'CREATE' | 'UPDATE' = 'CREATE') =>
  chosenForm(aWebhook({ rules: [rule] }), route, operation, []) !== undefined

test('configurations of webhooks and admission policies are exempt, and nothing else is', async (t) => {
  t.ok(isExemptFromWebhooks(aRoute('mutatingwebhookconfigurations')))
  t.ok(isExemptFromWebhooks(aRoute('validatingwebhookconfigurations')))
  for (const id of ['pods', 'secrets', 'roles']) t.notOk(isExemptFromWebhooks(aRoute(id)), id)
  const exempt = aRoute('mutatingwebhookconfigurations')
  const named = (over: Partial<KindStrategy>) =>
    isExemptFromWebhooks({ ...exempt, resource: { ...exempt.resource, ...over } })
  t.notOk(named({ group: 'example.com' }), 'a custom resource of that name')
  t.ok(named({ name: 'validatingadmissionpolicies' }))
  t.ok(named({ name: 'validatingadmissionpolicybindings' }))
  t.notOk(named({ name: 'others' }), 'another kind of that group')
})

test('a rule chooses by operation, group, version and scope, and each of them must fit', async (t) => {
  t.ok(chooses(all, aRoute('pods')))
  const exact = {
    operations: ['CREATE'],
    apiGroups: [''],
    apiVersions: ['v1'],
    resources: ['pods'],
    scope: 'Namespaced',
  }
  t.ok(chooses(exact, aRoute('pods')))
  for (const other of [
    { operations: ['UPDATE', 'DELETE'] },
    { apiGroups: ['apps'] },
    { apiVersions: ['v1beta1'] },
    { resources: ['services'] },
    { scope: 'Cluster' },
    { operations: [] },
  ]) {
    t.notOk(chooses({ ...exact, ...other }, aRoute('pods')), JSON.stringify(other))
  }
  t.notOk(chooses(exact, aRoute('pods'), 'UPDATE'))
  t.ok(chooses({ ...all, scope: 'Cluster' }, aRoute('namespaces')))
  t.notOk(chooses({ ...all, scope: 'Namespaced' }, aRoute('nodes')))
  const { scope: _, ...unscoped } = all
  t.ok(chooses(unscoped, aRoute('nodes')) && chooses(unscoped, aRoute('pods')))
  t.notOk(chosenForm(aWebhook(), aRoute('pods'), 'CREATE', []), 'a webhook without rules chooses nothing')
  t.ok(
    chosenForm(aWebhook({ rules: [{ ...exact, resources: ['x'] }, exact] }), aRoute('pods'), 'CREATE', []),
    'one is enough',
  )
})

test('a rule for another group or version of the same objects chooses them in its own', async (t) => {
  const [core, other] = [kindAt('', 'v1', 'events'), kindAt('events.k8s.io', 'v1', 'events')]
  const rule = (apiGroups: readonly string[], resources = ['events']) => ({
    ...all,
    apiGroups: [...apiGroups],
    resources,
  })
  const form = (more: Partial<Webhook>, others = [core]) =>
    chosenForm(aWebhook(more), { ...aRoute('events'), resource: other }, 'CREATE', others)
  t.equal(form({ rules: [rule([''])] }), core)
  t.equal(form({ rules: [rule([''])], matchPolicy: 'Equivalent' }), core)
  t.equal(form({ rules: [rule([''])], matchPolicy: 'Exact' }), undefined)
  t.equal(form({ rules: [rule(['']), rule(['events.k8s.io'])] }), other, 'that of the request comes first')
  t.equal(form({ rules: [rule(['*'])] }), other)
  t.equal(form({ rules: [{ ...rule(['']), operations: ['DELETE'] }] }), undefined)
  t.equal(form({ rules: [rule([''], ['pods'])] }), undefined)
  t.equal(form({ rules: [rule([''], ['pods']), rule([''])] }), core)
  t.equal(form({ rules: [rule([''])] }, []), undefined, 'it is not served')
})

test('a resource is chosen with or without its subresources', async (t) => {
  const patterns = ['pods', '*', 'pods/status', 'pods/*', '*/status', '*/*', 'services']
  const chosenBy = (route: ResourceRoute) => patterns.filter((one) => chooses({ ...all, resources: [one] }, route))
  t.same(chosenBy(aRoute('pods')), ['pods', '*', 'pods/*', '*/*'])
  t.same(chosenBy(aRoute('pods', 'status')), ['pods/status', 'pods/*', '*/status', '*/*'])
  t.same(chosenBy(aRoute('pods', 'exec')), ['pods/*', '*/*'])
  t.ok(chooses({ ...all, resources: ['services', 'pods'] }, aRoute('pods')))
})

test('selectors choose by the labels of the namespace, and of the object as it was or will be', async (t) => {
  const aPod = (labels: { readonly [key: string]: string }): AnyObject => {
    return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', labels } }
  }
  const [marked, plain] = [aPod({ a: 'b' }), aPod({})]
  const byNamespace = aWebhook({ namespaceSelector: { matchLabels: { team: 'x' } } })
  t.ok(isSelected(byNamespace, { object: plain, old: undefined, namespace: { team: 'x' } }))
  t.notOk(isSelected(byNamespace, { object: plain, old: undefined, namespace: {} }))
  t.ok(isSelected(byNamespace, { object: plain, old: undefined, namespace: undefined }), 'an object of the cluster')
  const byObject = aWebhook({ objectSelector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } })
  const facts = { namespace: {} }
  t.ok(isSelected(byObject, { ...facts, object: marked, old: undefined }))
  t.ok(isSelected(byObject, { ...facts, object: plain, old: marked }), 'a label that is removed')
  t.ok(isSelected(byObject, { ...facts, object: undefined, old: marked }), 'a deletion')
  t.notOk(isSelected(byObject, { ...facts, object: plain, old: plain }))
  t.notOk(isSelected(byObject, { ...facts, object: undefined, old: undefined }))
  t.ok(isSelected(aWebhook({ objectSelector: {} }), { ...facts, object: undefined, old: undefined }))
  t.ok(isSelected(aWebhook(), { ...facts, object: plain, old: undefined }))
  const both = { matchLabels: { a: 'c' }, matchExpressions: [{ key: 'a', operator: 'Exists' }] }
  t.notOk(isSelected(aWebhook({ objectSelector: both }), { ...facts, object: marked, old: undefined }))
})
