/** rbac.authorization.k8s.io/v1 RoleBinding (pkg/registry/rbac/rolebinding/strategy.go). */
import type { RoleBinding } from '../../../../api/access/role-binding.ts'
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

export const roleBindingStrategy: KindStrategy<RoleBinding> = {
  ...resources.rolebindings,
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
