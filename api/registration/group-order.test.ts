import { test } from 'tap'
import { builtInResources } from '../resources.ts'
import { registrationGroup } from './api-service.ts'
import { builtInPriority, compareVersions, inGroupOrder, localPriority } from './group-order.ts'

test('each built-in version has the priority that Kubernetes gives it', (t) => {
  for (const { group, version } of builtInResources.served) {
    if (group !== registrationGroup) t.ok(builtInPriority({ group, version }), `${group}/${version}`)
  }
  t.same(builtInPriority({ group: 'autoscaling', version: 'v2' }), {
    groupPriorityMinimum: 17_500,
    versionPriority: 30,
  })
  t.equal(builtInPriority({ group: 'apps', version: 'v2' }), undefined)
  t.equal(builtInPriority({ group: 'constructor', version: 'v1' }), undefined)
  t.same(localPriority({ group: 'example.com', version: 'v1' }), { groupPriorityMinimum: 1_000, versionPriority: 100 })
  t.end()
})

test('a group is where its highest priority puts it, and equal ones are ordered by name', (t) => {
  const one = (group: string, version: string, groupPriorityMinimum: number, versionPriority = 10) => ({
    group,
    version,
    groupPriorityMinimum,
    versionPriority,
  })
  const ordered = inGroupOrder([
    one('b', 'v1', 100),
    one('a', 'v1', 100),
    one('c', 'v1', 5),
    one('c', 'v1beta1', 200),
    one('c', 'v9', 5, 11),
  ])
  t.same(
    ordered.map(({ group, versions }) => [group, ...versions.map(({ version }) => version)]),
    [
      ['c', 'v9', 'v1', 'v1beta1'],
      ['a', 'v1'],
      ['b', 'v1'],
    ],
  )
  t.end()
})

test('versions of equal priority are ordered as Kubernetes orders them', (t) => {
  const expected = ['v10', 'v2', 'v1', 'v11beta2', 'v10beta3', 'v3beta1', 'v12alpha1', 'v11alpha2', 'foo1', 'foo10']
  t.same([...expected].reverse().sort(compareVersions), expected)
  t.end()
})
