/** Whether two values are one object for Kubernetes (Semantic.DeepEqual): its clients leave out what is empty, and send it back so. */
import type { TSchema } from '../../../api/schema.ts'
import { valueWithoutZeros } from '../../../api/validation/zero-fields.ts'
import { equalJSON } from '../../store/equal-json.ts'

/** Both have fields of the schema. undefined: there is none. */
export function isSameInGo(schema: TSchema, one: object | undefined, other: object | undefined): boolean {
  return equalJSON(one, other) || equalJSON(valueWithoutZeros(schema, one), valueWithoutZeros(schema, other))
}
