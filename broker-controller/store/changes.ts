/** The rules of a write, shared by all stores: from the present object and the request to the change, or an ApiError. */
import { ApiError, alreadyExists, conflict, notFound } from '../../api/api-error.ts'
import type { AnyObject, ObjectMeta, Stored } from '../../api/meta.ts'
import type { Resource } from '../../api/resources.ts'
import { equalJSON } from './equal-json.ts'
import { frozenCopy } from './frozen/frozen-copy.ts'
import type { GenerationChange, ObjectKey, Preconditions } from './store.ts'

/** An object of any kind as a store keeps it. */
export type AnyStoredObject = Stored<AnyObject>

export type Change = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: AnyStoredObject
  readonly previous: AnyStoredObject | undefined
  readonly version: number
}

/** A change that is decided, but not written. Its object has the version before the change; '' where there was none. */
export type DraftChange = Omit<Change, 'version'>

/** The uid and creation time of a new object. */
export type Stamp = { readonly uid: () => string; readonly now: () => string }

/** The change as it is written: its object has the version that the store gave to it. */
export function withVersion({ type, object, previous }: DraftChange, version: number): Change {
  const metadata = { ...object.metadata, resourceVersion: String(version) }
  return { type, object: frozenCopy({ ...object, metadata }), previous, version }
}

/** Throws AlreadyExists where there is a present object. */
export function created(
  resource: Resource,
  present: AnyStoredObject | undefined,
  object: AnyObject,
  stamp: Stamp,
): DraftChange {
  const { name } = keyOf(resource, object.metadata)
  if (present !== undefined) throw alreadyExists(resource, name)
  const metadata = {
    ...object.metadata,
    name,
    uid: object.metadata.uid ?? stamp.uid(),
    resourceVersion: '',
    creationTimestamp: object.metadata.creationTimestamp ?? stamp.now(),
    ...(resource.counted && { generation: object.metadata.generation ?? 1 }),
  }
  return { type: 'ADDED', object: { ...object, metadata }, previous: undefined }
}

/** Replaces the whole object; undefined if nothing changes. `change` undefined: as the content changes. Throws NotFound, Conflict. */
export function updated(
  resource: Resource,
  present: AnyStoredObject | undefined,
  object: AnyObject,
  change?: GenerationChange,
): DraftChange | undefined {
  const before = accepting(resource, present, keyOf(resource, object.metadata).name, object.metadata)
  const { uid, resourceVersion, creationTimestamp, generation } = before.metadata
  const kept = { uid, resourceVersion, creationTimestamp, ...(generation !== undefined && { generation }) }
  const { generation: _, ...metadata } = object.metadata
  const wanted = frozenCopy({ ...object, metadata: { ...metadata, name: before.metadata.name, ...kept } })
  if (equalJSON(wanted, before)) return undefined
  const counts = change === undefined ? isChangeCounted(resource, before, wanted) : change === 'raised'
  return modified(before, counts ? { ...wanted, metadata: withGeneration(wanted.metadata) } : wanted)
}

/** Whether the generation counts this change of an object. Both have the same version. */
export function isChangeCounted(
  { counted, countsStatus }: Pick<Resource, 'counted' | 'countsStatus'>,
  before: AnyObject,
  after: AnyObject,
): boolean {
  const hasSameStatus = !countsStatus || equalJSON(after.status, before.status)
  return counted && !(hasSameStatus && equalJSON(contentOf(after), contentOf(before)))
}

/** Most kinds have it in `spec`; webhook configurations and EndpointSlices have it in fields of their own. */
function contentOf({
  apiVersion: _apiVersion,
  kind: _kind,
  metadata: _metadata,
  status: _status,
  ...content
}: AnyObject) {
  return content
}

/** Replaces the status only; undefined if nothing changes. Throws NotFound, Conflict. */
export function statusUpdated(
  resource: Resource,
  present: AnyStoredObject | undefined,
  object: AnyObject,
): DraftChange | undefined {
  const before = accepting(resource, present, keyOf(resource, object.metadata).name, object.metadata)
  // Most statuses that nodes repeat are equal as they are, and no copy is made of those.
  if (equalJSON(object.status, before.status)) return undefined
  const status = frozenCopy(object.status)
  if (equalJSON(status, before.status)) return undefined
  return modified(before, { ...before, status })
}

/** Throws NotFound, and Conflict where a precondition does not hold. */
export function deleted(
  resource: Resource,
  present: AnyStoredObject | undefined,
  key: ObjectKey,
  preconditions: Preconditions,
): DraftChange {
  const before = accepting(resource, present, key.name, preconditions)
  return { type: 'DELETED', object: before, previous: before }
}

/** The key of an object. Throws BadRequest if its name, or the namespace that its kind needs, is missing. */
export function keyOf(resource: Resource, metadata: ObjectMeta): ObjectKey {
  const { name = '', namespace = '' } = metadata
  if (name === '') throw new ApiError('BadRequest', `${resource.id}: metadata.name is missing`)
  if (!resource.namespaced) return { namespace: '', name }
  if (namespace === '') throw new ApiError('BadRequest', `${resource.id} "${name}": metadata.namespace is missing`)
  return { namespace, name }
}

function accepting(
  resource: Resource,
  present: AnyStoredObject | undefined,
  name: string,
  { uid, resourceVersion }: Preconditions,
): AnyStoredObject {
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

function modified(previous: AnyStoredObject, object: AnyStoredObject): DraftChange {
  return { type: 'MODIFIED', object, previous }
}

function withGeneration(metadata: AnyStoredObject['metadata']): AnyStoredObject['metadata'] {
  return { ...metadata, generation: (metadata.generation ?? 1) + 1 }
}
