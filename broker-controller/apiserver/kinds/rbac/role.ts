/** rbac.authorization.k8s.io/v1 Role (pkg/registry/rbac/role/strategy.go). */
import type { Role } from '../../../../api/access/role.ts'
import { pathSegmentProblem } from '../../../../api/names.ts'
import { resources } from '../../../../api/resources.ts'
import { roleProblems } from '../../../../api/validation/rbac-validation.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { refuseEscalation } from './grants.ts'
import { roleTable } from './rbac-tables.ts'

export const roleStrategy: KindStrategy<Role> = {
  ...resources.roles,
  createdByUpdate: true,
  table: roleTable,
  selectableFields: [],
  subresources: {},
  nameProblem: pathSegmentProblem,
  validateCreate: ({ rules }) => roleProblems(rules, true),
  validateUpdate: (_, { rules }) => roleProblems(rules, true),
  async admitCreate(role, requester, needs) {
    await refuseEscalation(role, { requester }, needs)
    return {}
  },
  admitUpdate: (role, needs, facts) => refuseEscalation(role, facts, needs),
}
