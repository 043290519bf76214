/** Reads all keys of a range, in pages at one revision. */
import type { EtcdClient } from './etcd-client.ts'
import { type KeyValue, methods } from './etcd-messages.ts'

export type KeyRange = { readonly key: Buffer; readonly rangeEnd: Buffer }

/** Bytes of a page to aim at: less than 100 ms to read and decode. */
const pageBytes = 1024 * 1024
/** Keys of the first page, whose objects may all be large. */
const firstPageKeys = 50
const mostPageKeys = 500
const pageDeadlineMs = 10_000

/**
 * Calls `take` for each page, in the order of the keys. Resolves with the revision that all pages have. Rejects with EtcdError; with
 * one of a compacted revision where reading took longer than etcd keeps it.
 */
export async function readRange(
  client: EtcdClient,
  { key, rangeEnd }: KeyRange,
  take: (page: readonly KeyValue[]) => void | Promise<void>,
): Promise<number> {
  let from = key
  let limit = firstPageKeys
  let revision = 0
  for (;;) {
    const request = { key: from, rangeEnd, limit, revision }
    const { header, kvs, more } = await client.call(methods.range, request, pageDeadlineMs)
    if (revision === 0) revision = header?.revision ?? 0
    await take(kvs)
    const last = kvs.at(-1)
    if (!more || last === undefined) return revision
    from = Buffer.concat([last.key, Buffer.of(0)])
    const bytes = kvs.reduce((sum, { value }) => sum + value.length, 0)
    limit = Math.max(1, Math.min(mostPageKeys, Math.floor((pageBytes * kvs.length) / Math.max(bytes, 1))))
  }
}
