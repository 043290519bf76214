/** The path of a field below a schema: `.spec.replicas`, `.labels['a/b']` (ValidFieldPath in schema/cel/validation.go). */
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import { propertyOf } from '../pruning.ts'

const step = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/y

/** As a problem names it, without the first dot; undefined: there is no such field. */
export function readFieldPath(path: string, schema: JSONSchemaProps): string | undefined {
  let [text, own]: [string, JSONSchemaProps | undefined] = ['', schema]
  for (let at = 0; at < path.length; at = step.lastIndex) {
    step.lastIndex = at
    const [whole, plain, quoted] = step.exec(path) ?? []
    if (whole === undefined || own === undefined) return undefined
    const name: string = plain ?? (quoted ?? '').replace(/\\(.)/g, '$1')
    text += stepText(own, name, text === '')
    own = schemaBelow(own, name)
    if (own === undefined) return undefined
  }
  return text === '' ? undefined : text
}

function stepText({ properties }: JSONSchemaProps, name: string, isFirst: boolean): string {
  if (properties === undefined) return `[${name}]`
  return isFirst ? name : `.${name}`
}

function schemaBelow(schema: JSONSchemaProps, name: string): JSONSchemaProps | undefined {
  const { properties, additionalProperties } = schema
  if (properties !== undefined) return propertyOf(schema, name)
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}
