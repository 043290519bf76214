/** What a write makes of an object: every store decides it here, so they cannot differ. */
import { ApiError, alreadyExists, conflict, notFound } from '../../api/api-error.ts'
import type { AnyObject, ObjectMeta, Stored } from '../../api/meta.ts'
import type { Resource } from '../../api/resources.ts'
import { equalJSON } from './equal-json.ts'
import { frozenCopy } from './frozen-copy.ts'
import type { ObjectKey, Preconditions } from './store.ts'

/** An object of any kind as a store keeps it. */
export type KeptObject = Stored<AnyObject>

export type Change = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KeptObject
  readonly previous: KeptObject | undefined
  readonly version: number
}

/** What a new object or version is stamped with. The version is taken only when there is something to stamp. */
export type Stamp = { readonly version: () => number; readonly uid: () => string; readonly now: () => string }

export function created(resource: Resource, present: KeptObject | undefined, object: AnyObject, stamp: Stamp): Change {
  const { name } = keyOf(resource, object.metadata)
  if (present !== undefined) throw alreadyExists(resource, name)
  const version = stamp.version()
  const metadata = {
    ...object.metadata,
    name,
    uid: object.metadata.uid ?? stamp.uid(),
    resourceVersion: String(version),
    creationTimestamp: object.metadata.creationTimestamp ?? stamp.now(),
    ...(resource.counted && { generation: object.metadata.generation ?? 1 }),
  }
  return { type: 'ADDED', object: frozenCopy({ ...object, metadata }), previous: undefined, version }
}

/** The object whole; undefined when it says nothing new. */
export function updated(
  resource: Resource,
  present: KeptObject | undefined,
  object: AnyObject,
  stamp: Stamp,
): Change | undefined {
  const before = accepting(resource, present, keyOf(resource, object.metadata).name, object.metadata)
  const { uid, resourceVersion, creationTimestamp, generation } = before.metadata
  const kept = { uid, resourceVersion, creationTimestamp, ...(generation !== undefined && { generation }) }
  const { generation: _, ...metadata } = object.metadata
  const wanted = frozenCopy({ ...object, metadata: { ...metadata, name: before.metadata.name, ...kept } })
  if (equalJSON(wanted, before)) return undefined
  const counts = resource.counted && !equalJSON(wanted.spec, before.spec)
  return modified(before, counts ? { ...wanted, metadata: withGeneration(wanted.metadata) } : wanted, stamp)
}

/** The status only; undefined when it says nothing new. */
export function statusUpdated(
  resource: Resource,
  present: KeptObject | undefined,
  object: AnyObject,
  stamp: Stamp,
): Change | undefined {
  const before = accepting(resource, present, keyOf(resource, object.metadata).name, object.metadata)
  const status = frozenCopy(object.status)
  if (equalJSON(status, before.status)) return undefined
  return modified(before, { ...before, status }, stamp)
}

export function deleted(
  resource: Resource,
  present: KeptObject | undefined,
  key: ObjectKey,
  preconditions: Preconditions,
  stamp: Stamp,
): Change {
  const before = accepting(resource, present, key.name, preconditions)
  return { ...modified(before, before, stamp), type: 'DELETED' }
}

/** Where an object belongs. Throws BadRequest when it does not say. */
export function keyOf(resource: Resource, metadata: ObjectMeta): ObjectKey {
  const { name = '', namespace = '' } = metadata
  if (name === '') throw new ApiError('BadRequest', `${resource.id}: metadata.name is missing`)
  if (!resource.namespaced) return { namespace: '', name }
  if (namespace === '') throw new ApiError('BadRequest', `${resource.id} "${name}": metadata.namespace is missing`)
  return { namespace, name }
}

function accepting(
  resource: Resource,
  present: KeptObject | undefined,
  name: string,
  { uid, resourceVersion }: Preconditions,
): KeptObject {
  if (present === undefined) throw notFound(resource, name)
  if (uid !== undefined && uid !== present.metadata.uid) {
    const because = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${present.metadata.uid}`
    throw conflict(resource, name, because)
  }
  if (resourceVersion !== undefined && resourceVersion !== present.metadata.resourceVersion) {
    throw conflict(resource, name)
  }
  return present
}

function modified(previous: KeptObject, wanted: KeptObject, stamp: Stamp): Change {
  const version = stamp.version()
  const metadata = { ...wanted.metadata, resourceVersion: String(version) }
  return { type: 'MODIFIED', object: frozenCopy({ ...wanted, metadata }), previous, version }
}

function withGeneration(metadata: KeptObject['metadata']): KeptObject['metadata'] {
  return { ...metadata, generation: (metadata.generation ?? 1) + 1 }
}
