/** The identity of a request: from a client certificate, then from a token; anonymous without either. */
import { ApiError } from '../../../api/api-error.ts'
import {
  anonymous,
  authenticatedGroup,
  type Identity,
  lapsedNodeOf,
  lapsedNodesGroup,
  nodeIdentity,
  nodeNameOf,
  nodeOf,
  olderThanStoreKey,
  provenNodeKey,
} from '../../../api/identity.ts'
import { type BootstrapToken, judgeToken, parseToken, tokenRefusal } from '../../../api/node/bootstrap-token.ts'
import { isOlderThanStore } from '../../store/store-mark.ts'

/** A client's certificate as the TLS layer saw it. */
export type ClientCertificate = {
  /** True when the own CA signed it, for clients, and it was valid when the connection was made. */
  readonly trusted: boolean
  /** True when the own CA signed it, for clients, but it was expired or not yet valid when the connection was made. */
  readonly lapsed?: boolean
  /** Undefined when its subject has no common name. */
  readonly identity: Identity | undefined
  readonly validSinceMs: number
  readonly validUntilMs: number
  /** Hexadecimal. */
  readonly serialNumber?: string
  /** SHA-256 of the certificate, hexadecimal. */
  readonly fingerprint?: string
}

export type RequestCredentials = {
  readonly certificate: ClientCertificate | undefined
  /** The header of that name. */
  readonly authorization: string | undefined
}

export type AuthenticationNeeds = {
  readonly findToken: (id: string) => Promise<BootstrapToken | undefined>
  /** Why a certificate of this user, valid since then, is no longer valid; undefined: it is. */
  readonly revoked?: (user: string, sinceMs: number) => string | undefined
  /** The service account whose token this is; undefined: it is not such a token. Throws Unauthorized. undefined: there are none. */
  readonly identifyAccount?: (token: string) => Promise<Identity | undefined>
  readonly nowMs: number
  /** For so long after its end a node's certificate still serves to ask for a new one. */
  readonly lapsedWindowMs?: number
  /** The store that accepts checkpoints now: `extra` records it for nodes whose certificate is older. */
  readonly acceptingStore?: string
}

/** Throws Unauthorized where something was shown that is not good: it never counts as having shown nothing. */
export async function authenticate(
  { certificate, authorization }: RequestCredentials,
  { findToken, identifyAccount, revoked, nowMs, lapsedWindowMs = 0, acceptingStore }: AuthenticationNeeds,
): Promise<Identity> {
  const named = certificate && (ofCertificate(certificate, nowMs) ?? ofLapsed(certificate, nowMs, lapsedWindowMs))
  const because = named && certificate && revoked?.(named.user, knownSinceMs(certificate, nowMs))
  const isLapsed = named !== undefined && lapsedNodeOf(named) !== undefined
  // A token counts more than an expired certificate: with it such a machine joins again.
  if (named !== undefined && because === undefined && !(isLapsed && authorization !== undefined))
    return withExtra(authenticated(named), olderThan(acceptingStore, named, certificate))
  if (authorization !== undefined) {
    const holder = await ofAuthorization(authorization, {
      findToken,
      nowMs,
      ...(identifyAccount && { identifyAccount }),
    })
    const proven = certificate && provenNode(certificate, nowMs, revoked)
    if (proven === undefined) return holder
    return withExtra(holder, {
      [provenNodeKey]: [proven],
      ...olderThan(acceptingStore, nodeIdentity(proven), certificate),
    })
  }
  if (certificate !== undefined) {
    throw new ApiError('Unauthorized', because ?? certificateRefusal(certificate, nowMs))
  }
  return anonymous
}

async function ofAuthorization(authorization: string, needs: TokenNeeds): Promise<Identity> {
  const [, text = ''] = /^Bearer +(\S+)$/i.exec(authorization) ?? []
  return identityOfToken(text, needs)
}

export type TokenNeeds = Pick<AuthenticationNeeds, 'findToken' | 'identifyAccount' | 'nowMs'>

/** The identity of a token's holder: a joining machine, or a service account. Throws Unauthorized. */
export async function identityOfToken(
  text: string,
  { findToken, identifyAccount, nowMs }: TokenNeeds,
): Promise<Identity> {
  const account = await identifyAccount?.(text)
  if (account !== undefined) return account
  const parts = parseToken(text)
  if (parts === undefined) throw new ApiError('Unauthorized', 'Unauthorized')
  const judgement = judgeToken(await findToken(parts.id), parts, nowMs)
  if (judgement.verdict !== 'ok') throw new ApiError('Unauthorized', tokenRefusal(judgement, parts.id, nowMs))
  return authenticated(judgement)
}

/** The node whose certificate, of whatever age and not revoked, was shown beside a token: the key is that node's. */
function provenNode(
  { trusted, lapsed, identity, ...dates }: ClientCertificate,
  nowMs: number,
  revoked: AuthenticationNeeds['revoked'],
): string | undefined {
  if (!(trusted || lapsed) || identity === undefined) return undefined
  const isRevoked = revoked?.(identity.user, knownSinceMs(dates, nowMs)) !== undefined
  return isRevoked ? undefined : nodeOf(identity)
}

/** A connection may outlive its certificate: its end is looked at again with each request. */
function ofCertificate({ trusted, identity, validUntilMs }: ClientCertificate, nowMs: number): Identity | undefined {
  return trusted && nowMs < validUntilMs ? identity : undefined
}

/** One from the future may be older than any revocation: its date cannot be trusted. */
function knownSinceMs({ validSinceMs }: Pick<ClientCertificate, 'validSinceMs'>, nowMs: number): number {
  return validSinceMs <= nowMs ? validSinceMs : Number.NEGATIVE_INFINITY
}

/** The identity of a node whose certificate expired, or was issued while the controller's clock was ahead. */
function ofLapsed(
  { trusted, lapsed, identity, validSinceMs, validUntilMs }: ClientCertificate,
  nowMs: number,
  windowMs: number,
): Identity | undefined {
  const isOver = nowMs >= validUntilMs && nowMs - validUntilMs < windowMs
  const isEarly = nowMs < validSinceMs && windowMs > 0
  if (!(isOver || isEarly) || !(trusted || lapsed) || identity === undefined || nodeOf(identity) === undefined)
    return undefined
  return { user: identity.user, groups: [lapsedNodesGroup] }
}

function withExtra(identity: Identity, extra: NonNullable<Identity['extra']>): Identity {
  return Object.keys(extra).length === 0 ? identity : { ...identity, extra }
}

function olderThan(
  store: string | undefined,
  { user }: Identity,
  certificate: ClientCertificate | undefined,
): NonNullable<Identity['extra']> {
  const serialNumber = certificate?.serialNumber
  if (store === undefined || serialNumber === undefined || nodeNameOf(user) === undefined) return {}
  return isOlderThanStore(serialNumber, store) ? { [olderThanStoreKey]: [store] } : {}
}

function authenticated({ user, groups }: Identity): Identity {
  return { user, groups: [...groups, authenticatedGroup] }
}

function certificateRefusal({ trusted, validSinceMs, validUntilMs }: ClientCertificate, nowMs: number): string {
  const now = `the time here is ${timeText(nowMs)}`
  if (nowMs < validSinceMs) return `the client certificate is not valid before ${timeText(validSinceMs)}; ${now}`
  if (nowMs >= validUntilMs) return `the client certificate expired at ${timeText(validUntilMs)}; ${now}`
  return trusted ? 'the client certificate has no user name' : `the client certificate is not trusted here; ${now}`
}

function timeText(ms: number): string {
  return Number.isNaN(ms) ? 'no date' : `${new Date(ms).toISOString().slice(0, 19)}Z`
}
