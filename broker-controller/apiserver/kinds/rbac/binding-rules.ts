/** The rules of RoleBindings and ClusterRoleBindings (pkg/registry/rbac/{rolebinding,clusterrolebinding}/strategy.go). */
import type { ClusterRoleBinding } from '../../../../api/access/cluster-role-binding.ts'
import type { RoleBinding } from '../../../../api/access/role-binding.ts'
import { pathSegmentProblem } from '../../../../api/names.ts'
import type { Resource } from '../../../../api/resources.ts'
import {
  bindingChangeProblems,
  bindingProblems,
  withBindingDefaults,
} from '../../../../api/validation/rbac-validation.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { refuseBinding } from './grants.ts'
import { bindingTable } from './rbac-tables.ts'

/** What the strategies of both kinds have in common. */
export function bindingRules<B extends RoleBinding | ClusterRoleBinding>(): Omit<KindStrategy<B>, keyof Resource> {
  return {
    createdByUpdate: true,
    table: bindingTable,
    selectableFields: [],
    subresources: {},
    nameProblem: pathSegmentProblem,
    withDefaults: withBindingDefaults,
    validateCreate: bindingProblems,
    validateUpdate: (old, now) => [...bindingProblems(now), ...bindingChangeProblems(old, now)],
    async admitCreate(binding, requester, needs) {
      await refuseBinding(binding, { requester }, needs)
      return {}
    },
    admitUpdate: (binding, needs, facts) => refuseBinding(binding, facts, needs),
  }
}
