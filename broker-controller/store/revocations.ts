/**
 * Revoked certificates: for each user, all that were issued before a time. One ConfigMap with a line for each user, so that it can
 * be read and repaired with kubectl.
 */
import { isApiError } from '../../api/api-error.ts'
import type { ConfigMap } from '../../api/config-map.ts'
import { nodeIdentity } from '../../api/identity.ts'
import type { ResourceName } from '../../api/resources.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { informer, keyText } from './informer.ts'
import { rewrite } from './rewrite.ts'
import type { ObjectKey, Store } from './store.ts'

export const revocationsKey: ObjectKey = { namespace: 'kube-system', name: 'bramble-revoked-certificates' }

export type Revocation = {
  /** `system:node:NAME`, or another common name. */
  readonly user: string
  /** Certificates that became valid before this are revoked. */
  readonly beforeMs: number
  /** One word, as `NodeDeleted`. */
  readonly reason: string
}

/** By user. Throws with the line that cannot be understood: an incomplete list would admit revoked users. */
export function revocationsIn(map: ConfigMap | undefined): ReadonlyMap<string, Revocation> {
  const lines = (map?.data?.['revoked'] ?? '').split('\n').filter((line) => line.trim() !== '')
  return latest(lines.map(revocationIn))
}

/** The latest entry for each user: a line that was added by hand revokes no earlier one. */
function latest(revocations: Iterable<Revocation>): ReadonlyMap<string, Revocation> {
  const found = new Map<string, Revocation>()
  for (const one of revocations) {
    if ((found.get(one.user)?.beforeMs ?? Number.NEGATIVE_INFINITY) <= one.beforeMs) found.set(one.user, one)
  }
  return found
}

/** The list with all of another one, too. */
export function withAllOf(map: ConfigMap, other: ConfigMap): ConfigMap {
  const all = latest([...revocationsIn(map).values(), ...revocationsIn(other).values()])
  return { ...map, data: { ...map.data, revoked: textOf(all) } }
}

function revocationIn(line: string): Revocation {
  const [before = '', user = '', reason = ''] = line.trim().split(/\s+/)
  const beforeMs = Date.parse(before)
  if (!Number.isNaN(beforeMs) && user !== '') return { user, beforeMs, reason }
  throw new Error(`ConfigMap ${keyText(revocationsKey)}: not "TIME USER REASON": ${JSON.stringify(line)}`)
}

function textOf(revocations: ReadonlyMap<string, Revocation>): string {
  return [...revocations.values()]
    .map(({ beforeMs, user, reason }) => `${rfc3339(beforeMs)} ${user} ${reason}\n`)
    .join('')
}

/** The reason to reject this certificate; undefined when it is not revoked. */
function revokedBecause(
  revocations: ReadonlyMap<string, Revocation>,
  { user, sinceMs }: { readonly user: string; readonly sinceMs: number },
): string | undefined {
  const found = revocations.get(user)
  // A certificate without a date may be older.
  if (found === undefined || sinceMs >= found.beforeMs) return undefined
  const why = found.reason === '' ? '' : ` (${found.reason})`
  return `the certificate of ${user} was revoked${why}: certificates from before ${rfc3339(found.beforeMs)} are no longer valid`
}

/** The list with everything revoked that this user was issued so far. */
export function withRevoked(map: ConfigMap, user: string, reason: string, nowMs: number): ConfigMap {
  const before = revocationsIn(map)
  // Whole seconds, as a certificate's dates are. One issued since the last time may date from this very second.
  const beforeMs = Math.max(Math.floor(nowMs / 1000) * 1000, (before.get(user)?.beforeMs ?? 0) + 1000)
  const kept = [...before].filter(([, old]) => beforeMs - old.beforeMs < keptMs)
  const revoked = textOf(new Map([...kept, [user, { user, beforeMs, reason }]]))
  return { ...map, data: { ...map.data, revoked } }
}

/** No certificate is issued for so long; one that is revoked longer has ended by itself, and its renewal too. */
const keptMs = 2 * 366 * 24 * 3600_000

/** Durable when it resolves. Watches of the list receive it at once. */
export async function revoke(
  needs: { readonly store: Store; readonly clock: Clock },
  user: string,
  reason: string,
): Promise<void> {
  const change = (map: ConfigMap): ConfigMap => withRevoked(map, user, reason, needs.clock.wallMs())
  const none: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...revocationsKey } }
  try {
    if ((await needs.store.get('configmaps', revocationsKey)) === undefined) {
      await needs.store.create('configmaps', change(none))
      return
    }
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error
  }
  await rewrite(needs, 'configmaps', { key: revocationsKey, change })
}

/** Revoke before the delete: a deleted node that is still admitted is worse than a node that is rejected. */
export async function revokeIfNode(
  needs: { readonly store: Store; readonly clock: Clock },
  resource: ResourceName,
  name: string,
): Promise<void> {
  if (resource === 'nodes') await revoke(needs, nodeIdentity(name).user, 'NodeDeleted')
}

export interface RevocationList extends Loop {
  /** Why a certificate that is valid since then is revoked; undefined when it is not. */
  because(user: string, sinceMs: number): string | undefined
  /** The user's certificates that became valid before this are revoked; undefined: none is. */
  before(user: string): number | undefined
  /** Called after each change of the list: open connections must be checked again. */
  onChange(listener: () => void): void
}

export type RevocationNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/** Resolves with the present list, before any client is admitted; its loop keeps it up to date. */
export async function openRevocationList(needs: RevocationNeeds): Promise<RevocationList> {
  const { store, log } = needs
  let current = revocationsIn(await store.get('configmaps', revocationsKey))
  const listeners: (() => void)[] = []
  const key = keyText(revocationsKey)
  const maps = informer(needs, 'configmaps', (present, previous) => {
    if (keyText((present ?? previous)?.metadata ?? {}) !== key) return
    try {
      current = revocationsIn(present)
    } catch (error) {
      return log.error('List of revoked certificates cannot be decoded; the previous one stays in force', { error })
    }
    for (const listener of listeners) listener()
  })
  return {
    name: 'revocations',
    because: (user, sinceMs) => revokedBecause(current, { user, sinceMs }),
    before: (user) => current.get(user)?.beforeMs,
    onChange: (listener) => void listeners.push(listener),
    run: maps.run,
  }
}
