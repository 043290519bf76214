/**
 * The schema of a custom kind as OpenAPI describes it (staging/src/k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder and v2).
 * 3.0 has all of it. 2.0 has neither alternatives nor null, and its clients validate by it: what it cannot describe is left out there.
 */
import { ObjectMetaSchema } from '../../../api/meta.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { descriptionOf } from './descriptions.ts'
import { nestedTypeName } from './type-names.ts'
import type { JsonSchema, OpenApiVersion, TypeRegistry } from './type-schemas.ts'

type Target = { readonly version: OpenApiVersion; readonly metadata: JsonSchema }

/** The type of whole objects of a kind. */
export function customType(schema: JSONSchemaProps, version: OpenApiVersion, types: TypeRegistry): JsonSchema {
  const metaName = nestedTypeName('meta.v1.ObjectMeta')
  types.add(metaName, ObjectMetaSchema)
  const target = { version, metadata: described(types.reference(metaName), descriptionOf(metaName), version) }
  if (version === 'v2' && schema['x-kubernetes-preserve-unknown-fields']) return { type: 'object' }
  return typeOf({ ...schema, 'x-kubernetes-embedded-resource': true }, target, true)
}

/** A reference has nothing beside it in 3.0. */
function described(reference: JsonSchema, description: string | undefined, version: OpenApiVersion): JsonSchema {
  if (description === undefined) return reference
  return version === 'v3' ? { description, allOf: [reference] } : { description, ...reference }
}

function typeOf(schema: JSONSchemaProps, target: Target, isRoot = false): JsonSchema {
  const { properties, items, additionalProperties, allOf, anyOf, oneOf, not, ...plain } = schema
  const isEmbedded = plain['x-kubernetes-embedded-resource'] === true
  const { 'x-kubernetes-embedded-resource': _, ...rootPlain } = plain
  const inner = (one: JSONSchemaProps) => typeOf(one, target)
  const own = Object.fromEntries(Object.entries(properties ?? {}).map(([name, one]) => [name, inner(one)]))
  const fields = isEmbedded ? { ...own, ...objectFields(target) } : own
  const whole: JsonSchema = {
    ...(isRoot ? rootPlain : plain),
    ...((properties !== undefined || isEmbedded) && { properties: fields }),
    ...(items !== undefined && !Array.isArray(items) && { items: inner(items as JSONSchemaProps) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'boolean' ? additionalProperties : inner(additionalProperties),
    }),
  }
  if (target.version === 'v2') return lossy(schema, whole)
  const isNumberOrText = plain['x-kubernetes-int-or-string'] && anyOf === undefined && allOf === undefined
  return {
    ...whole,
    ...(allOf !== undefined && { allOf: allOf.map(inner) }),
    ...(isNumberOrText
      ? { anyOf: [{ type: 'integer' }, { type: 'string' }] }
      : anyOf !== undefined && { anyOf: anyOf.map(inner) }),
    ...(oneOf !== undefined && { oneOf: oneOf.map(inner) }),
    ...(not !== undefined && { not: inner(not) }),
  }
}

function objectFields({ metadata }: Target): { readonly [name: string]: JsonSchema } {
  const text = (description: string | undefined) => ({
    ...(description !== undefined && { description }),
    type: 'string',
  })
  return {
    apiVersion: text(descriptionOf('', 'apiVersion', true)),
    kind: text(descriptionOf('', 'kind', true)),
    metadata,
  }
}

/** ToStructuralOpenAPIV2: kubectl of earlier versions refuses what it does not find in the schema. */
function lossy(schema: JSONSchemaProps, whole: JsonSchema): JsonSchema {
  const { nullable, ...known } = whole
  const isAny = schema['x-kubernetes-preserve-unknown-fields'] || nullable === true
  if (isAny) {
    const { type: _type, items: _items, properties: _properties, additionalProperties: _more, ...rest } = known
    const { default: _default, required: _required, ...kept } = rest
    return schema['x-kubernetes-preserve-unknown-fields'] ? kept : { ...kept }
  }
  const names = new Set(Object.keys((known['properties'] as object | undefined) ?? {}))
  const { required: mandatory = [] } = schema
  const left = mandatory.filter((name) => names.has(name))
  const { required: _, ...others } = known
  return { ...others, ...(left.length > 0 && { required: left }) }
}
