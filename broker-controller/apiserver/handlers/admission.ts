/**
 * An object on its way into the store: defaults are set, what only the server sets is set, and an invalid object is refused
 * with every field at fault. Pure; permissions and admission are asked elsewhere.
 */
import { ApiError } from '../../../api/api-error.ts'
import type { AnyObject, ObjectMeta } from '../../../api/meta.ts'
import { invalidObject, type Problem } from '../../../api/problem.ts'
import { metadataChangeProblems, metadataProblems } from '../../../api/validation/metadata-validation.ts'
import { refuseLarge } from '../wire/object-size.ts'
import { type CreateFacts, type KindStrategy, subresourceOf } from './strategy.ts'

/** The new object as it is stored. It has its name and namespace already. Throws ApiError Invalid or BadRequest. */
export function prepareForCreate(kind: KindStrategy, object: AnyObject, facts: CreateFacts): AnyObject {
  if (object.metadata.resourceVersion) {
    throw new ApiError('BadRequest', 'resourceVersion should not be set on objects to be created')
  }
  const named = { ...object, metadata: clientsMetadata(object.metadata) }
  const prepared = withDefaults(kind, kind.prepareForCreate?.(named, facts) ?? named)
  refuseLarge(prepared, kind.largestBytes)
  refuse(kind, prepared, [
    ...metadataProblems(kind, prepared.metadata),
    ...(kind.validateCreate?.(prepared, facts) ?? []),
  ])
  return prepared
}

/** `now` as it is stored in place of `old`. Throws ApiError Invalid. */
export function prepareForUpdate(kind: KindStrategy, old: AnyObject, now: AnyObject, subresource = ''): AnyObject {
  const part = subresourceOf(kind, subresource)
  const preparer = part?.access === 'update' && part.prepareForUpdate !== undefined ? part : kind
  const kept = preparer.prepareForUpdate?.(old, now) ?? now
  const prepared = withDefaults(kind, { ...kept, metadata: serversMetadata(old.metadata, kept.metadata) })
  refuseLarge(prepared, kind.largestBytes)
  const validator = part?.access === 'update' && part.validateUpdate !== undefined ? part : kind
  refuse(kind, prepared, [
    ...metadataProblems(kind, prepared.metadata),
    ...metadataChangeProblems(old.metadata, prepared.metadata),
    ...(validator.validateUpdate?.(withDefaults(kind, old), prepared) ?? []),
  ])
  return prepared
}

function withDefaults(kind: KindStrategy, object: AnyObject): AnyObject {
  return kind.withDefaults?.(object) ?? object
}

function refuse(kind: KindStrategy, { metadata }: AnyObject, problems: readonly Problem[]): void {
  if (problems.length > 0) throw invalidObject(kind, metadata.name ?? '', problems)
}

/** What a client may set on a new object; the rest is the server's. */
function clientsMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, generateName, namespace, labels, annotations, ownerReferences, finalizers } = metadata
  return given({ name, generateName, namespace, labels, annotations, ownerReferences, finalizers })
}

/** Only a deletion sets these, and it cannot be taken back. */
function serversMetadata(old: ObjectMeta, now: ObjectMeta): ObjectMeta {
  const { deletionTimestamp: _, deletionGracePeriodSeconds: __, selfLink: ___, managedFields: ____, ...rest } = now
  const { uid, creationTimestamp, generation, deletionTimestamp, deletionGracePeriodSeconds } = old
  return { ...rest, ...given({ uid, creationTimestamp, generation, deletionTimestamp, deletionGracePeriodSeconds }) }
}

function given(fields: ObjectMeta): ObjectMeta {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
