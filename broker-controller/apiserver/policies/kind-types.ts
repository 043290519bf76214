/**
 * The types that objects of a kind have to expressions (apiserver/pkg/cel/openapi/resolver). What has any shape, and quantities, which are text
 * or numbers, may have any type: expressions about them are not warned of.
 */
import { ObjectMetaSchema } from '../../../api/meta.ts'
import { keywordsOf, type TSchema } from '../../../api/schema.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import type { CelType } from '../../cel/checking/types.ts'
import type { KindStrategy } from '../handlers/strategy.ts'
import { declaredType } from '../structural/rules/declared-type.ts'

type Described = Pick<KindStrategy, 'kind' | 'schema' | 'defined'>

/** undefined: they may have any type. */
export function kindType({ kind, schema, defined }: Described): CelType | undefined {
  const declared =
    defined === undefined
      ? declaredType(structuralSchema(schema), false, kind)
      : declaredType(defined.schema, true, kind, structuralSchema(ObjectMetaSchema))
  return declared?.type
}

const anyShape: JSONSchemaProps = { 'x-kubernetes-int-or-string': true }

/** The schema of a built-in kind in the words of a definition. */
function structuralSchema(schema: TSchema): JSONSchemaProps {
  const keywords = keywordsOf(schema)
  const { type, items, properties, patternProperties, format, anyOf, const: word } = keywords
  if (keywords['x-kubernetes-quantity'] || keywords['x-kubernetes-int-or-string']) return anyShape
  if (keywords['x-bramble-last-field']) return anyShape
  if (type === 'array' && items !== undefined) return { type, items: structuralSchema(items) }
  if (patternProperties !== undefined) {
    const [values] = Object.values(patternProperties)
    return { type: 'object', additionalProperties: values === undefined ? anyShape : structuralSchema(values) }
  }
  if (type === 'object') {
    const fields = Object.entries(properties ?? {}).map(([name, own]) => [name, structuralSchema(own)])
    return { type, properties: Object.fromEntries(fields) }
  }
  const words = anyOf?.map((one) => keywordsOf(one).const) ?? [word]
  if (words.every((one) => typeof one === 'string')) return { type: 'string' }
  return type === undefined ? anyShape : { type, ...(format !== undefined && { format }) }
}
