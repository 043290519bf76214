import { test } from 'tap'
import { adminRules, editRules } from './user-roles.ts'

// CVE-2021-25740: with them a Service leads into another namespace. Kubernetes removed them from `edit` in 1.22.
test('people of a namespace do not write the endpoints of its services', async (t) => {
  for (const resource of ['endpoints', 'endpointslices']) {
    const verbs = [...editRules, ...adminRules]
      .filter(({ resources = [] }) => resources.includes(resource))
      .flatMap((rule) => rule.verbs)
    t.same(verbs, [], resource)
  }
})
