/** Bootstrap tokens as Kubernetes keeps them: what a machine shows to ask for its first certificate. */
import { bootstrappersGroup, type Identity } from '../identity.ts'
import type { Secret } from '../secret.ts'

/** The two halves of `abcdef.0123456789abcdef`. The first one is not a secret: it names the token. */
export type TokenParts = { readonly id: string; readonly secret: string }

export type BootstrapToken = TokenParts & {
  /** RFC 3339; without it the token never expires. */
  readonly expiration?: string
  readonly description?: string
  readonly usages: readonly TokenUsage[]
  /** Beyond `system:bootstrappers`, which every token has. */
  readonly groups: readonly string[]
}
export type TokenUsage = 'authentication' | 'signing'

export const tokenNamespace = 'kube-system'
export const tokenSecretType = 'bootstrap.kubernetes.io/token'
/** What kubeadm gives its node tokens; approvers look for it. */
export const nodeBootstrapGroup = 'system:bootstrappers:kubeadm:default-node-token'
/** The group of tokens for controllers: it may read its own bundle and delete its own token, and requests no certificate. */
export const controlPlaneGroup = 'system:bootstrappers:bramble:control-plane'

const usages: readonly TokenUsage[] = ['authentication', 'signing']
const groupForm = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/

/** Undefined when the text is not a token. */
export function parseToken(text: string): TokenParts | undefined {
  const [, id, secret] = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(text) ?? []
  return id === undefined || secret === undefined ? undefined : { id, secret }
}

export function formatToken({ id, secret }: TokenParts): string {
  return `${id}.${secret}`
}

/** 22 characters out of random bytes; bytes that would favour some characters are passed over, so give 40 or more. */
export function tokenFrom(random: Uint8Array): TokenParts {
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
  const chosen = [...random].filter((byte) => byte < 252).map((byte) => letters.charAt(byte % 36))
  if (chosen.length < 22) throw new RangeError('Not enough random bytes for a token')
  return { id: chosen.slice(0, 6).join(''), secret: chosen.slice(6, 22).join('') }
}

const tokenUserPrefix = 'system:bootstrap:'

/** The ID of the token that the user authenticated with; undefined for other users. */
export function tokenIdOf(user: string): string | undefined {
  return user.startsWith(tokenUserPrefix) ? user.slice(tokenUserPrefix.length) : undefined
}

/** The Secret's name: the token is looked up by it. */
export function tokenSecretName(id: string): string {
  return `bootstrap-token-${id}`
}

export function encodeToken(token: BootstrapToken): Secret {
  const data = {
    'token-id': token.id,
    'token-secret': token.secret,
    ...(token.expiration === undefined ? {} : { expiration: token.expiration }),
    ...(token.description === undefined ? {} : { description: token.description }),
    ...Object.fromEntries(token.usages.map((usage) => [`usage-bootstrap-${usage}`, 'true'])),
    ...(token.groups.length === 0 ? {} : { 'auth-extra-groups': token.groups.join(',') }),
  }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: tokenSecretName(token.id), namespace: tokenNamespace },
    type: tokenSecretType,
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, toBase64(value)])),
  }
}

/** The token a Secret holds. Undefined when it holds none, or one that contradicts its own name. */
export function decodeToken(secret: Secret): BootstrapToken | undefined {
  if (secret.type !== tokenSecretType) return undefined
  const values = textsOf(secret)
  const parts = parseToken(`${values['token-id']}.${values['token-secret']}`)
  if (parts === undefined || secret.metadata.name !== tokenSecretName(parts.id)) return undefined
  const groups = (values['auth-extra-groups'] ?? '').split(',').filter((group) => group !== '')
  if (!groups.every((group) => groupForm.test(group))) return undefined
  const { expiration, description } = values
  return {
    ...parts,
    ...(expiration === undefined ? {} : { expiration }),
    ...(description === undefined ? {} : { description }),
    usages: usages.filter((usage) => values[`usage-bootstrap-${usage}`] === 'true'),
    groups,
  }
}

export type TokenJudgement =
  | ({ readonly verdict: 'ok' } & Identity)
  | { readonly verdict: 'unknown' }
  | { readonly verdict: 'expired'; readonly expiration: string }

/**
 * Authenticates the holder of `presented`; `kept` is what the Secret of that id holds. Only a client that presents the
 * right secret learns of the expiry; a token not meant for authentication, or whose expiry cannot be read, counts as
 * unknown.
 */
export function judgeToken(kept: BootstrapToken | undefined, presented: TokenParts, nowMs: number): TokenJudgement {
  if (kept === undefined || kept.id !== presented.id) return { verdict: 'unknown' }
  if (!sameText(kept.secret, presented.secret) || !kept.usages.includes('authentication')) return { verdict: 'unknown' }
  if (kept.expiration !== undefined) {
    const endMs = Date.parse(kept.expiration)
    if (Number.isNaN(endMs)) return { verdict: 'unknown' }
    if (nowMs >= endMs) return { verdict: 'expired', expiration: kept.expiration }
  }
  return {
    verdict: 'ok',
    user: `${tokenUserPrefix}${kept.id}`,
    groups: [bootstrappersGroup, ...kept.groups],
  }
}

/** The message of the 401: all that the operator of the joining machine needs. */
export function tokenRefusal(judgement: TokenJudgement, id: string, nowMs: number): string {
  if (judgement.verdict === 'ok') return ''
  const now = `${new Date(nowMs).toISOString().slice(0, 19)}Z`
  return judgement.verdict === 'expired'
    ? `bootstrap token ${id} expired at ${judgement.expiration}; the time here is ${now}`
    : `bootstrap token ${id} is not known here; the time here is ${now}`
}

/** Takes the same time wherever the two texts differ. */
function sameText(a: string, b: string): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ (b.charCodeAt(i) || 0)
  return difference === 0
}

function textsOf(secret: Secret): { readonly [key: string]: string | undefined } {
  const data = Object.entries(secret.data ?? {}).map(([key, value]) => [key, fromBase64(value)])
  return { ...Object.fromEntries(data), ...secret.stringData }
}

function toBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)))
}

/** Bytes that are not base64 or not UTF-8 become an empty text: such a Secret holds no token. */
function fromBase64(encoded: string): string {
  try {
    const bytes = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return ''
  }
}
