/** rbac.authorization.k8s.io/v1: roles, and their bindings to users, groups and service accounts. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { type Described, field, list, object, oneOf, optional, pointer, text } from '../schema.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'

const apiVersion = oneOf('rbac.authorization.k8s.io/v1')

const PolicyRuleSchema = object({
  verbs: field(1, optional(list(text))),
  apiGroups: field(2, optional(list(text))),
  resources: field(3, optional(list(text))),
  resourceNames: field(4, optional(list(text))),
  nonResourceURLs: field(5, optional(list(text))),
})
/** What may be done: verbs on resources, or on paths that are no resource. */
export type PolicyRule = Described<typeof PolicyRuleSchema>

const SubjectSchema = object({
  kind: field(1, text),
  apiGroup: field(2, optional(text)),
  name: field(3, text),
  namespace: field(4, optional(text)),
})
export type Subject = Described<typeof SubjectSchema>

const RoleRefSchema = object({
  apiGroup: field(1, optional(text)),
  kind: field(2, text),
  name: field(3, text),
})
export type RoleRef = Described<typeof RoleRefSchema>

export const RoleSchema = object({
  apiVersion,
  kind: oneOf('Role'),
  metadata: field(1, ObjectMetaSchema),
  rules: field(2, optional(list(PolicyRuleSchema))),
})
export type Role = Described<typeof RoleSchema>

export const ClusterRoleSchema = object({
  apiVersion,
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

export const RoleBindingSchema = object({
  apiVersion,
  kind: oneOf('RoleBinding'),
  metadata: field(1, ObjectMetaSchema),
  subjects: field(2, optional(list(SubjectSchema))),
  roleRef: field(3, RoleRefSchema),
})
export type RoleBinding = Described<typeof RoleBindingSchema>

export const ClusterRoleBindingSchema = object({
  apiVersion,
  kind: oneOf('ClusterRoleBinding'),
  metadata: field(1, ObjectMetaSchema),
  subjects: field(2, optional(list(SubjectSchema))),
  roleRef: field(3, RoleRefSchema),
})
export type ClusterRoleBinding = Described<typeof ClusterRoleBindingSchema>
