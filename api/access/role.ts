/** rbac.authorization.k8s.io/v1 Role, and the rules of which every role consists. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, list, object, oneOf, optional, text } from '../schema.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'

export const PolicyRuleSchema = object({
  verbs: field(1, optional(list(text))),
  apiGroups: field(2, optional(list(text))),
  resources: field(3, optional(list(text))),
  resourceNames: field(4, optional(list(text))),
  nonResourceURLs: field(5, optional(list(text))),
})
/** What may be done: verbs on resources, or on paths that are not resources. */
export type PolicyRule = Described<typeof PolicyRuleSchema>

export const RoleSchema = object({
  apiVersion: oneOf('rbac.authorization.k8s.io/v1'),
  kind: oneOf('Role'),
  metadata: field(1, ObjectMetaSchema),
  rules: field(2, optional(list(PolicyRuleSchema))),
})
export type Role = Described<typeof RoleSchema>
