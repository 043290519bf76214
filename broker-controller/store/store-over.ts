/** The store's face over an image: reads come from the image, writes are decided here and kept by a keeper. */
import { randomUUID } from 'node:crypto'
import { ApiError } from '../../api/api-error.ts'
import type { Resource, ResourceName, ResourceRegistry } from '../../api/resources.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { type Change, created, deleted, type KeptObject, keyOf, statusUpdated, updated } from './changes.ts'
import { eachChange } from './each-change.ts'
import type { ObjectImage } from './object-image.ts'
import type { ChangeCursor, ObjectKey, Store, StoredObject, WatchEvent } from './store.ts'

/** How changes are kept. What is not kept yet is seen by the next write, and by no reader. */
export interface Keeper {
  /** The next version. Never given twice. */
  nextVersion(): number
  /** The object the next write must reckon with: one about to be kept, or the image's. */
  present(resource: ResourceName, key: ObjectKey): KeptObject | undefined
  /** Resolves when the change is kept and in the image. Rejects when it could not be kept; then it never was. */
  keep(resource: ResourceName, change: Change, what: 'whole' | 'status'): Promise<void>
  /** Makes haste with what is left to keep of this object; resolves when readers see what `present` gave. */
  settled(resource: ResourceName, key: ObjectKey): Promise<void>
  /** Up to this version every change (of this kind) is in the image. */
  visibleVersion(resource?: ResourceName): number
  close(): Promise<void>
}

export type FaceNeeds = {
  readonly resources: ResourceRegistry
  readonly image: ObjectImage
  readonly keeper: Keeper
  readonly clock: Clock
  readonly random?: () => number
}

export function storeOver({ resources, image, keeper, clock, random }: FaceNeeds): Store {
  let closed = false
  const rowOf = (id: ResourceName): Resource => {
    const row = resources.get(id)
    if (row === undefined) throw new TypeError(`No such resource: ${id}`)
    return row
  }
  const stamp = {
    version: () => keeper.nextVersion(),
    uid: () => (random === undefined ? randomUUID() : uuidOf(random)),
    now: () => rfc3339(clock.wallMs()),
  }
  /**
   * Decides on what the next write must reckon with, and keeps it. Whoever is told "no" or "nothing new" because of a
   * change that is still being kept hears it when that change can be read: reading again and trying again then works.
   */
  const write = async <R extends ResourceName>(
    resource: R,
    key: ObjectKey,
    decide: (present: KeptObject | undefined) => Change | undefined,
    what: 'whole' | 'status' = 'whole',
  ): Promise<StoredObject<R>> => {
    if (closed) throw new ApiError('ServiceUnavailable', 'The store is closed', { retryAfterSeconds: 1 })
    const present = keeper.present(resource, key)
    let change: Change | undefined
    try {
      change = decide(present)
    } catch (error) {
      await keeper.settled(resource, key)
      throw error
    }
    if (change === undefined) await keeper.settled(resource, key)
    else await keeper.keep(resource, change, what)
    return (change?.object ?? present) as StoredObject<R>
  }

  const changesOf = <R extends ResourceName>(resource: R, from: number) =>
    image.changes(resource, from) as unknown as ChangeCursor<WatchEvent<R>>

  return {
    async get<R extends ResourceName>(resource: R, key: ObjectKey) {
      return image.get(resource, key) as StoredObject<R> | undefined
    },
    async list<R extends ResourceName>(resource: R, namespace?: string) {
      const items = image.list(resource, namespace) as readonly StoredObject<R>[]
      return { items, resourceVersion: String(keeper.visibleVersion(resource)) }
    },
    podsOfNode: async (nodeName) => image.podsOf(nodeName) as readonly StoredObject<'pods'>[],
    async create(resource, object) {
      const row = rowOf(resource)
      const key = keyOf(row, object.metadata)
      return write(resource, key, (present) => created(row, present, object, stamp))
    },
    async update(resource, object) {
      const row = rowOf(resource)
      const key = keyOf(row, object.metadata)
      return write(resource, key, (present) => updated(row, present, object, stamp))
    },
    async updateStatus(resource, object) {
      const row = rowOf(resource)
      const key = keyOf(row, object.metadata)
      return write(resource, key, (present) => statusUpdated(row, present, object, stamp), 'status')
    },
    async delete(resource, key, preconditions = {}) {
      const row = rowOf(resource)
      return write(resource, key, (present) => deleted(row, present, key, preconditions, stamp))
    },
    watch<R extends ResourceName>(resource: R, from: string | undefined, signal: AbortSignal) {
      const version = from === undefined ? keeper.visibleVersion(resource) : Number(from)
      return eachChange(changesOf(resource, version), signal)
    },
    changes: (resource, from) => changesOf(resource, Number(from)),
    version: async () => String(keeper.visibleVersion()),
    async close() {
      if (closed) return
      closed = true
      await keeper.close()
      image.close()
    },
  }
}

/** A version 4 UUID made of the given randomness. */
function uuidOf(random: () => number): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16))
  hex[12] = '4'
  hex[16] = ((Number.parseInt(hex[16] ?? '0', 16) & 3) | 8).toString(16)
  return hex.join('').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
