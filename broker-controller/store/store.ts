/**
 * The one meeting point of the control plane. Broker, controllers, scheduler and API write it and watch it and never
 * call each other, so a second store (etcd) is one new file that passes `testing/store-contract.ts`.
 */
import type { AnyObject, KubeObject, Stored } from '../../api/meta.ts'
import type { ResourceName, ResourceTypes } from '../../api/resources.ts'

export type StoredObject<R extends ResourceName> = ResourceTypes[R] & Stored<ResourceTypes[R] & KubeObject>

/** An object of any kind, as it comes out of the store. */
export type AnyStored = Stored<AnyObject>

/** Where an object is. `namespace` is '' for kinds that have none. */
export type ObjectKey = { readonly namespace: string; readonly name: string }

export type ObjectList<R extends ResourceName> = {
  readonly items: readonly StoredObject<R>[]
  /** The store's version at which this list was true: watch from here to miss nothing. */
  readonly resourceVersion: string
}

export type WatchEvent<R extends ResourceName> = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  /** For DELETED: the object as it last was, with the version of its deletion. */
  readonly object: StoredObject<R>
  /** The object before this change; undefined for ADDED. */
  readonly previous: StoredObject<R> | undefined
  readonly version: number
}

/** A place in the changes of one kind, for a reader that takes them without waiting. */
export interface ChangeCursor<Event> {
  /** The next change; undefined: there is none yet. Throws ApiError Expired as `Store.watch` does. */
  next(): Event | undefined
  /** The store is closed: no change follows. */
  readonly ended: boolean
  /**
   * Calls `listener` once, with the next change of the kind or at the end. It is called while changes are being made:
   * more of them may follow at once. Returns what cancels the call.
   */
  onReady(listener: () => void): () => void
}

export type Preconditions = { readonly uid?: string; readonly resourceVersion?: string }

/** Which store this is. An agent that hears of another than before tells it what it knows, where that one `learns`. */
export type StoreOrigin = {
  /** Made with the store, and anew when it is restored. */
  readonly id: string
  /** It began without what the fleet ran already: restored from a backup, or made anew beside the fleet's authority. */
  readonly learns: boolean
  /** Since when it is this store, where that is known: what nodes bring back was made before. */
  readonly sinceMs?: number
}

/**
 * Promises, kept by every store:
 * - One counter rises with every change of any kind; it is each object's `resourceVersion` and never runs backwards,
 *   also over a crash. Compare versions as integers.
 * - `create` gives uid, creationTimestamp, resourceVersion (and generation 1 where the kind counts it), keeping those
 *   that are given; throws ApiError AlreadyExists.
 * - `update` replaces the object whole. With `metadata.resourceVersion` it throws Conflict when that is not the
 *   present one; without, it overwrites. uid and creationTimestamp stay (another uid: Conflict). `generation` rises by one when the kind counts it
 *   and `spec` changed. Writing what is there already changes nothing: same version, no event. NotFound when absent.
 * - `updateStatus` replaces `status` only, by the same rules, and never touches `generation`.
 * - `delete` removes at once; finalizers and grace are the API's business. NotFound, Conflict on a precondition.
 * - An answer of create, update or delete is durable. Statuses and events are written together, at the latest after
 *   `statusDelayMs`, and the answer waits for it. Leases are kept in memory only, and so is a new `lastHeartbeatTime` of a
 *   node until something else of it changes.
 * - Objects handed out are frozen: replace, never change.
 */
export interface Store {
  get<R extends ResourceName>(resource: R, key: ObjectKey): Promise<StoredObject<R> | undefined>
  list<R extends ResourceName>(resource: R, namespace?: string): Promise<ObjectList<R>>
  /** The pods that are bound to this node, in no order: at the cost of those, not of all pods. */
  podsOfNode(nodeName: string): Promise<readonly StoredObject<'pods'>[]>
  create<R extends ResourceName>(resource: R, object: ResourceTypes[R]): Promise<StoredObject<R>>
  update<R extends ResourceName>(resource: R, object: ResourceTypes[R]): Promise<StoredObject<R>>
  updateStatus<R extends ResourceName>(resource: R, object: ResourceTypes[R]): Promise<StoredObject<R>>
  delete<R extends ResourceName>(resource: R, key: ObjectKey, preconditions?: Preconditions): Promise<StoredObject<R>>
  /**
   * Changes of one kind after `from` (a resourceVersion; omitted: from now on), in order, until `signal` aborts (the
   * iteration then ends without an error). Throws ApiError Expired when `from` is older than what is remembered, or
   * when the reader falls further behind than that.
   */
  watch<R extends ResourceName>(
    resource: R,
    from: string | undefined,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<R>>
  /** The same changes, for a reader that takes all that are ready at once. */
  changes<R extends ResourceName>(resource: R, from: string): ChangeCursor<WatchEvent<R>>
  /** The version of the last change of any kind. */
  version(): Promise<string>
  /** Writes what is waiting, and lets go of the files. */
  close(): Promise<void>
}
