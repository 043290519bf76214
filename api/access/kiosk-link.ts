/** Read-only links to the dashboard for screens on a wall: each is a Secret that holds the digest of its secret. */
import type { Identity } from '../identity.ts'
import type { Secret } from '../secret.ts'

export type KioskLink = {
  /** Names the link; no secret. */
  readonly id: string
  /** SHA-256 of the secret, base64. */
  readonly digest: string
  /** RFC 3339; without it the link never expires. */
  readonly expiration?: string
  readonly description?: string
}

export const kioskNamespace = 'kube-system'
export const kioskSecretType = 'bramble.dev/kiosk-link'
/** Who shows a kiosk link is a member. The ClusterRole `bramble:kiosk` is bound to it. */
export const kiosksGroup = 'bramble:kiosks'
const kioskUserPrefix = 'bramble:kiosk:'

export function kioskIdentity(id: string): Identity {
  return { user: `${kioskUserPrefix}${id}`, groups: [kiosksGroup] }
}

/** The name of the Secret. */
export function kioskSecretName(id: string): string {
  return `bramble-kiosk-${id}`
}

export function encodeKioskLink({ id, digest, expiration, description }: KioskLink): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: kioskSecretName(id), namespace: kioskNamespace },
    type: kioskSecretType,
    stringData: { id, digest, ...(expiration && { expiration }), ...(description && { description }) },
  }
}

/** The link that a Secret holds. Undefined when it holds none, or one that contradicts its own name. */
export function decodeKioskLink({ type, metadata, data = {}, stringData = {} }: Secret): KioskLink | undefined {
  const value = (key: string) => stringData[key] ?? textOf(data[key])
  const [id, digest, expiration, description] = ['id', 'digest', 'expiration', 'description'].map(value)
  if (type !== kioskSecretType || id === undefined || !digest || metadata.name !== kioskSecretName(id)) return undefined
  return { id, digest, ...(expiration && { expiration }), ...(description && { description }) }
}

/** Whether it serves at this time. An expiration that is not a date is over. */
export function isKioskLinkValid({ expiration }: KioskLink, nowMs: number): boolean {
  return expiration === undefined || nowMs < Date.parse(expiration)
}

function textOf(base64: string | undefined): string | undefined {
  if (base64 === undefined) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)))
  } catch {
    return undefined
  }
}
