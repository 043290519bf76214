/** What happens in a world, as the invariants see it. */

export type ObjectName = { readonly resource: string; readonly namespace: string; readonly name: string }

export type StoredBody = ObjectName & { readonly version: number; readonly body: string }

/** A container that is not a sandbox. */
export type ContainerName = {
  readonly node: string
  readonly pod: string
  readonly podUID: string
  readonly container: string
  readonly id: string
}

export type Fact =
  | ({ readonly kind: 'started' } & ContainerName)
  | ({ readonly kind: 'ended'; readonly exitCode: number } & ContainerName)
  /** It has the volume of a claim, whose data has this name. */
  | ({
      readonly kind: 'used'
      readonly claim: string
      readonly claimUID: string
      readonly data: string
    } & ContainerName)
  /** Where the data of a claim is now. */
  | { readonly kind: 'data'; readonly node: string; readonly data: string; readonly place: 'volume' | 'trash' | 'gone' }
  /** A person asks that the claim and its data are deleted. */
  | { readonly kind: 'asked'; readonly claimUID: string }
  /** A person deletes the pod without waiting for its node. */
  | { readonly kind: 'forced'; readonly podUID: string }
  /** The system of the machine is installed again: only its volumes are left. */
  | { readonly kind: 'reinstalled'; readonly node: string }
  /** A person has removed it from Docker. */
  | ({ readonly kind: 'forgotten' } & ContainerName)
  /** One of several controllers changed it in the store, while this one was the leader by the store. */
  | ({ readonly kind: 'wrote'; readonly controller: string; readonly leader: string | undefined } & ObjectName)
  /** The store has it on its disk, as JSON. undefined: it was deleted. */
  | ({ readonly kind: 'stored'; readonly version: number; readonly body: string | undefined } & ObjectName)
  /** The store was replaced by a backup, which has these objects. */
  | {
      readonly kind: 'restored'
      readonly rows: readonly StoredBody[]
      /** What is written from now on has a later version than this, and what was written before does not. */
      readonly version: number
    }
  /** A client was answered that it is written; a deletion has the version before it. */
  | ({ readonly kind: 'answered'; readonly version: number; readonly uid: string } & ObjectName)
  /** A client was answered that it is deleted, or was not there. */
  | ({ readonly kind: 'removed' } & ObjectName)
  /** A client has read it in this version. undefined: it is not there, or is being deleted. */
  | ({ readonly kind: 'read'; readonly version: number | undefined } & ObjectName)
  /** A client of a watch begins with this version, which it has from a list with these objects. */
  | { readonly kind: 'listed'; readonly resource: string; readonly version: number; readonly uids: readonly string[] }
  | ({ readonly kind: 'watched'; readonly version: number; readonly type: string; readonly uid: string } & ObjectName)
  /** The broker sends a message to the node. */
  | { readonly kind: 'delivered'; readonly node: string; readonly body: string }
  /** The controller marked the pod for deletion because of its node. */
  | { readonly kind: 'evicted'; readonly node: string; readonly pod: string }
  /** Whether nothing is wrong with the node, and it reaches the machine of the controller and is reached. */
  | {
      readonly kind: 'health'
      readonly node: string
      readonly isHealthy: boolean
      /** Besides, its disk takes writes at once. */
      readonly canSave: boolean
    }
  /** A fault begins: the number in its order, what it is, and of what. */
  | {
      readonly kind: 'fault'
      readonly number: number
      readonly what: string
      readonly target: string
      readonly seconds: number
    }
  /** A program ended by itself. */
  | { readonly kind: 'crashed'; readonly program: string; readonly because: string }

export type TimedFact = Fact & { readonly atMs: number }
