/** Finalizers: names that hold an object that is being deleted. Pure. */
import type { ObjectMeta } from '../meta.ts'

type Held = { readonly metadata: ObjectMeta }

/** The very same object if it has the finalizer. */
export function withFinalizer<O extends Held>(object: O, finalizer: string): O {
  const { finalizers = [] } = object.metadata
  if (finalizers.includes(finalizer)) return object
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers, finalizer] } }
}

/** undefined: it does not have the finalizer. */
export function withoutFinalizer<O extends Held>(object: O, finalizer: string): O | undefined {
  const { finalizers: present = [], ...metadata } = object.metadata
  if (!present.includes(finalizer)) return undefined
  const finalizers = present.filter((name) => name !== finalizer)
  return { ...object, metadata: { ...metadata, ...(finalizers.length > 0 && { finalizers }) } }
}
