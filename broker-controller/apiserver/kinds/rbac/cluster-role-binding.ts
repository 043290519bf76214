/** rbac.authorization.k8s.io/v1 ClusterRoleBinding (pkg/registry/rbac/clusterrolebinding/strategy.go). */
import type { ClusterRoleBinding } from '../../../../api/access/cluster-role-binding.ts'
import { pathSegmentProblem } from '../../../../api/names.ts'
import { resources } from '../../../../api/resources.ts'
import {
  bindingChangeProblems,
  bindingProblems,
  withBindingDefaults,
} from '../../../../api/validation/rbac-validation.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { refuseBinding } from './grants.ts'
import { bindingTable } from './rbac-tables.ts'

export const clusterRoleBindingStrategy: KindStrategy<ClusterRoleBinding> = {
  ...resources.clusterrolebindings,
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
