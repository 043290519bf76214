/** Objects that extension servers hold, as far as they own others or are owned. */
import type { OwnerReference } from '../meta.ts'
import type { GroupVersion } from './group-order.ts'

/** A kind of an extension server, in one of its versions. */
export type ExtensionKind = GroupVersion & {
  /** The plural in a path. */
  readonly resource: string
  readonly kind: string
  readonly namespaced: boolean
}

export type ExtensionObject = {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid: string
    readonly resourceVersion: string
    readonly deletionTimestamp?: string
    readonly finalizers?: readonly string[]
    readonly ownerReferences?: readonly OwnerReference[]
  }
}

/** One line of a watch of them. `BOOKMARK`: its object has a resourceVersion only. */
export type ExtensionEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: ExtensionObject }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }
