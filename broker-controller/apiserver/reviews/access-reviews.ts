/** Answers to authorization.k8s.io/v1 (pkg/registry/authorization, pkg/apis/authorization/validation/validation.go). */
import type {
  LocalSubjectAccessReview,
  ResourceAttributes,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
} from '../../../api/access/access-review.ts'
import { ApiError } from '../../../api/api-error.ts'
import { bootstrappersGroup, type Identity, nodeOf } from '../../../api/identity.ts'
import { invalid, type Problem } from '../../../api/problem.ts'
import type { Attributes, Authorizer } from '../handlers/authorizer.ts'

type AccessReview = SelfSubjectAccessReview | SubjectAccessReview | LocalSubjectAccessReview

/** What is wrong with the question. */
export function accessReviewProblems(review: AccessReview): readonly Problem[] {
  const { resourceAttributes, nonResourceAttributes } = review.spec
  const both = resourceAttributes !== undefined && nonResourceAttributes !== undefined
  const neither = resourceAttributes === undefined && nonResourceAttributes === undefined
  return [
    ...(both
      ? [
          invalid(
            'spec.nonResourceAttributes',
            nonResourceAttributes,
            'cannot be specified in combination with resourceAttributes',
          ),
        ]
      : []),
    ...(neither
      ? [
          invalid(
            'spec.resourceAttributes',
            null,
            'exactly one of nonResourceAttributes or resourceAttributes must be specified',
          ),
        ]
      : []),
    ...(review.kind === 'SelfSubjectAccessReview' ? [] : subjectProblems(review)),
    ...(review.kind === 'LocalSubjectAccessReview' ? localProblems(review) : []),
  ]
}

function subjectProblems({ spec }: SubjectAccessReview | LocalSubjectAccessReview): readonly Problem[] {
  const isNamed = Boolean(spec.user) || (spec.groups ?? []).length > 0
  return isNamed ? [] : [invalid('spec.user', spec.user ?? '', 'at least one of user or group must be specified')]
}

function localProblems({ metadata, spec }: LocalSubjectAccessReview): readonly Problem[] {
  const { resourceAttributes, nonResourceAttributes } = spec
  const namespace = resourceAttributes?.namespace ?? ''
  return [
    ...(resourceAttributes !== undefined && namespace !== (metadata?.namespace ?? '')
      ? [invalid('spec.resourceAttributes.namespace', namespace, 'must match metadata.namespace')]
      : []),
    ...(nonResourceAttributes === undefined
      ? []
      : [invalid('spec.nonResourceAttributes', nonResourceAttributes, 'disallowed on this kind of request')]),
  ]
}

/** The review with its answer. A question without problems. */
export async function answeredAccess<R extends AccessReview>(
  review: R,
  requester: Identity,
  access: Authorizer,
): Promise<R> {
  const { allowed, reason } = await access.decide(subjectOf(review, requester), attributesAsked(review.spec))
  return { ...review, status: { allowed, ...(reason !== '' && { reason }) } }
}

function subjectOf(review: AccessReview, requester: Identity): Identity {
  if (review.kind === 'SelfSubjectAccessReview') return requester
  const { user = '', groups = [], uid, extra } = review.spec
  return { user, groups, ...(uid && { uid }), ...(extra && { extra }) }
}

function attributesAsked({ resourceAttributes, nonResourceAttributes }: AccessReview['spec']): Attributes {
  if (resourceAttributes === undefined) {
    return { kind: 'path', verb: nonResourceAttributes?.verb ?? '', path: nonResourceAttributes?.path ?? '' }
  }
  const { verb = '', group = '', resource = '', subresource = '', namespace = '', name = '' } = resourceAttributes
  const fields = fieldsAsked(resourceAttributes)
  return { kind: 'resource', verb, group, resource, subresource, namespace, name, fields }
}

/** What the field selector asks to be equal. */
function fieldsAsked({ fieldSelector }: ResourceAttributes): ReadonlyMap<string, string> {
  const equal = (fieldSelector?.requirements ?? []).flatMap(({ key, operator, values = [] }) => {
    const [value] = values
    return operator === 'In' && values.length === 1 && value !== undefined ? [[key, value] as const] : []
  })
  return new Map(equal)
}

/** Throws BadRequest without a namespace. */
export function answeredRules(
  review: SelfSubjectRulesReview,
  requester: Identity,
  access: Authorizer,
): SelfSubjectRulesReview {
  const { namespace = '' } = review.spec
  if (namespace === '') throw new ApiError('BadRequest', 'no namespace on request')
  const rules = access.rulesOf(requester, namespace)
  const resourceRules = rules.flatMap(({ verbs = [], apiGroups, resources, resourceNames }) =>
    (resources ?? []).length === 0 ? [] : [{ verbs, apiGroups, resources, ...(resourceNames && { resourceNames }) }],
  )
  const nonResourceRules = rules.flatMap(({ verbs = [], nonResourceURLs }) =>
    (nonResourceURLs ?? []).length === 0 ? [] : [{ verbs, nonResourceURLs }],
  )
  // What the fixed rules allow depends on the pods of the node, and cannot be listed.
  const hasFixedRules = nodeOf(requester) !== undefined || requester.groups.includes(bootstrappersGroup)
  const status = {
    resourceRules,
    nonResourceRules,
    incomplete: hasFixedRules,
    ...(hasFixedRules && { evaluationError: 'node authorizer does not support user rule resolution' }),
  }
  return { ...review, status }
}
