/**
 * An object on its way into the store: defaults are set, what only the server sets is set, and an invalid object is refused
 * with every field at fault. Permissions and admission are asked elsewhere.
 */
import { ApiError, isApiError } from '../../../api/api-error.ts'
import type { AnyObject, ManagedFieldsEntry, ObjectMeta } from '../../../api/meta.ts'
import { invalidObject, type Problem } from '../../../api/problem.ts'
import { isObject } from '../../../api/text/json.ts'
import { metadataChangeProblems, metadataProblems } from '../../../api/validation/metadata-validation.ts'
import type { OtherVersions } from '../managed-fields/managers.ts'
import { refuseLarge, refuseManyValues } from '../wire/object-size.ts'
import { type CreateFacts, type KindStrategy, type ResourceNeeds, shownForm, subresourceOf } from './strategy.ts'
import { inPieces } from './turns.ts'

/** What the managers of the fields of an object are once it is written. */
export type FieldManagers = {
  /** managedFields of the object that is otherwise as it is stored. Throws the ApiError of a refusal. */
  readonly managedFields: (prepared: AnyObject, versions?: OtherVersions) => readonly ManagedFieldsEntry[]
  /** An object that is too large with them is stored without them; undefined: it is refused. */
  readonly areDispensable?: true
}

/**
 * The new object as it is stored. It has its name and namespace already. `managers` undefined: its fields have none. Throws
 * ApiError Invalid or BadRequest.
 */
export function prepareForCreate(
  kind: KindStrategy,
  object: AnyObject,
  facts: CreateFacts,
  managers?: FieldManagers,
): AnyObject {
  if (object.metadata.resourceVersion) {
    throw new ApiError('BadRequest', 'resourceVersion should not be set on objects to be created')
  }
  const named = { ...object, metadata: clientsMetadata(object.metadata) }
  const complete = withDefaults(kind, kind.prepareForCreate?.(named, facts) ?? named)
  const prepared = withManagers(kind, complete, managers)
  refuse(kind, prepared, [
    ...metadataProblems(kind, prepared.metadata),
    ...(kind.validateCreate?.(prepared, facts) ?? []),
  ])
  return prepared
}

/** `now` as it is stored in place of `old`. `managers` undefined: those of `old` stay. Throws ApiError Invalid. */
export function prepareForUpdate(
  kind: KindStrategy,
  old: AnyObject,
  now: AnyObject,
  subresource = '',
  managers: FieldManagers = { managedFields: () => old.metadata.managedFields ?? [], areDispensable: true },
): AnyObject {
  const part = subresourceOf(kind, subresource)
  const preparer = part?.access === 'update' && part.prepareForUpdate !== undefined ? part : kind
  const kept = preparer.prepareForUpdate?.(old, now) ?? now
  const complete = withDefaults(kind, { ...kept, metadata: serversMetadata(old.metadata, kept.metadata) })
  const prepared = withManagers(kind, complete, managers)
  const validator = part?.access === 'update' && part.validateUpdate !== undefined ? part : kind
  refuse(kind, prepared, [
    ...metadataProblems(kind, prepared.metadata),
    ...metadataChangeProblems(old.metadata, prepared.metadata),
    ...(validator.validateUpdate?.(withDefaults(kind, old), prepared) ?? []),
  ])
  return prepared
}

/** Throws ApiError Invalid where the object, which is prepared, has problems that take long to find. */
export async function refuseLengthyProblems(
  kind: KindStrategy,
  now: AnyObject,
  old: AnyObject | undefined,
  { clock }: Pick<ResourceNeeds, 'clock'>,
): Promise<void> {
  if (kind.lengthyProblems === undefined) return
  refuse(kind, now, await inPieces(kind.lengthyProblems(now, old), clock))
}

/** What the author left out, set. */
export function withDefaults(kind: KindStrategy, object: AnyObject): AnyObject {
  const complete = kind.withDefaults?.(object) ?? object
  const { emptyStatus } = kind
  if (emptyStatus === undefined) return complete
  const { status } = complete
  return { ...complete, status: isObject(status) ? { ...emptyStatus, ...status } : emptyStatus }
}

/** Throws RequestEntityTooLarge (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/update.go: isTooLargeError). */
function withManagers(kind: KindStrategy, object: AnyObject, managers: FieldManagers | undefined): AnyObject {
  refuseManyValues(object, kind.mostValues)
  const managedFields = managers?.managedFields(shownForm(kind, object)) ?? []
  const whole = managedFields.length === 0 ? object : { ...object, metadata: { ...object.metadata, managedFields } }
  try {
    refuseLarge(whole, kind)
    return whole
  } catch (error) {
    if (!managers?.areDispensable || whole === object || !isApiError(error, 'RequestEntityTooLarge')) throw error
    refuseLarge(object, kind)
    return object
  }
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
