/** What the garbage collector reads and writes of objects that extension servers hold. */
import type { ExtensionEvent, ExtensionKind, ExtensionObject } from '../../../api/registration/extension-object.ts'
import type { ObjectKey } from '../../store/store.ts'

export interface ExtensionObjects {
  /** Kinds that can be listed, watched and deleted, each in one version. A server that does not answer keeps those that it had. */
  kinds(): readonly ExtensionKind[]
  /** Called when kinds may have changed. Returns how to stop that. */
  onChange(listener: () => void): () => void
  /** Whether an extension server stands for this `group/version`, also while it does not answer. */
  serves(apiVersion: string): boolean
  /** undefined: its server has no such kind. Throws where that is unknown, since the server does not answer. */
  kindOf(apiVersion: string, kind: string): ExtensionKind | undefined
  list(kind: ExtensionKind, signal: AbortSignal): Promise<ExtensionObjectList>
  /** Resolves when the server ends it. Rejects with the ApiError Expired where the objects have to be listed again. */
  watch(kind: ExtensionKind, watching: ExtensionWatch, signal: AbortSignal): Promise<void>
  /** undefined: its server states that there is none. Rejects where that is unknown. */
  get(kind: ExtensionKind, key: ObjectKey, signal: AbortSignal): Promise<ExtensionObject | undefined>
  /** Deletes this very object; none is there afterwards, or it waits for its finalizers. */
  remove(kind: ExtensionKind, object: ExtensionObject, propagationPolicy: string, signal: AbortSignal): Promise<void>
  /** Replaces these lists in this version of the object. Rejects with the ApiError Conflict where there is a newer one. */
  patch(kind: ExtensionKind, object: ExtensionObject, lists: ExtensionLists, signal: AbortSignal): Promise<void>
}

export type ExtensionObjectList = { readonly items: readonly ExtensionObject[]; readonly resourceVersion: string }

export type ExtensionWatch = {
  readonly resourceVersion: string
  readonly take: (event: ExtensionEvent) => void
}

export type ExtensionLists = Partial<Pick<ExtensionObject['metadata'], 'finalizers' | 'ownerReferences'>>
