/**
 * The meeting point of the control plane. Broker, controllers, scheduler and API write to the store and watch it, and never
 * call each other.
 *
 * A second store, such as etcd, is a function that returns an `OpenedStore`, and a line in `open-store.ts`. It passes
 * `testing/store-contract.ts`, and `testing/store-connection-contract.ts` if it can lose its server. A store that keeps a cache of
 * all objects in memory writes a `ChangeWriter` (`cached-store.ts`) and nothing else.
 */
import { ApiError, isApiError, type StatusDetails, type StatusReason } from '../../api/api-error.ts'
import type { AnyObject, KubeObject, Stored } from '../../api/meta.ts'
import type { ResourceName, ResourceTypes } from '../../api/resources.ts'
import type { MetricFamily } from '../../daemon/prometheus-text.ts'
import type { Loop } from '../../daemon/run.ts'
import type { ControllerRegistry } from './controllers.ts'
import type { Election, Freshness } from './election/election.ts'

export type StoredObject<R extends ResourceName> = ResourceTypes[R] & Stored<ResourceTypes[R] & KubeObject>

export type StoredPod = StoredObject<'pods'>

/** An object of any kind, as it comes out of the store. */
export type AnyStored = Stored<AnyObject>

/** The key of an object. `namespace` is '' for kinds that have none. */
export type ObjectKey = { readonly namespace: string; readonly name: string }

export type ObjectList<R extends ResourceName> = {
  readonly items: readonly StoredObject<R>[]
  /** The store's version of this list: a watch from here misses nothing. */
  readonly resourceVersion: string
}

export type WatchEvent<R extends ResourceName> = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  /** For DELETED: the last object, with the version of its deletion. */
  readonly object: StoredObject<R>
  /** The object before this change; undefined for ADDED. */
  readonly previous: StoredObject<R> | undefined
  readonly version: number
}

/** A position in the changes of one kind, for a reader that takes them without waiting. */
export interface ChangeCursor<Event> {
  /** The next change; undefined: there is none here yet. Throws ApiError Expired as `Store.watch` does, maybe not at the first call. */
  next(): Event | undefined
  /** The store is closed: no change follows. */
  readonly ended: boolean
  /** Changes were made that `next` does not have yet; undefined: it has all of them. */
  readonly isBehind?: boolean
  /**
   * Calls `listener` once, when `next` has a change or an error, or at the end. It is called while changes are being made:
   * more of them may follow at once. Returns a function that cancels the call.
   */
  onReady(listener: () => void): () => void
}

export type Preconditions = { readonly uid?: string; readonly resourceVersion?: string }

/** Effect of a write that changes the version of an object on its generation, which counts changes of meaning: the store cannot compare versions. */
export type GenerationChange = 'kept' | 'raised'

/** The identity of a store. An agent that finds another store than before sends its checkpoint to one that accepts checkpoints. */
export type StoreOrigin = {
  /** Made with the store; a restored store gets a new one. */
  readonly id: string
  /** The store began without the objects of a running fleet: restored from a backup, or created beside an existing authority. */
  readonly acceptsCheckpoints: boolean
  /** Begin of the store's identity, if known. Objects that nodes bring back were made before. */
  readonly sinceMs?: number
}

/** The files of the authority's folder, by name. They hold its key. */
export type AuthorityFiles = ReadonlyMap<string, Uint8Array>

/** What a backup holds beside the objects. `made`: RFC 3339; `version`: of this program. `authority` is read after the objects. */
export type BackupContents = {
  readonly made: string
  readonly version: string
  readonly authority: () => Promise<AuthorityFiles>
}

/**
 * Writes a backup to a new file with mode 0600: every answered write, and `contents`. Writers and readers do not wait for it.
 * Rejects if the file exists or cannot be written.
 */
export type BackUp = (path: string, contents: BackupContents) => Promise<void>

/** What opening a store returns. */
export type OpenedStore = {
  readonly store: Store
  readonly origin: StoreOrigin
  /** undefined: the store is backed up with its own tools; the admin socket then answers with an error. */
  readonly backUp?: BackUp
  /** Encrypts all Secrets with another key, and returns its ID. undefined: the store does not encrypt them itself. */
  readonly rotateSecretsKey?: () => Promise<string>
  /** Rejects with SecretsKeyError where Secrets need a key that this process does not have. undefined: as `rotateSecretsKey`, and of a file. */
  readonly verifySecretsKey?: () => Promise<void>
  /** Rejects when another process has taken the store. undefined: none can. */
  readonly guard?: Loop
  /** Election among several controllers on one store; undefined: this one always leads. */
  readonly election?: Election
  /** Freshness of a store that follows others; undefined: what is read is always the latest. */
  readonly freshness?: Freshness
  /** The controllers that share the store. */
  readonly controllers?: ControllerRegistry
  /** Why writes are not answered now, for readiness. undefined: the store has nothing that could be missing. */
  readonly problems?: () => Promise<readonly string[]>
  /** What its operator has to do in time. undefined: nothing. */
  readonly upkeep?: StoreUpkeep
}

/** Follows, while it runs, what would end the writes of a store if its operator did nothing. */
export interface StoreUpkeep extends Loop {
  /** What to do now, and why. Writes are still answered. */
  warnings(): readonly string[]
  metrics(): Iterable<MetricFamily>
}

/** Another process has the store open. */
export class StoreInUseError extends Error {
  override readonly name = 'StoreInUseError'
}

/** Growth is refused until an operator frees space, or every write; reads are answered. The message has a remedy. */
export class StoreFullError extends ApiError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super('InsufficientStorage', message, undefined, options)
  }
}

/** Growth is refused in one namespace until objects of it are deleted; reads are answered. */
export class NamespaceFullError extends ApiError {
  constructor(message: string, details: StatusDetails) {
    super('Forbidden', message, details)
  }
}

/** Whether a write was refused for want of room: it may succeed once objects were deleted. */
export function isWithoutRoom(error: unknown): error is ApiError {
  return error instanceof StoreFullError || error instanceof NamespaceFullError
}

const failures: readonly StatusReason[] = ['InternalError', 'Timeout', 'ServiceUnavailable']

/** Whether the store took no write, whichever it was: its disk fails or is full, or etcd does not answer. */
export function isStoreFailure(error: unknown): boolean {
  return error instanceof StoreFullError || (isApiError(error) && failures.includes(error.reason))
}

/** A later version of the program wrote the store. The message has a remedy; a retry does not help. */
export class LaterStoreError extends Error {
  override readonly name = 'LaterStoreError'
}

/**
 * The store has an earlier format, which this version must not or could not change. The message has a remedy; a retry does not help.
 */
export class EarlierStoreError extends Error {
  override readonly name = 'EarlierStoreError'
}

/** The keys that encrypt Secrets are missing, or are others. The message names the file and a remedy; a retry does not help. */
export class SecretsKeyError extends Error {
  override readonly name = 'SecretsKeyError'
}

/**
 * Guarantees of every store:
 * - One counter rises with every change of any kind; that of leases, which may be kept in memory only, may be another one. It is
 *   each object's `resourceVersion` and never runs backwards, also after a crash. Compare versions of one kind, as integers. The store assigns a version when it writes; it is visible only then.
 * - `create` sets uid, creationTimestamp, resourceVersion (and generation 1 if the kind counts it); a given uid or
 *   creationTimestamp stays. Throws ApiError AlreadyExists.
 * - `update` replaces the whole object. With `metadata.resourceVersion` it throws Conflict if that is not the present
 *   version; without, it overwrites. uid and creationTimestamp stay (another uid: Conflict). `generation` rises by one if the
 *   kind counts it and `spec` changed, or as `generation` states. An update that changes nothing has no event and no new version. NotFound if absent.
 * - `updateStatus` replaces `status` only, by the same rules, and never changes `generation`.
 * - `delete` removes at once; finalizers and grace periods are the API's. NotFound; Conflict on a precondition.
 * - An answer of create, update or delete is durable. Statuses and events are written together after at most
 *   `statusDelayMs`, and the answer waits for it. Leases may be kept in memory only, and so may a new `lastHeartbeatTime` of a
 *   node until another field of it changes.
 * - A write that was answered is visible to `get` and `list` of the same store, and watches receive it soon after. After a
 *   Conflict or AlreadyExists the object that caused it is visible, too. Writes of other programs become visible in their order.
 * - An error means that nothing changed, with one exception: after Timeout the write may have happened or may still happen. Then
 *   read again, or repeat the write with the same resourceVersion. Without a connection to its server a store throws
 *   ServiceUnavailable, and works again when the connection is back.
 * - Objects are compared by value: two reads of one version may return different objects. They are frozen.
 */
export interface Store {
  get<R extends ResourceName>(resource: R, key: ObjectKey): Promise<StoredObject<R> | undefined>
  list<R extends ResourceName>(resource: R, namespace?: string): Promise<ObjectList<R>>
  /** The pods that are bound to this node, in no order. The cost is that of these pods, not of all pods. */
  podsOfNode(nodeName: string): Promise<readonly StoredObject<'pods'>[]>
  create<R extends ResourceName>(resource: R, object: ResourceTypes[R]): Promise<StoredObject<R>>
  update<R extends ResourceName>(
    resource: R,
    object: ResourceTypes[R],
    generation?: GenerationChange,
  ): Promise<StoredObject<R>>
  updateStatus<R extends ResourceName>(resource: R, object: ResourceTypes[R]): Promise<StoredObject<R>>
  delete<R extends ResourceName>(resource: R, key: ObjectKey, preconditions?: Preconditions): Promise<StoredObject<R>>
  /**
   * Changes of one kind after `from` (a resourceVersion; omitted: from now on), in order, until `signal` aborts (the
   * iteration then ends without an error) or the store is closed. Throws ApiError Expired if `from` is older than the
   * changes that are kept, or was not given yet, and if the reader falls further behind than that: never is a change left
   * out. A lost connection is not seen here: the watch continues when it is back.
   */
  watch<R extends ResourceName>(
    resource: R,
    from: string | undefined,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<R>>
  /** The same changes, for a reader that takes all that are ready at once. */
  changes<R extends ResourceName>(resource: R, from: string): ChangeCursor<WatchEvent<R>>
  /** The version of the last change of this kind, or of a kind that shares its counter; undefined: of all that is not in memory only. */
  version(resource?: ResourceName): Promise<string>
  /** Writes what is waiting, and closes files and connections. Writes are refused with ServiceUnavailable from then on. */
  close(): Promise<void>
}
