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
    const { properties, additionalProperties }: JSONSchemaProps = own
    if (properties !== undefined) {
      own = propertyOf(own, name)
      text += text === '' ? name : `.${name}`
    } else {
      own = typeof additionalProperties === 'object' ? additionalProperties : undefined
      text += `[${name}]`
    }
    if (own === undefined) return undefined
  }
  return text === '' ? undefined : text
}
