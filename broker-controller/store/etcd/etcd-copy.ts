/** All objects of a prefix copied into it, read out of it, and compared by count and hash. */
import { createHash } from 'node:crypto'
import type { EtcdClient } from './etcd-client.ts'
import type { EtcdKeys, StoredKey } from './etcd-keys.ts'
import { type Compare, compareTarget, methods } from './etcd-messages.ts'
import { readRange } from './etcd-range.ts'
import type { EtcdValues } from './etcd-values.ts'

/** An object as a copy has it: JSON without its version, which every store assigns itself. */
export type CopiedObject = { readonly key: StoredKey; readonly body: string }
export type ReadObject = CopiedObject & { readonly version: number }

/** Number of the objects of one kind, and a hash of their names and bodies. */
export type KindSummary = { readonly count: number; readonly hash: string }
export type CopySummary = ReadonlyMap<string, KindSummary>

const writesAtOnce = 16

/** One transaction for each object. Rejects where a key is there already, and where `owned` does not hold. */
export async function putObjects(
  client: EtcdClient,
  keys: EtcdKeys,
  values: EtcdValues,
  owned: Compare,
  objects: Iterable<CopiedObject>,
): Promise<void> {
  const left = objects[Symbol.iterator]()
  const work = async () => {
    for (let next = left.next(); !next.done; next = left.next()) {
      const { key: stored, body } = next.value
      const key = keys.of(stored)
      const { succeeded } = await client.call(methods.txn, {
        compare: [{ target: compareTarget.create, key, createRevision: 0 }, owned],
        success: [{ put: { key, value: values.encodeBody(stored, body) } }],
      })
      if (!succeeded) throw new Error(`${key} is in etcd already: another process writes below ${keys.prefix}`)
    }
  }
  await Promise.all(Array.from({ length: writesAtOnce }, work))
}

/** Every object at one revision, which it resolves with. */
export async function eachStoredObject(
  client: EtcdClient,
  keys: EtcdKeys,
  values: EtcdValues,
  take: (object: ReadObject) => void,
): Promise<number> {
  return readRange(client, keys.all, (page) => {
    for (const { key, value, modRevision } of page) {
      const parsed = keys.parse(key)
      if (parsed !== undefined) take({ key: parsed, body: values.bodyOf(parsed, value), version: modRevision })
    }
  })
}

/** Deletes the objects of a copy that was interrupted. Rejects where `owned` does not hold. */
export async function deleteObjects(client: EtcdClient, keys: EtcdKeys, owned: Compare): Promise<void> {
  const found: Buffer[] = []
  await readRange(client, keys.all, (page) => {
    for (const { key } of page) if (keys.parse(key) !== undefined) found.push(key)
  })
  for (const key of found) {
    const { succeeded } = await client.call(methods.txn, { compare: [owned], success: [{ deleteRange: { key } }] })
    if (!succeeded) throw new Error(`${key} was not deleted: another process uses ${keys.prefix} in etcd`)
  }
}

/** Adds objects in any order. */
export function copySummary() {
  const kinds = new Map<string, string[]>()
  return {
    add({ key: { resource, namespace, name }, body }: CopiedObject) {
      const lines = kinds.get(resource) ?? []
      if (lines.length === 0) kinds.set(resource, lines)
      lines.push(`${namespace}/${name} ${createHash('sha256').update(body).digest('hex')}`)
    },
    result: (): CopySummary =>
      new Map(
        [...kinds.keys()].sort().map((resource) => {
          const lines = kinds.get(resource)?.sort() ?? []
          return [resource, { count: lines.length, hash: createHash('sha256').update(lines.join('\n')).digest('hex') }]
        }),
      ),
  }
}

/** Throws where a kind has another count or another hash. */
export function verifyCopy(wanted: CopySummary, found: CopySummary): void {
  const nothing = { count: 0, hash: '' }
  for (const resource of new Set([...wanted.keys(), ...found.keys()])) {
    const [from, to] = [wanted.get(resource) ?? nothing, found.get(resource) ?? nothing]
    if (from.count === to.count && from.hash === to.hash) continue
    const what = from.count === to.count ? 'other content' : `${to.count} instead of ${from.count} objects`
    throw new Error(
      `The copy of ${resource} is not equal: it has ${what}. Nothing was changed where the objects are; repeat the command`,
    )
  }
}

/** The JSON of a stored object without its version, in one form for all stores. */
export function bodyWithoutVersion(body: string): string {
  const object: { readonly metadata?: { readonly resourceVersion?: unknown } } = JSON.parse(body)
  const { resourceVersion: _, ...metadata } = object.metadata ?? {}
  return JSON.stringify({ ...object, metadata })
}
