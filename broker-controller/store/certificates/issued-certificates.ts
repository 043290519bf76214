/**
 * The certificates that nodes were issued, by serial number: a server that understands revocation lists only needs them. Kept in
 * ConfigMaps of kube-system, a line for each certificate that has not ended, and only in fleets with an external MQTT server.
 */
import { X509Certificate } from 'node:crypto'
import { isApiError } from '../../../api/api-error.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import { nodeIdentity } from '../../../api/identity.ts'
import { yearMs } from '../../../certs/issue.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { revocationsIn, revocationsKey } from '../revocations.ts'
import { rewrite } from '../rewrite.ts'
import type { ObjectKey, Store } from '../store.ts'

export type RecordedCertificate = {
  readonly user: string
  /** Hexadecimal; undefined: all certificates from before this was recorded, whose numbers are not known. */
  readonly serial: string | undefined
  /** `caHash` of the authority that signed it. */
  readonly authority: string
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

const namespace = 'kube-system'
const prefix = 'bramble-issued-certificates-'
/** A certificate takes about 150 bytes and a node has two for a while: 10,000 nodes need 190 kB in each of them. */
const shards = 16
const unknown = '*'
/** A node that renews its certificate again and again must not fill the ConfigMap that it shares with others. */
const mostOfUser = 16

/** Does this ConfigMap have a part of the certificates? */
export function isIssuedCertificates({ metadata }: ConfigMap): boolean {
  return metadata.namespace === namespace && metadata.name?.startsWith(prefix) === true
}

/** Those of one ConfigMap. A line that cannot be understood is left out. */
export function issuedCertificatesIn(map: ConfigMap): readonly RecordedCertificate[] {
  const lines = (map.data?.['certificates'] ?? '').split('\n')
  return lines.flatMap((line) => {
    const [serial = '', authority = '', notBefore = '', notAfter = '', user = ''] = line.trim().split(/\s+/)
    const [notBeforeMs, notAfterMs] = [Date.parse(notBefore), Date.parse(notAfter)]
    const isUsable = user !== '' && Number.isFinite(notBeforeMs) && Number.isFinite(notAfterMs)
    return isUsable
      ? [{ user, serial: serial === unknown ? undefined : serial, authority, notBeforeMs, notAfterMs }]
      : []
  })
}

/**
 * Begins to record, unless it began before: nodes that exist, or were revoked within the longest life of a certificate, have
 * certificates whose numbers are not known.
 */
export async function beginIssuedCertificates(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  authority: string,
): Promise<void> {
  const nowMs = clock.wallMs()
  const { items } = await store.list('nodes')
  const revoked = [...revocationsIn(await store.get('configmaps', revocationsKey)).values()]
  const users = new Set([
    ...items.map(({ metadata }) => nodeIdentity(metadata.name).user),
    ...revoked.filter(({ beforeMs }) => beforeMs + yearMs > nowMs).map(({ user }) => user),
  ])
  const certificate = { serial: undefined, authority, notBeforeMs: 0, notAfterMs: nowMs + yearMs }
  for (let shard = 0; shard < shards; shard++) {
    const own = [...users].filter((user) => shardOf(user) === shard).map((user) => ({ ...certificate, user }))
    const map: ConfigMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: keyOf(shard),
      data: { certificates: textOf(own) },
    }
    try {
      if ((await store.get('configmaps', keyOf(shard))) === undefined) await store.create('configmaps', map)
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error
    }
  }
}

/** Durable when it resolves. Does nothing in a fleet that does not record certificates. `authority`: `caHash` of the one that signed it. */
export async function recordIssuedCertificate(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  user: string,
  pem: string,
  authority: string,
): Promise<void> {
  const certificate = new X509Certificate(pem)
  const issued: RecordedCertificate = {
    user,
    serial: certificate.serialNumber.toLowerCase(),
    authority,
    notBeforeMs: Date.parse(certificate.validFrom),
    notAfterMs: Date.parse(certificate.validTo),
  }
  const nowMs = clock.wallMs()
  await rewrite({ store, clock }, 'configmaps', {
    key: keyOf(shardOf(user)),
    change(map) {
      const kept = issuedCertificatesIn(map).filter(({ notAfterMs }) => notAfterMs > nowMs)
      return { ...map, data: { ...map.data, certificates: textOf(bounded([...kept, issued], user)) } }
    },
  })
}

/** Keeps the latest serial numbers of a user; one entry without a number represents all others of an authority. */
function bounded(certificates: readonly RecordedCertificate[], user: string): readonly RecordedCertificate[] {
  const own = certificates.filter((one) => one.user === user)
  const known = own.filter(({ serial }) => serial !== undefined)
  if (known.length <= mostOfUser) return certificates
  const others = new Map<string, RecordedCertificate>()
  for (const one of [...own.filter(({ serial }) => serial === undefined), ...known.slice(0, -mostOfUser)]) {
    const { notBeforeMs, notAfterMs } = others.get(one.authority) ?? one
    others.set(one.authority, {
      ...{ user, serial: undefined, authority: one.authority },
      notBeforeMs: Math.min(notBeforeMs, one.notBeforeMs),
      notAfterMs: Math.max(notAfterMs, one.notAfterMs),
    })
  }
  return [...certificates.filter((one) => one.user !== user), ...others.values(), ...known.slice(-mostOfUser)]
}

function keyOf(shard: number): ObjectKey {
  return { namespace, name: `${prefix}${shard}` }
}

function textOf(certificates: readonly RecordedCertificate[]): string {
  return certificates
    .map(
      ({ serial = unknown, authority, notBeforeMs, notAfterMs, user }) =>
        `${[serial, authority, rfc3339(notBeforeMs), rfc3339(notAfterMs), user].join(' ')}\n`,
    )
    .join('')
}

/** FNV-1a, as for the shards of Services. */
function shardOf(user: string): number {
  let hash = 0x811c9dc5
  for (const unit of user) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return hash % shards
}
