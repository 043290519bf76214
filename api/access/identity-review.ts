/** authentication.k8s.io/v1: the identity of the requester, and that of a token. A review is answered and never stored. */
import { ObjectMetaSchema } from '../meta.ts'
import { bool, type Described, field, list, mapOf, object, oneOf, optional, text } from '../schema.ts'

export const authenticationGroup = 'authentication.k8s.io'
const apiVersion = oneOf('authentication.k8s.io/v1')

const UserInfoSchema = object({
  username: optional(text),
  uid: optional(text),
  groups: optional(list(text)),
  extra: optional(mapOf(list(text))),
})
export type UserInfo = Described<typeof UserInfoSchema>

export const SelfSubjectReviewSchema = object({
  apiVersion,
  kind: oneOf('SelfSubjectReview'),
  metadata: field(1, optional(ObjectMetaSchema)),
  status: optional(object({ userInfo: optional(UserInfoSchema) })),
})
export type SelfSubjectReview = Described<typeof SelfSubjectReviewSchema>

export const TokenReviewSchema = object({
  apiVersion,
  kind: oneOf('TokenReview'),
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(2, object({ token: field(1, optional(text)), audiences: field(2, optional(list(text))) })),
  status: optional(
    object({
      authenticated: optional(bool),
      user: optional(UserInfoSchema),
      audiences: optional(list(text)),
      error: optional(text),
    }),
  ),
})
export type TokenReview = Described<typeof TokenReviewSchema>
