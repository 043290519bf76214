/**
 * Tokens of service accounts: their claims, and what makes one invalid (pkg/serviceaccount/claims.go). A token is good for its
 * audiences and its time, while its service account, and the object it is bound to, exist.
 */
import { randomUUID } from 'node:crypto'
import { serviceAccountGroups, serviceAccountUser } from '../../../../api/access/service-account-names.ts'
import { ApiError } from '../../../../api/api-error.ts'
import { decode } from '../../../../api/decode.ts'
import { authenticatedGroup, type Identity } from '../../../../api/identity.ts'
import { type Described, integer, list, object, optional, text } from '../../../../api/schema.ts'
import type { AnyStored, Store } from '../../../store/store.ts'
import type { IssuedFor, TokenIssuer, TokenReference } from '../../handlers/token-issuer.ts'
import { rememberedClaims, type SigningKey, signedToken, type TokenKey } from './json-web-token.ts'

/** Who issues them, and the audience of those for this API: the name of the API inside a cluster. */
export const tokenIssuer = 'https://kubernetes.default.svc.cluster.local'

const ReferenceSchema = object({ name: text, uid: text })
const ClaimsSchema = object({
  iss: text,
  sub: text,
  aud: list(text),
  exp: integer,
  iat: integer,
  nbf: integer,
  jti: text,
  'kubernetes.io': object({
    namespace: text,
    serviceaccount: ReferenceSchema,
    pod: optional(ReferenceSchema),
    node: optional(ReferenceSchema),
    secret: optional(ReferenceSchema),
    /** Until when the token was requested, where it is valid for longer. */
    warnafter: optional(integer),
  }),
})
type Claims = Described<typeof ClaimsSchema>
/** The keys in force: the first signs. */
export type TokenKeys = { readonly signing: SigningKey; readonly others: readonly TokenKey[] }

export interface ServiceAccountTokens extends TokenIssuer {
  /**
   * Whose token this is, and the audiences that it shares with `audiences` (none: those of this API). Throws Unauthorized with
   * the reason where the signature is good; without one where it is not. undefined: this is not such a token.
   */
  identify(token: string, audiences: readonly string[], nowMs: number): Promise<IdentifiedToken | undefined>
  publicKeys(): readonly TokenKey[]
}

export type IdentifiedToken = { readonly identity: Identity; readonly audiences: readonly string[] }

type Reader = Pick<Store, 'get'>

export function serviceAccountTokens(keys: () => TokenKeys, store: Reader): ServiceAccountTokens {
  const claimsOf = rememberedClaims()
  const all = () => [keys().signing, ...keys().others]
  return {
    publicKeys: all,
    issue: (request, nowMs) => signedToken(keys().signing, claimsFor(request, nowMs)),
    async identify(token, asked, nowMs) {
      if (!token.includes('.', token.indexOf('.') + 1)) return undefined
      const decoded = decode(ClaimsSchema, claimsOf(token, all()))
      if (!decoded.ok || decoded.value.iss !== tokenIssuer) throw new ApiError('Unauthorized', 'Unauthorized')
      const claims = decoded.value
      const wanted = asked.length === 0 ? [tokenIssuer] : asked
      const audiences = claims.aud.filter((audience) => wanted.includes(audience))
      if (audiences.length === 0) throw otherAudience(claims.aud, wanted)
      const problem = dateProblem(claims, nowMs) ?? (await objectProblem(claims, store, nowMs))
      if (problem !== undefined) throw invalidated(problem)
      return { identity: identityOf(claims), audiences }
    },
  }
}

function claimsFor({ namespace, account, audiences, bound, ...times }: IssuedFor, nowMs: number): Claims {
  const { expirationSeconds, extendedSeconds } = times
  const now = Math.floor(nowMs / 1000)
  const warnafter = extendedSeconds === undefined ? undefined : now + expirationSeconds
  return {
    aud: audiences,
    exp: now + (extendedSeconds ?? expirationSeconds),
    iat: now,
    iss: tokenIssuer,
    jti: randomUUID(),
    'kubernetes.io': { namespace, serviceaccount: account, ...bound, ...(warnafter && { warnafter }) },
    nbf: now,
    sub: serviceAccountUser(namespace, account.name),
  }
}

/** Unauthorized: the token is for none of the audiences that are asked for. */
export function otherAudience(own: readonly string[], wanted: readonly string[]): ApiError {
  return invalidated(
    `token audiences ${JSON.stringify(own)} is invalid for the target audiences ${JSON.stringify(wanted)}`,
  )
}

function invalidated(because: string): ApiError {
  return new ApiError('Unauthorized', because)
}

/** Clocks of one program do not differ, but may be set back. */
const leewaySeconds = 60

function dateProblem({ exp, nbf }: Claims, nowMs: number): string | undefined {
  const now = nowMs / 1000
  if (now >= exp) return 'service account token has expired'
  return now + leewaySeconds < nbf ? 'service account token is not valid yet' : undefined
}

async function objectProblem(
  { 'kubernetes.io': claimed }: Claims,
  store: Reader,
  nowMs: number,
): Promise<string | undefined> {
  const { namespace, serviceaccount, pod, node, secret } = claimed
  const { name } = serviceaccount
  const account = await store.get('serviceaccounts', { namespace, name })
  if (account === undefined) return `serviceaccounts "${name}" not found`
  if (account.metadata.uid !== serviceaccount.uid) {
    return `service account UID (${account.metadata.uid}) does not match claim (${serviceaccount.uid})`
  }
  if (account.metadata.deletionTimestamp !== undefined) return `service account ${namespace}/${name} has been deleted`
  const bound = [
    secret && isGone(await store.get('secrets', { namespace, name: secret.name }), secret, nowMs),
    pod && isGone(await store.get('pods', { namespace, name: pod.name }), pod, nowMs),
    // The node of a pod is only noted: the pod goes with it.
    pod === undefined && node && isGone(await store.get('nodes', { namespace: '', name: node.name }), node, nowMs),
  ]
  return bound.includes(true) ? 'service account token has been invalidated' : undefined
}

/** A pod within its grace period still uses its token, and for a minute after it. */
function isGone(present: AnyStored | undefined, { uid }: TokenReference, nowMs: number): boolean {
  if (present === undefined || present.metadata.uid !== uid) return true
  const { deletionTimestamp } = present.metadata
  return deletionTimestamp !== undefined && Date.parse(deletionTimestamp) < nowMs - leewaySeconds * 1000
}

function identityOf({ jti, 'kubernetes.io': { namespace, serviceaccount, pod, node } }: Claims): Identity {
  const named = (kind: string, reference: TokenReference | undefined) =>
    reference === undefined
      ? {}
      : {
          [`authentication.kubernetes.io/${kind}-name`]: [reference.name],
          [`authentication.kubernetes.io/${kind}-uid`]: [reference.uid],
        }
  return {
    user: serviceAccountUser(namespace, serviceaccount.name),
    uid: serviceaccount.uid,
    groups: [...serviceAccountGroups(namespace), authenticatedGroup],
    extra: {
      'authentication.kubernetes.io/credential-id': [`JTI=${jti}`],
      ...named('node', node),
      ...named('pod', pod),
    },
  }
}

/** The public keys as a JSON Web Key Set (RFC 7517), for those who check tokens themselves. */
export function keySet(keys: readonly TokenKey[]): object {
  return {
    keys: keys.map(({ id, publicKey }) => ({
      use: 'sig',
      ...publicKey.export({ format: 'jwk' }),
      kid: id,
      alg: 'ES256',
    })),
  }
}

/** OpenID Connect discovery, as far as Kubernetes has it (pkg/serviceaccount/openidmetadata.go). */
export function openidConfiguration(keySetUrl: string): object {
  return {
    issuer: tokenIssuer,
    jwks_uri: keySetUrl,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  }
}
