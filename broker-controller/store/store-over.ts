/** The store's face over an image: reads come from the image, writes are decided here and kept by a keeper. */
import { randomUUID } from 'node:crypto'
import { ApiError } from '../../api/api-error.ts'
import type { ResourceName, ResourceTypes } from '../../api/resources.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import {
  type Change,
  created,
  deleted,
  type GivenObject,
  type KeptObject,
  keyOf,
  statusUpdated,
  updated,
} from './changes.ts'
import type { ObjectImage } from './object-image.ts'
import type { ObjectKey, Store, StoredObject, WatchEvent } from './store.ts'

/** How changes are kept. What is not kept yet is seen by the next write, and by no reader. */
export interface Keeper {
  /** The next version. Never given twice. */
  nextVersion(): number
  /** The object the next write must reckon with: one about to be kept, or the image's. */
  present(resource: ResourceName, key: ObjectKey): KeptObject | undefined
  /** Resolves when the change is kept and in the image. Rejects when it could not be kept; then it never was. */
  keep(resource: ResourceName, change: Change, what: 'whole' | 'status'): Promise<void>
  /** Resolves when nothing is left to keep of what `present` gave. */
  settled(resource: ResourceName, key: ObjectKey): Promise<void>
  /** Up to this version every change (of this kind) is in the image. */
  visibleVersion(resource?: ResourceName): number
  close(): Promise<void>
}

export type FaceNeeds = {
  readonly image: ObjectImage
  readonly keeper: Keeper
  readonly clock: Clock
  readonly random?: () => number
}

export function storeOver({ image, keeper, clock, random }: FaceNeeds): Store {
  let closed = false
  const stamp = {
    version: () => keeper.nextVersion(),
    uid: () => (random === undefined ? randomUUID() : uuidOf(random)),
    now: () => rfc3339(clock.wallMs()),
  }
  const open = () => {
    if (closed) throw new ApiError('ServiceUnavailable', 'The store is closed')
  }
  const present = (resource: ResourceName, object: GivenObject) =>
    keeper.present(resource, keyOf(resource, object.metadata))
  const keep = async <R extends ResourceName>(resource: R, change: Change, what: 'whole' | 'status' = 'whole') => {
    await keeper.keep(resource, change, what)
    return change.object as StoredObject<R>
  }
  const unchanged = async <R extends ResourceName>(resource: R, before: KeptObject | undefined) => {
    if (before !== undefined) await keeper.settled(resource, keyOf(resource, before.metadata))
    return before as StoredObject<R>
  }

  return {
    async get<R extends ResourceName>(resource: R, key: ObjectKey) {
      return image.get(resource, key) as StoredObject<R> | undefined
    },
    async list<R extends ResourceName>(resource: R, namespace?: string) {
      const items = image.list(resource, namespace) as readonly StoredObject<R>[]
      return { items, resourceVersion: String(keeper.visibleVersion(resource)) }
    },
    async create(resource, object) {
      open()
      return keep(resource, created(resource, present(resource, object), object, stamp))
    },
    async update<R extends ResourceName>(resource: R, object: ResourceTypes[R]) {
      open()
      const before = present(resource, object)
      const change = updated(resource, before, object, stamp)
      return change === undefined ? unchanged(resource, before) : keep(resource, change)
    },
    async updateStatus<R extends ResourceName>(resource: R, object: ResourceTypes[R]) {
      open()
      const before = present(resource, object)
      const change = statusUpdated(resource, before, object, stamp)
      return change === undefined ? unchanged(resource, before) : keep(resource, change, 'status')
    },
    async delete(resource, key, preconditions = {}) {
      open()
      return keep(resource, deleted(resource, keeper.present(resource, key), key, preconditions, stamp))
    },
    watch<R extends ResourceName>(resource: R, from: string | undefined, signal: AbortSignal) {
      const version = from === undefined ? keeper.visibleVersion(resource) : Number(from)
      return image.watch(resource, version, signal) as unknown as AsyncIterable<WatchEvent<R>>
    },
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
