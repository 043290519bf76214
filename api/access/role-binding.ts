/** rbac.authorization.k8s.io/v1 RoleBinding: a role, and the users, groups and service accounts that have it. */
import { ObjectMetaSchema } from '../meta.ts'
import { atomic, type Described, field, list, object, oneOf, optional, text } from '../schema.ts'

export const SubjectSchema = atomic(
  object({
    kind: field(1, text),
    apiGroup: field(2, optional(text)),
    name: field(3, text),
    namespace: field(4, optional(text)),
  }),
)
export type Subject = Described<typeof SubjectSchema>

export const RoleRefSchema = atomic(
  object({
    apiGroup: field(1, optional(text)),
    kind: field(2, text),
    name: field(3, text),
  }),
)
export type RoleRef = Described<typeof RoleRefSchema>

export const RoleBindingSchema = object({
  apiVersion: oneOf('rbac.authorization.k8s.io/v1'),
  kind: oneOf('RoleBinding'),
  metadata: field(1, ObjectMetaSchema),
  subjects: field(2, optional(list(SubjectSchema))),
  roleRef: field(3, RoleRefSchema),
})
export type RoleBinding = Described<typeof RoleBindingSchema>
