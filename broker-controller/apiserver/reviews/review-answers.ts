/** One review from its body to its answer. */
import type {
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
} from '../../../api/access/access-review.ts'
import type { SelfSubjectReview, TokenReview, UserInfo } from '../../../api/access/identity-review.ts'
import { ApiError, isApiError } from '../../../api/api-error.ts'
import type { Identity } from '../../../api/identity.ts'
import type { AnyObject, ObjectMeta } from '../../../api/meta.ts'
import { invalid, invalidObject, type Problem } from '../../../api/problem.ts'
import type { Resource } from '../../../api/resources.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import type { ResourceNeeds } from '../handlers/strategy.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { assertObjectForm } from '../wire/content-negotiation.ts'
import { fieldValidation, isDryRun, parseBody, readObject } from '../wire/request-body.ts'
import { accessReviewProblems, answeredAccess, answeredRules } from './access-reviews.ts'
import { type ReviewRoute, reviewKinds } from './review-kinds.ts'

export type ReviewRequest = {
  readonly route: ReviewRoute
  readonly identity: Identity
  readonly query: URLSearchParams
  readonly accept: string | undefined
  readonly contentType: string | undefined
  readonly readBody: () => Promise<Buffer>
}

export type ReviewNeeds = Pick<ResourceNeeds, 'access' | 'clock' | 'parseYaml'> & {
  /** Whose token this is, and for which of the audiences that are asked for. Throws Unauthorized. */
  readonly identityOfToken: (token: string, audiences: readonly string[]) => Promise<TokenHolder>
}

export type TokenHolder = { readonly identity: Identity; readonly audiences: readonly string[] }

type Review =
  | SelfSubjectReview
  | TokenReview
  | LocalSubjectAccessReview
  | SelfSubjectAccessReview
  | SelfSubjectRulesReview
  | SubjectAccessReview

export async function reviewAnswer(request: ReviewRequest, needs: ReviewNeeds): Promise<ApiResponse> {
  const { route, identity, query, accept } = request
  assertObjectForm(accept)
  const kind = reviewKinds[route.name]
  isDryRun(query) // nothing is stored either way, but a wrong value is refused
  const input = parseBody(await request.readBody(), request, kind, needs.parseYaml)
  const { value, warnings } = readObject(kind, input, fieldValidation(query))
  const review = reviewIn(value)
  const namespaced = { ...review, ...inPath(review, route) }
  const problems = [...metadataProblems(review), ...problemsOf(namespaced)]
  if (problems.length > 0) throw invalidObject(kind, review.metadata?.name ?? '', problems)
  return objectAnswer(await answered(namespaced, identity, needs), 201, warnings)
}

/** The object that a schema of the review kinds has read. */
function reviewIn(value: AnyObject): Review {
  if (isReview(value)) return value
  throw new TypeError(`${value.kind} is not a review`)
}

function isReview(value: AnyObject): value is Review & AnyObject {
  return Object.values<Resource>(reviewKinds).some(({ kind }) => kind === value.kind)
}

/** The metadata with the namespace of the path. Throws BadRequest where the object names another. */
function inPath({ metadata = {} }: Review, { namespace }: ReviewRoute): { readonly metadata: ObjectMeta } {
  const own = metadata.namespace ?? ''
  if (own !== '' && own !== namespace) {
    const message = 'the namespace of the provided object does not match the namespace sent on the request'
    throw new ApiError('BadRequest', message)
  }
  return { metadata: namespace === '' ? metadata : { ...metadata, namespace } }
}

/** A review is not an object: it has no name and no labels. */
function metadataProblems({ kind, metadata = {} }: Review): readonly Problem[] {
  if (kind === 'SelfSubjectReview' || kind === 'TokenReview' || kind === 'SelfSubjectRulesReview') return []
  const local = kind === 'LocalSubjectAccessReview'
  const { managedFields: _, namespace, ...rest } = metadata
  const own = { ...rest, ...(!local && namespace && { namespace }) }
  if (Object.keys(own).length === 0) return []
  return [invalid('metadata', metadata, local ? 'must be empty except for namespace' : 'must be empty')]
}

function problemsOf(review: Review): readonly Problem[] {
  switch (review.kind) {
    case 'SelfSubjectAccessReview':
    case 'SubjectAccessReview':
    case 'LocalSubjectAccessReview':
      return accessReviewProblems(review)
    default:
      return []
  }
}

async function answered(review: Review, identity: Identity, needs: ReviewNeeds): Promise<Review> {
  const { access, clock } = needs
  switch (review.kind) {
    case 'SelfSubjectAccessReview':
    case 'SubjectAccessReview':
    case 'LocalSubjectAccessReview':
      return answeredAccess(review, identity, access)
    case 'SelfSubjectRulesReview':
      return answeredRules(review, identity, access)
    case 'SelfSubjectReview': {
      const metadata = { ...review.metadata, creationTimestamp: rfc3339(clock.wallMs()) }
      return { ...review, metadata, status: { userInfo: userInfo(identity) } }
    }
    case 'TokenReview':
      return answeredToken(review, needs)
  }
}

async function answeredToken(review: TokenReview, { identityOfToken }: ReviewNeeds): Promise<TokenReview> {
  const { token = '', audiences: asked = [] } = review.spec
  if (token === '') throw new ApiError('BadRequest', 'token is required for TokenReview in authentication')
  try {
    const { identity, audiences } = await identityOfToken(token, asked)
    return { ...review, status: { authenticated: true, user: userInfo(identity), audiences } }
  } catch (error) {
    if (!isApiError(error, 'Unauthorized')) throw error
    return { ...review, status: { error: error.message } }
  }
}

function userInfo({ user, uid, groups, extra }: Identity): UserInfo {
  return { username: user, ...(uid && { uid }), groups, ...(extra && { extra }) }
}
