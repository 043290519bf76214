/** rbac.authorization.k8s.io/v1 ClusterRoleBinding: a RoleBinding for every namespace, and for what is in none. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, list, object, oneOf, optional } from '../schema.ts'
import { RoleRefSchema, SubjectSchema } from './role-binding.ts'

export const ClusterRoleBindingSchema = object({
  apiVersion: oneOf('rbac.authorization.k8s.io/v1'),
  kind: oneOf('ClusterRoleBinding'),
  metadata: field(1, ObjectMetaSchema),
  subjects: field(2, optional(list(SubjectSchema))),
  roleRef: field(3, RoleRefSchema),
})
export type ClusterRoleBinding = Described<typeof ClusterRoleBindingSchema>
