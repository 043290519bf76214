/** The kinds that are asked and answered with a create, and are never stored: what discovery lists, and their paths. */
import {
  authorizationGroup,
  LocalSubjectAccessReviewSchema,
  SelfSubjectAccessReviewSchema,
  SelfSubjectRulesReviewSchema,
  SubjectAccessReviewSchema,
} from '../../../api/access/access-review.ts'
import { authenticationGroup, SelfSubjectReviewSchema, TokenReviewSchema } from '../../../api/access/identity-review.ts'
import { customResource, type Resource } from '../../../api/resources.ts'

const inAuthorization = (plural: string, kind: string, schema: Resource['schema'], namespaced = false) =>
  customResource(plural, kind, authorizationGroup, schema, { namespaced })

export const reviewKinds = {
  selfSubjectReview: customResource(
    'selfsubjectreviews',
    'SelfSubjectReview',
    authenticationGroup,
    SelfSubjectReviewSchema,
  ),
  tokenReview: customResource('tokenreviews', 'TokenReview', authenticationGroup, TokenReviewSchema),
  localSubjectAccessReview: inAuthorization(
    'localsubjectaccessreviews',
    'LocalSubjectAccessReview',
    LocalSubjectAccessReviewSchema,
    true,
  ),
  selfSubjectAccessReview: inAuthorization(
    'selfsubjectaccessreviews',
    'SelfSubjectAccessReview',
    SelfSubjectAccessReviewSchema,
  ),
  selfSubjectRulesReview: inAuthorization(
    'selfsubjectrulesreviews',
    'SelfSubjectRulesReview',
    SelfSubjectRulesReviewSchema,
  ),
  subjectAccessReview: inAuthorization('subjectaccessreviews', 'SubjectAccessReview', SubjectAccessReviewSchema),
} satisfies { readonly [name: string]: Resource }
export type ReviewName = keyof typeof reviewKinds

export type ReviewRoute = {
  readonly kind: 'review'
  readonly verb: 'create'
  readonly name: ReviewName
  /** '' for the kinds that have none. */
  readonly namespace: string
}

/** Undefined where none of these lives; 'not-allowed' for any method but POST. */
export function reviewRouteOf(method: string, segments: readonly string[]): ReviewRoute | 'not-allowed' | undefined {
  const [root, group, version, ...rest] = segments
  if (root !== 'apis' || version !== 'v1') return undefined
  const inside = rest[0] === 'namespaces' && rest.length === 3
  const plural = inside ? rest[2] : rest.length === 1 ? rest[0] : undefined
  const found = names.find((name) => {
    const kind = reviewKinds[name]
    return kind.group === group && kind.name === plural && kind.namespaced === inside
  })
  if (found === undefined) return undefined
  if (method !== 'POST') return 'not-allowed'
  return { kind: 'review', verb: 'create', name: found, namespace: inside ? (rest[1] ?? '') : '' }
}

const names: readonly ReviewName[] = [
  'selfSubjectReview',
  'tokenReview',
  'localSubjectAccessReview',
  'selfSubjectAccessReview',
  'selfSubjectRulesReview',
  'subjectAccessReview',
]
