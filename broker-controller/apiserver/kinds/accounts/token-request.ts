/** create of serviceaccounts/token (pkg/registry/core/serviceaccount/storage/token.go). */
import { isDeepStrictEqual } from 'node:util'
import type { ServiceAccount } from '../../../../api/access/service-account.ts'
import { type TokenRequest, TokenRequestSchema } from '../../../../api/access/token-request.ts'
import { ApiError, conflict, notFound } from '../../../../api/api-error.ts'
import { nodeOf } from '../../../../api/identity.ts'
import { invalid, invalidObject, type Problem } from '../../../../api/problem.ts'
import { type BuiltInName, resources } from '../../../../api/resources.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Store, StoredObject } from '../../../store/store.ts'
import { tokenIssuer } from '../../authentication/tokens/service-account-tokens.ts'
import { nodeTokenProblem } from '../../authorization/node-restriction.ts'
import { forbid, keyOfRoute } from '../../handlers/resource-request.ts'
import type { ResourceNeeds, ResourceRequest } from '../../handlers/strategy.ts'
import type { IssuedFor } from '../../handlers/token-issuer.ts'
import { type ApiResponse, objectAnswer } from '../../wire/answers.ts'
import { isDryRun, parseBody, readAs, withType } from '../../wire/request-body.ts'
import { unknownPath } from '../../wire/status-errors.ts'
import { driverAudiences } from './driver-audiences.ts'
import { podTokenSeconds } from './pod-account.ts'

const kind = { kind: 'TokenRequest', group: 'authentication.k8s.io' }
const hourSeconds = 3600
const shortestSeconds = 600
/** As Kubernetes' --service-account-max-token-expiration, for which kubeadm sets nothing; a token outlives no key for longer. */
const longestSeconds = 366 * 24 * hourSeconds
/**
 * What admission asks for in pods. Programs that read their token only once keep working: such a token is valid for a year
 * (--service-account-extend-token-expiration of kube-apiserver, on by default).
 */
const extendedFor = { requestedSeconds: podTokenSeconds, seconds: 365 * 24 * hourSeconds }
const mostAudiences = 16
const longestAudience = 512

export async function requestToken(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, query } = request
  const { store, clock, tokens } = needs
  if (tokens === undefined) throw unknownPath()
  isDryRun(query) // a token is not stored
  const input = parseBody(await request.readBody(), request, { schema: TokenRequestSchema }, needs.parseYaml)
  const typed = readAs(
    TokenRequestSchema,
    kind.kind,
    withType(input, { apiVersion: 'authentication.k8s.io/v1', kind: kind.kind }),
  )
  await refuseToNode(request, typed, needs)
  const account = await store.get('serviceaccounts', keyOfRoute(route))
  if (account === undefined) throw notFound(route.resource, route.name)
  const problems = [...metadataProblems(typed, account), ...specProblems(typed)]
  if (problems.length > 0) throw invalidObject(kind, '', problems)
  const { audiences = [], expirationSeconds = hourSeconds, boundObjectRef } = typed.spec
  const given = audiences.length === 0 ? [tokenIssuer] : audiences
  const seconds = Math.min(expirationSeconds, longestSeconds)
  const { name, namespace = '', uid } = account.metadata
  const bound = await boundObject(typed, account, store)
  const nowMs = clock.wallMs()
  const isExtended =
    bound.pod !== undefined && seconds === extendedFor.requestedSeconds && isDeepStrictEqual(given, [tokenIssuer])
  const token = tokens.issue(
    {
      namespace,
      account: { name, uid },
      audiences: given,
      expirationSeconds: seconds,
      ...(isExtended && { extendedSeconds: extendedFor.seconds }),
      bound,
    },
    nowMs,
  )
  const answer = {
    ...typed,
    metadata: { ...typed.metadata, name, namespace, creationTimestamp: rfc3339(nowMs) },
    spec: { audiences: given, expirationSeconds: seconds, ...(boundObjectRef && { boundObjectRef }) },
    status: { token, expirationTimestamp: rfc3339(nowMs + seconds * 1000) },
  }
  const shortened = `requested expiration of ${expirationSeconds} seconds shortened to ${longestSeconds} seconds`
  return objectAnswer(answer, 201, seconds < expirationSeconds ? [shortened] : [])
}

/** Throws Forbidden where a node asks for a token that is not of one of its pods (admitServiceAccount of NodeRestriction). */
async function refuseToNode({ route, identity }: ResourceRequest, { spec }: TokenRequest, { store }: ResourceNeeds) {
  const node = nodeOf(identity)
  if (node === undefined) return
  const { namespace, name } = route
  const reference = spec.boundObjectRef ?? {}
  const isNamed = reference.apiVersion === 'v1' && reference.kind === 'Pod' && reference.name
  const pod = isNamed ? await store.get('pods', { namespace, name: reference.name ?? '' }) : undefined
  if (isNamed && reference.uid && pod === undefined) throw notFound(resources.pods, reference.name ?? '')
  const ofDrivers = pod?.spec.nodeName === node ? await driverAudiences(pod, store) : undefined
  const problem = nodeTokenProblem(identity.user, node, spec, pod, ofDrivers)
  if (problem !== undefined) throw forbid(resources.serviceaccounts, name, problem)
}

function metadataProblems({ metadata = {} }: TokenRequest, { metadata: account }: ServiceAccount): readonly Problem[] {
  const { name, namespace } = metadata
  return [
    ...(name && name !== account.name
      ? [invalid('metadata.name', name, 'must match the service account name if specified')]
      : []),
    ...(namespace && namespace !== account.namespace
      ? [invalid('metadata.namespace', namespace, 'must match the service account namespace if specified')]
      : []),
  ]
}

function specProblems({ spec: { expirationSeconds = hourSeconds, audiences = [] } }: TokenRequest): readonly Problem[] {
  const field = 'spec.expirationSeconds'
  const isLong = audiences.some((audience) => audience.length > longestAudience)
  return [
    ...(expirationSeconds < shortestSeconds
      ? [invalid(field, expirationSeconds, 'may not specify a duration less than 10 minutes')]
      : []),
    ...(expirationSeconds > 2 ** 32
      ? [invalid(field, expirationSeconds, 'may not specify a duration larger than 2^32 seconds')]
      : []),
    ...(audiences.length > mostAudiences || isLong
      ? [invalid('spec.audiences', '', `may not be more than ${mostAudiences}, of ${longestAudience} characters each`)]
      : []),
  ]
}

/** The object that the token ends with. Throws the ApiError of one that cannot be. */
async function boundObject(
  { spec: { boundObjectRef: reference } }: TokenRequest,
  { metadata: account }: ServiceAccount,
  store: Store,
): Promise<IssuedFor['bound']> {
  if (reference === undefined) return {}
  const { kind: wanted = '', apiVersion = '', name = '', uid = '' } = reference
  const found = async <R extends BuiltInName>(resource: R, namespace: string): Promise<StoredObject<R>> => {
    const object = await store.get(resource, { namespace, name })
    if (object === undefined) throw notFound(resources[resource], name)
    if (uid === '' || uid === object.metadata.uid) return object
    const because = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict({ name: wanted, group: '' }, name, because)
  }
  const referenceTo = ({ metadata }: StoredObject<BuiltInName>) => ({ name: metadata.name, uid: metadata.uid })
  const { namespace = '' } = account
  switch (apiVersion === 'v1' ? wanted : '') {
    case 'Pod': {
      const pod = await found('pods', namespace)
      if (pod.spec.serviceAccountName !== account.name) {
        const message = `cannot bind token for serviceaccount "${account.name}" to pod running with different serviceaccount name.`
        throw new ApiError('BadRequest', message)
      }
      const { nodeName = '' } = pod.spec
      const node = nodeName === '' ? undefined : await store.get('nodes', { namespace: '', name: nodeName })
      return { pod: referenceTo(pod), ...(node && { node: referenceTo(node) }) }
    }
    case 'Node':
      return { node: referenceTo(await found('nodes', '')) }
    case 'Secret':
      return { secret: referenceTo(await found('secrets', namespace)) }
    default:
      throw new ApiError('BadRequest', `cannot bind token to object of type ${apiVersion}, Kind=${wanted}`)
  }
}
