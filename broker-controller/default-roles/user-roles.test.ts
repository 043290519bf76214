import { test } from 'tap'
import type { PolicyRule } from '../../api/access/role.ts'
import { adminRules, editRules, viewRules } from './user-roles.ts'

// CVE-2021-25740: with them a Service leads into another namespace. Kubernetes removed them from `edit` in 1.22.
test('people of a namespace do not write the endpoints of its services', async (t) => {
  for (const resource of ['endpoints', 'endpointslices']) {
    const verbs = [...editRules, ...adminRules]
      .filter(({ resources = [] }) => resources.includes(resource))
      .flatMap((rule) => rule.verbs)
    t.same(verbs, [], resource)
  }
})

/** All `resource verb` pairs of rules. */
function granted(rules: readonly PolicyRule[]): Set<string> {
  return new Set(
    rules.flatMap(({ verbs = [], apiGroups = [], resources = [] }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group === '' ? '' : `${group}/`}${resource}`)),
      ),
    ),
  )
}

// plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go: viewRules, editRules, adminRules.
test('who may view reads pods, logs and workloads, and writes nothing', async (t) => {
  const view = granted(viewRules)
  for (const one of [
    'get pods',
    'list pods',
    'watch pods',
    'get pods/log',
    'list apps/deployments',
    'get batch/jobs',
  ]) {
    t.ok(view.has(one), one)
  }
  t.ok(viewRules.every(({ verbs = [] }) => verbs.every((verb) => ['get', 'list', 'watch'].includes(verb))))
})

test('who may view does not read what grants further rights: secrets, roles, streams into pods', async (t) => {
  const resources = viewRules.flatMap((rule) => rule.resources ?? [])
  for (const one of [
    'secrets',
    'roles',
    'rolebindings',
    'pods/exec',
    'pods/attach',
    'pods/portforward',
    'pods/proxy',
  ]) {
    t.notOk(resources.includes(one), one)
  }
})

test('who may edit writes workloads, reads secrets and opens streams, but grants nothing', async (t) => {
  const edit = granted(editRules)
  for (const one of [
    'create pods',
    'delete pods',
    'patch apps/deployments',
    'update apps/statefulsets/scale',
    'get secrets',
    'get pods/exec',
    'create pods/exec',
    'create pods/attach',
    'create pods/portforward',
    'create pods/eviction',
    'create serviceaccounts/token',
    'impersonate serviceaccounts',
  ]) {
    t.ok(edit.has(one), one)
  }
  t.notOk([...edit].some((one) => one.includes('rbac.authorization.k8s.io')))
})

test('who may administer a namespace grants roles in it', async (t) => {
  const admin = granted(adminRules)
  t.ok(admin.has('create rbac.authorization.k8s.io/rolebindings'))
  t.ok(admin.has('list rbac.authorization.k8s.io/roles'))
  t.ok(admin.has('create authorization.k8s.io/localsubjectaccessreviews'))
})
