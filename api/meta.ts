/** The metadata of every object: apimachinery's meta/v1, field for field. */
import {
  anything,
  atomic,
  bool,
  type Described,
  field,
  integer,
  list,
  listBy,
  mapOf,
  object,
  optional,
  pointer,
  setOf,
  text,
  time,
} from './schema.ts'

const OwnerReferenceSchema = atomic(
  object('meta.v1.OwnerReference', {
    apiVersion: field(5, text),
    kind: field(1, text),
    name: field(3, text),
    uid: field(4, text),
    controller: pointer(6, optional(bool)),
    blockOwnerDeletion: pointer(7, optional(bool)),
  }),
)
export type OwnerReference = Described<typeof OwnerReferenceSchema>

const ManagedFieldsEntrySchema = object('meta.v1.ManagedFieldsEntry', {
  manager: optional(text),
  operation: optional(text),
  apiVersion: optional(text),
  time: optional(time),
  fieldsType: optional(text),
  fieldsV1: optional(anything),
  subresource: optional(text),
})

export type ManagedFieldsEntry = Described<typeof ManagedFieldsEntrySchema>

export const ObjectMetaSchema = object('meta.v1.ObjectMeta', {
  name: field(1, optional(text)),
  generateName: field(2, optional(text)),
  namespace: field(3, optional(text)),
  uid: field(5, optional(text)),
  resourceVersion: field(6, optional(text)),
  generation: field(7, optional(integer)),
  creationTimestamp: field(8, optional(time)),
  deletionTimestamp: field(9, optional(time)),
  deletionGracePeriodSeconds: pointer(10, optional(integer)),
  labels: field(11, optional(mapOf(text))),
  annotations: field(12, optional(mapOf(text))),
  ownerReferences: field(13, optional(listBy('uid', OwnerReferenceSchema))),
  finalizers: field(14, optional(setOf(text))),
  managedFields: optional(list(ManagedFieldsEntrySchema)),
  selfLink: optional(text),
})
/** Metadata as a client may send it. */
export type ObjectMeta = Described<typeof ObjectMetaSchema>

/** Metadata as the store gives it back: named, identified, versioned. */
export type StoredMeta = ObjectMeta & {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly creationTimestamp: string
}

/** An object of any kind. */
export type KubeObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** An object of any kind, with the two parts that code for all kinds handles. */
export type AnyObject = KubeObject & { readonly spec?: unknown; readonly status?: unknown }

/** An object as it comes out of the store. */
export type Stored<T extends KubeObject = KubeObject> = Omit<T, 'metadata'> & { readonly metadata: StoredMeta }

export const LocalObjectReferenceSchema = atomic(
  object('core.v1.LocalObjectReference', { name: field(1, optional(text)) }),
)

/** For a reference whose fields have owners of their own (`+structType=granular`). */
export const objectReferenceFields = {
  kind: field(1, optional(text)),
  namespace: field(2, optional(text)),
  name: field(3, optional(text)),
  uid: field(4, optional(text)),
  apiVersion: field(5, optional(text)),
  resourceVersion: field(6, optional(text)),
  fieldPath: field(7, optional(text)),
}
export const ObjectReferenceSchema = atomic(object('core.v1.ObjectReference', objectReferenceFields))
export type ObjectReference = Described<typeof ObjectReferenceSchema>

export const LabelSelectorSchema = atomic(
  object('meta.v1.LabelSelector', {
    matchLabels: field(1, optional(mapOf(text))),
    matchExpressions: field(
      2,
      optional(
        list(
          object('meta.v1.LabelSelectorRequirement', {
            key: field(1, text),
            operator: field(2, text),
            values: field(3, optional(list(text))),
          }),
        ),
      ),
    ),
  }),
)
export type LabelSelector = Described<typeof LabelSelectorSchema>
