/** storage.k8s.io/v1 StorageClass: a kind of storage, by name. */
import { defaultClassName } from '../admission/default-class.ts'
import { ObjectMetaSchema } from '../meta.ts'
import { atomic, bool, type Described, field, list, mapOf, object, oneOf, optional, pointer, text } from '../schema.ts'

export const storageGroup = 'storage.k8s.io'

export const StorageClassSchema = object({
  apiVersion: oneOf('storage.k8s.io/v1'),
  kind: oneOf('StorageClass'),
  metadata: field(1, ObjectMetaSchema),
  provisioner: field(2, text),
  parameters: field(3, optional(mapOf(text))),
  reclaimPolicy: pointer(4, optional(text)),
  mountOptions: field(5, optional(list(text))),
  allowVolumeExpansion: pointer(6, optional(bool)),
  volumeBindingMode: pointer(7, optional(text)),
  allowedTopologies: field(
    8,
    optional(
      list(
        atomic(
          object('core.v1.TopologySelectorTerm', {
            matchLabelExpressions: field(
              1,
              optional(
                list(
                  object('core.v1.TopologySelectorLabelRequirement', {
                    key: field(1, text),
                    values: field(2, list(text)),
                  }),
                ),
              ),
            ),
          }),
        ),
      ),
    ),
  ),
})
export type StorageClass = Described<typeof StorageClassSchema>

const defaultAnnotations = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
]

/** The class of claims that name none; undefined: there is none. */
export function defaultStorageClass(classes: readonly Pick<StorageClass, 'metadata'>[]): string | undefined {
  return defaultClassName(classes, ...defaultAnnotations)
}
