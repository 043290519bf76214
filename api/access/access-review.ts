/** authorization.k8s.io/v1: whether a user may do something. A review is answered and never stored. */
import { ObjectMetaSchema } from '../meta.ts'
import { bool, type Described, field, list, mapOf, object, oneOf, optional, pointer, text } from '../schema.ts'

export const authorizationGroup = 'authorization.k8s.io'
const apiVersion = oneOf('authorization.k8s.io/v1')

const RequirementsSchema = object({
  rawSelector: field(1, optional(text)),
  requirements: field(
    2,
    optional(list(object({ key: field(1, text), operator: field(2, text), values: field(3, optional(list(text))) }))),
  ),
})

const ResourceAttributesSchema = object({
  namespace: field(1, optional(text)),
  verb: field(2, optional(text)),
  group: field(3, optional(text)),
  version: field(4, optional(text)),
  resource: field(5, optional(text)),
  subresource: field(6, optional(text)),
  name: field(7, optional(text)),
  fieldSelector: pointer(8, optional(RequirementsSchema)),
  labelSelector: pointer(9, optional(RequirementsSchema)),
})
export type ResourceAttributes = Described<typeof ResourceAttributesSchema>

const NonResourceAttributesSchema = object({ path: field(1, optional(text)), verb: field(2, optional(text)) })

const asked = {
  resourceAttributes: pointer(1, optional(ResourceAttributesSchema)),
  nonResourceAttributes: pointer(2, optional(NonResourceAttributesSchema)),
}
const about = {
  ...asked,
  user: field(3, optional(text)),
  groups: field(4, optional(list(text))),
  extra: field(5, optional(mapOf(list(text)))),
  uid: field(6, optional(text)),
}

/** Clients may send a status, also with null for its lists (kubectl until 1.31): the API replaces it. */
const AccessReviewStatusSchema = object({
  allowed: optional(bool),
  denied: optional(bool),
  reason: optional(text),
  evaluationError: optional(text),
})

export const SelfSubjectAccessReviewSchema = object({
  apiVersion,
  kind: oneOf('SelfSubjectAccessReview'),
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(2, object(asked)),
  status: optional(AccessReviewStatusSchema),
})
export type SelfSubjectAccessReview = Described<typeof SelfSubjectAccessReviewSchema>

export const SubjectAccessReviewSchema = object({
  apiVersion,
  kind: oneOf('SubjectAccessReview'),
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(2, object(about)),
  status: optional(AccessReviewStatusSchema),
})
export type SubjectAccessReview = Described<typeof SubjectAccessReviewSchema>

export const LocalSubjectAccessReviewSchema = object({
  apiVersion,
  kind: oneOf('LocalSubjectAccessReview'),
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(2, object(about)),
  status: optional(AccessReviewStatusSchema),
})
export type LocalSubjectAccessReview = Described<typeof LocalSubjectAccessReviewSchema>

export const SelfSubjectRulesReviewSchema = object({
  apiVersion,
  kind: oneOf('SelfSubjectRulesReview'),
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(2, object({ namespace: field(1, optional(text)) })),
  status: optional(
    object({
      resourceRules: optional(
        list(
          object({
            verbs: optional(list(text)),
            apiGroups: optional(list(text)),
            resources: optional(list(text)),
            resourceNames: optional(list(text)),
          }),
        ),
      ),
      nonResourceRules: optional(list(object({ verbs: optional(list(text)), nonResourceURLs: optional(list(text)) }))),
      incomplete: optional(bool),
      evaluationError: optional(text),
    }),
  ),
})
export type SelfSubjectRulesReview = Described<typeof SelfSubjectRulesReviewSchema>
