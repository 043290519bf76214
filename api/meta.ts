/** What every object carries: apimachinery's meta/v1, field for field. */
import { bool, type Described, integer, list, listBy, mapOf, object, optional, setOf, text, time } from './schema.ts'

const OwnerReferenceSchema = object({
  apiVersion: text,
  kind: text,
  name: text,
  uid: text,
  controller: optional(bool),
  blockOwnerDeletion: optional(bool),
})
export type OwnerReference = Described<typeof OwnerReferenceSchema>

const managedFieldsEntry = object({
  manager: optional(text),
  operation: optional(text),
  apiVersion: optional(text),
  time: optional(time),
  fieldsType: optional(text),
  subresource: optional(text),
})

export const ObjectMetaSchema = object({
  name: optional(text),
  generateName: optional(text),
  namespace: optional(text),
  uid: optional(text),
  resourceVersion: optional(text),
  generation: optional(integer),
  creationTimestamp: optional(time),
  deletionTimestamp: optional(time),
  deletionGracePeriodSeconds: optional(integer),
  labels: optional(mapOf(text)),
  annotations: optional(mapOf(text)),
  ownerReferences: optional(listBy('uid', OwnerReferenceSchema)),
  finalizers: optional(setOf(text)),
  managedFields: optional(list(managedFieldsEntry)),
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

export const LocalObjectReferenceSchema = object({ name: optional(text) })

export const ObjectReferenceSchema = object({
  kind: optional(text),
  namespace: optional(text),
  name: optional(text),
  uid: optional(text),
  apiVersion: optional(text),
  resourceVersion: optional(text),
  fieldPath: optional(text),
})
export type ObjectReference = Described<typeof ObjectReferenceSchema>

export const LabelSelectorSchema = object({
  matchLabels: optional(mapOf(text)),
  matchExpressions: optional(list(object({ key: text, operator: text, values: optional(list(text)) }))),
})
export type LabelSelector = Described<typeof LabelSelectorSchema>
