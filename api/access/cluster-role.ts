/** rbac.authorization.k8s.io/v1 ClusterRole. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { type Described, field, list, object, oneOf, optional, pointer } from '../schema.ts'
import { PolicyRuleSchema } from './role.ts'

export const ClusterRoleSchema = object({
  apiVersion: oneOf('rbac.authorization.k8s.io/v1'),
  kind: oneOf('ClusterRole'),
  metadata: field(1, ObjectMetaSchema),
  rules: field(2, optional(list(PolicyRuleSchema))),
  /** The rules are those of all ClusterRoles that one of the selectors selects; a controller keeps them. */
  aggregationRule: pointer(
    3,
    optional(object({ clusterRoleSelectors: field(1, optional(list(LabelSelectorSchema))) })),
  ),
})
export type ClusterRole = Described<typeof ClusterRoleSchema>
