/** rbac.authorization.k8s.io/v1 ClusterRole (pkg/registry/rbac/clusterrole/strategy.go). */
import type { ClusterRole } from '../../../../api/access/cluster-role.ts'
import { pathSegmentProblem } from '../../../../api/names.ts'
import type { Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { aggregationProblems, roleProblems } from '../../../../api/validation/rbac-validation.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { refuseEscalation } from './grants.ts'
import { roleTable } from './rbac-tables.ts'

export const clusterRoleStrategy: KindStrategy<ClusterRole> = {
  ...resources.clusterroles,
  createdByUpdate: true,
  table: roleTable,
  selectableFields: [],
  subresources: {},
  nameProblem: pathSegmentProblem,
  validateCreate: clusterRoleProblems,
  validateUpdate: (_, now) => clusterRoleProblems(now),
  async admitCreate(role, requester, needs) {
    await refuseEscalation(role, { requester }, needs)
    return {}
  },
  admitUpdate: (role, needs, facts) => refuseEscalation(role, facts, needs),
}

function clusterRoleProblems(role: ClusterRole): readonly Problem[] {
  return [...roleProblems(role.rules, false), ...aggregationProblems(role)]
}
