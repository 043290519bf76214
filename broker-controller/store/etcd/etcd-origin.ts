/** What the store in etcd has beside its objects: its identity, and the mark of a migration. */
import { randomBytes } from 'node:crypto'
import { decode } from '../../../api/decode.ts'
import { bool, double, object, oneOf, optional, text } from '../../../api/schema.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { StoreOrigin } from '../store.ts'
import type { EtcdClient } from './etcd-client.ts'
import type { EtcdKeys } from './etcd-keys.ts'
import { type Compare, compareTarget, methods } from './etcd-messages.ts'

const originSchema = object({ id: text, acceptsCheckpoints: bool, sinceMs: optional(double) })

/** undefined: the prefix has no store. Throws where the value is not an identity. `revision` 0: the present one. */
export async function readOrigin(
  client: EtcdClient,
  { origin, prefix }: EtcdKeys,
  revision = 0,
): Promise<StoreOrigin | undefined> {
  const { kvs } = await client.call(methods.range, { key: origin, limit: 1, revision })
  const [present] = kvs
  if (present === undefined) return undefined
  const decoded = decode(originSchema, JSON.parse(present.value.toString('utf8')))
  if (decoded.ok) return decoded.value
  throw new Error(`${origin} in etcd is damaged: restore a snapshot of etcd, or choose another prefix than ${prefix}`)
}

/** An identity that no other store has. */
export function newOrigin(acceptsCheckpoints: boolean, nowMs: number): StoreOrigin {
  return {
    id: randomBytes(16).toString('hex'),
    acceptsCheckpoints,
    // In whole seconds, as dates of objects are.
    ...(acceptsCheckpoints && { sinceMs: Math.floor(nowMs / 1000) * 1000 }),
  }
}

class OriginTakenError extends Error {}

/** Makes the prefix a store, and removes the mark of a migration. Throws where it has become one meanwhile. */
export async function putOrigin(
  client: EtcdClient,
  { origin: key, migration, prefix }: EtcdKeys,
  owned: Compare,
  origin: StoreOrigin,
): Promise<StoreOrigin> {
  const { succeeded } = await client.call(methods.txn, {
    compare: [{ target: compareTarget.create, key, createRevision: 0 }, owned],
    success: [{ put: { key, value: Buffer.from(JSON.stringify(origin)) } }, { deleteRange: { key: migration } }],
  })
  if (!succeeded) throw new OriginTakenError(`Another controller uses ${prefix} in etcd`)
  return origin
}

const pollMs = 500

/**
 * The identity that several controllers share: `begun` where the prefix has none, and no process owns it. One that does makes its own,
 * or copies objects: it is waited for.
 */
export async function sharedOrigin(
  client: EtcdClient,
  keys: EtcdKeys,
  begun: StoreOrigin,
  clock: Pick<Clock, 'sleep'>,
  signal: AbortSignal | undefined,
): Promise<StoreOrigin> {
  const unowned = { target: compareTarget.create, key: keys.owner, createRevision: 0 }
  for (;;) {
    const present = await readOrigin(client, keys)
    if (present !== undefined) return present
    const mark = await migrationMark(client, keys)
    if (mark !== undefined) throw new Error(mark.message)
    try {
      return await putOrigin(client, keys, unowned, begun)
    } catch (error) {
      if (!(error instanceof OriginTakenError)) throw error
    }
    await clock.sleep(pollMs, signal)
    if (signal?.aborted) throw new Error(`The wait for ${keys.prefix} in etcd was ended`)
  }
}

/** Why no controller may use the prefix: objects are being copied into it, or were moved out of it. */
export type MigrationMark = { readonly state: 'copying' | 'moved'; readonly message: string }

const markSchema = object({ state: oneOf('copying', 'moved'), message: text })

/** undefined: a controller may use the prefix. `revision` 0: the present one. */
export async function migrationMark(
  client: EtcdClient,
  { migration }: EtcdKeys,
  revision = 0,
): Promise<MigrationMark | undefined> {
  const { kvs } = await client.call(methods.range, { key: migration, limit: 1, revision })
  const [present] = kvs
  if (present === undefined) return undefined
  const decoded = decode(markSchema, JSON.parse(present.value.toString('utf8')))
  if (decoded.ok) return decoded.value
  throw new Error(`${migration} in etcd is damaged: delete it with etcdctl if no migration is under way`)
}

export async function putMigrationMark(
  client: EtcdClient,
  { migration: key, prefix }: EtcdKeys,
  owned: Compare,
  mark: MigrationMark,
): Promise<void> {
  const { succeeded } = await client.call(methods.txn, {
    compare: [owned],
    success: [{ put: { key, value: Buffer.from(JSON.stringify(mark)) } }],
  })
  if (!succeeded) throw new Error(`Another controller uses ${prefix} in etcd`)
}
