/** apiextensions.k8s.io/v1 CustomResourceDefinition: a kind that is defined at run time. */
import { type ObjectReader, schemaReader } from '../decode.ts'
import { ObjectMetaSchema } from '../meta.ts'
import {
  bool,
  bytes,
  type Described,
  field,
  integer,
  list,
  listBy,
  object,
  oneOf,
  optional,
  pointer,
  text,
  time,
} from '../schema.ts'
import { isObject, type JsonObject } from '../text/json.ts'
import { schemaInMessage } from './json-schema-message.ts'
import { type JSONSchemaProps, readJSONSchema } from './json-schema-props.ts'

export const extensionsGroup = 'apiextensions.k8s.io'

/** Holds a definition until its objects are deleted. */
export const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

const NamesSchema = object('apiextensions.v1.CustomResourceDefinitionNames', {
  plural: field(1, text),
  singular: field(2, optional(text)),
  shortNames: field(3, optional(list(text))),
  kind: field(4, text),
  listKind: field(5, optional(text)),
  categories: field(6, optional(list(text))),
})
export type DefinitionNames = Described<typeof NamesSchema>

const ColumnSchema = object('apiextensions.v1.CustomResourceColumnDefinition', {
  name: field(1, text),
  type: field(2, text),
  format: field(3, optional(text)),
  description: field(4, optional(text)),
  priority: field(5, optional(integer)),
  jsonPath: field(6, text),
})
export type DefinedColumn = Described<typeof ColumnSchema>

const SubresourcesSchema = object('apiextensions.v1.CustomResourceSubresources', {
  status: pointer(1, optional(object('apiextensions.v1.CustomResourceSubresourceStatus', {}))),
  scale: pointer(
    2,
    optional(
      object('apiextensions.v1.CustomResourceSubresourceScale', {
        specReplicasPath: field(1, text),
        statusReplicasPath: field(2, text),
        labelSelectorPath: pointer(3, optional(text)),
      }),
    ),
  ),
})
export type DefinedSubresources = Described<typeof SubresourcesSchema>

const VersionSchema = object('apiextensions.v1.CustomResourceDefinitionVersion', {
  name: field(1, text),
  served: field(2, bool),
  storage: field(3, bool),
  // Read by `definitionReader`: it refers to itself.
  schema: pointer(
    4,
    optional(
      object('apiextensions.v1.CustomResourceValidation', { openAPIV3Schema: pointer(1, optional(schemaInMessage)) }),
    ),
  ),
  subresources: pointer(5, optional(SubresourcesSchema)),
  additionalPrinterColumns: field(6, optional(list(ColumnSchema))),
  deprecated: field(7, optional(bool)),
  deprecationWarning: pointer(8, optional(text)),
  selectableFields: field(9, optional(list(object('apiextensions.v1.SelectableField', { jsonPath: field(1, text) })))),
})
export type DefinedVersion = Described<typeof VersionSchema>

const ConversionSchema = object('apiextensions.v1.CustomResourceConversion', {
  strategy: field(1, text),
  webhook: pointer(
    2,
    optional(
      object('apiextensions.v1.WebhookConversion', {
        clientConfig: pointer(
          2,
          optional(
            object('apiextensions.v1.WebhookClientConfig', {
              service: pointer(
                1,
                optional(
                  object('apiextensions.v1.ServiceReference', {
                    namespace: field(1, text),
                    name: field(2, text),
                    path: pointer(3, optional(text)),
                    port: pointer(4, optional(integer)),
                  }),
                ),
              ),
              caBundle: field(2, optional(bytes)),
              url: pointer(3, optional(text)),
            }),
          ),
        ),
        conversionReviewVersions: field(3, optional(list(text))),
      }),
    ),
  ),
})
export type DefinedConversion = Described<typeof ConversionSchema>

const SpecSchema = object('apiextensions.v1.CustomResourceDefinitionSpec', {
  group: field(1, text),
  names: field(3, NamesSchema),
  scope: field(4, text),
  versions: field(7, list(VersionSchema)),
  conversion: pointer(9, optional(ConversionSchema)),
  preserveUnknownFields: field(10, optional(bool)),
})
export type DefinitionSpec = Described<typeof SpecSchema>

const StatusSchema = object('apiextensions.v1.CustomResourceDefinitionStatus', {
  conditions: field(
    1,
    optional(
      listBy(
        'type',
        object('apiextensions.v1.CustomResourceDefinitionCondition', {
          type: field(1, optional(text)),
          status: field(2, optional(text)),
          lastTransitionTime: field(3, optional(time)),
          reason: field(4, optional(text)),
          message: field(5, optional(text)),
        }),
        { patch: 'whole' },
      ),
    ),
  ),
  acceptedNames: field(2, optional(NamesSchema)),
  storedVersions: field(3, optional(list(text))),
})

export const CustomResourceDefinitionSchema = object({
  apiVersion: oneOf('apiextensions.k8s.io/v1'),
  kind: oneOf('CustomResourceDefinition'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, SpecSchema),
  status: field(3, optional(StatusSchema)),
})
export type CustomResourceDefinition = Described<typeof CustomResourceDefinitionSchema>

const plain = schemaReader(CustomResourceDefinitionSchema)

/** Reads definitions with the schemas of their versions. */
export const definitionReader: ObjectReader = {
  read(body, notes) {
    const read = plain.read(body, notes)
    if (!isObject(read) || !isObject(read['spec']) || !Array.isArray(read['spec']['versions'])) return read
    const versions = read['spec']['versions'].map((version: unknown, index) => {
      if (!isObject(version) || !isObject(version['schema'])) return version
      const { openAPIV3Schema } = version['schema']
      if (openAPIV3Schema === undefined) return version
      const at = `spec.versions[${index}].schema.openAPIV3Schema`
      return withSchema(version, readJSONSchema(openAPIV3Schema, at, notes))
    })
    return { ...read, spec: { ...read['spec'], versions } }
  },
}

function withSchema(version: JsonObject, openAPIV3Schema: JSONSchemaProps | undefined): JsonObject {
  return { ...version, schema: { openAPIV3Schema } }
}

/** The schema of the objects in this version, which `definitionReader` has read. */
export function schemaOfVersion({ schema }: Pick<DefinedVersion, 'schema'>): JSONSchemaProps | undefined {
  return schema?.openAPIV3Schema as JSONSchemaProps | undefined
}
