/**
 * The two patches of any JSON document: merge patch (RFC 7396) and JSON patch (RFC 6902, in `json-patch.ts`). A
 * patch costs its own size plus one copy of what it changes: each object is copied once and then filled in. The target
 * and the patch are never changed, since both are shared with other readers and used again after a conflict.
 */
import { ApiError } from '../../../api/api-error.ts'
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'

/** `target` with the fields of `patch` laid over it; null removes a field, and is left out of objects in lists. Throws ApiError BadRequest. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) throw new ApiError('BadRequest', 'A merge patch must be an object')
  return merged(target, patch)
}

/** An object that only its maker has, and so may change. */
export type OwnObject = { [name: string]: unknown }

/** A copy of one level, safe to change. */
export function ownCopy(object: JsonObject): OwnObject {
  return { ...object }
}

/** Sets a field, or removes it for undefined. Throws ApiError BadRequest for a name that would change the prototype. */
export function setField(object: OwnObject, name: string, value: unknown): void {
  // Written into an object this name would change what it inherits.
  if (name === '__proto__') throw new ApiError('BadRequest', 'The field name "__proto__" is not allowed')
  if (value === undefined) delete object[name]
  else object[name] = value
}

function merged(target: unknown, patch: unknown): unknown {
  if (Array.isArray(patch)) return patch.map((item) => (item === null ? null : merged(undefined, item)))
  if (!isObject(patch)) return patch
  const result = isObject(target) ? ownCopy(target) : {}
  for (const [name, value] of Object.entries(patch)) {
    setField(result, name, value === null ? undefined : merged(fieldOf(result, name), value))
  }
  return result
}
