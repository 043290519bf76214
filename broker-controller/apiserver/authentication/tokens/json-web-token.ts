/**
 * Signed JSON web tokens (RFC 7519) in their compact form (RFC 7515), ES256 only (RFC 7518, 3.4): there is nothing to negotiate,
 * and a header that names another algorithm is refused.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { isObject } from '../../../../api/text/json.ts'

export type TokenKey = {
  /** Hash of the public key, as Kubernetes computes it (pkg/serviceaccount/jwt.go, keyIDFromPublicKey). */
  readonly id: string
  readonly publicKey: KeyObject
}
export type SigningKey = TokenKey & { readonly privateKey: KeyObject }

/** More characters than a token has that is issued here. */
export const longestToken = 16 * 1024

/** A key of the curve P-256. Throws TypeError for any other. */
export function signingKey(privateKey: KeyObject): SigningKey {
  if (privateKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new TypeError('The key is not of the curve P-256')
  const publicKey = createPublicKey(privateKey)
  const der = publicKey.export({ type: 'spki', format: 'der' })
  return { id: createHash('sha256').update(der).digest('base64url'), publicKey, privateKey }
}

export function signedToken({ id, privateKey }: SigningKey, claims: object): string {
  const parts = [{ alg: 'ES256', kid: id }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  const text = parts.join('.')
  const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${text}.${signature.toString('base64url')}`
}

/** The claims of a token that one of the keys has signed; undefined for anything else. One signature is checked at most. */
export function verifiedClaims(
  token: string,
  keys: readonly TokenKey[],
): { readonly [claim: string]: unknown } | undefined {
  if (token.length > longestToken) return undefined
  const [, header = '', claims = '', signature = ''] = /^([\w-]+)\.([\w-]+)\.([\w-]{86})$/.exec(token) ?? []
  const { alg, kid, crit } = decoded(header) ?? {}
  const key = keys.find(({ id }) => id === kid)
  if (key === undefined || alg !== 'ES256' || crit !== undefined) return undefined
  const bytes = Buffer.from(signature, 'base64url')
  const isGood = verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    { key: key.publicKey, dsaEncoding: 'ieee-p1363' },
    bytes,
  )
  return isGood ? decoded(claims) : undefined
}

/**
 * The same, which remembers the tokens with a good signature by their hash, until the keys change: clients send a token with each
 * request, and those of open answers are checked again.
 */
export function rememberedClaims(most = 2_000): typeof verifiedClaims {
  const good = new Map<string, NonNullable<ReturnType<typeof verifiedClaims>>>()
  let keysOfGood = ''
  return (token, keys) => {
    if (token.length > longestToken) return undefined
    const ids = keys.map(({ id }) => id).join()
    if (ids !== keysOfGood) good.clear()
    keysOfGood = ids
    const hash = createHash('sha256').update(token).digest('base64')
    const known = good.get(hash)
    if (known !== undefined) return known
    const claims = verifiedClaims(token, keys)
    if (claims === undefined) return undefined
    for (const oldest of good.keys()) {
      if (good.size < most) break
      good.delete(oldest)
    }
    good.set(hash, claims)
    return claims
  }
}

/** The expiry in the claims of a token, in milliseconds since 1970. Its signature is not checked. */
export function expiryOfToken(token: string): number | undefined {
  const exp = decoded(token.split('.')[1] ?? '')?.['exp']
  return typeof exp === 'number' ? exp * 1000 : undefined
}

function decoded(part: string): { readonly [claim: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
