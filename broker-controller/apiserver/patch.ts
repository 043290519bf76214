/** The two patches every JSON document knows: merge patch (RFC 7396) and JSON patch (RFC 6902). Nothing is changed in place. */
import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../api/api-error.ts'
import { fieldOf, isObject, type JsonObject } from '../../api/json.ts'

/** `target` with the fields of `patch` laid over it; null removes a field. Throws ApiError BadRequest. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) throw new ApiError('BadRequest', 'A merge patch must be an object')
  return merged(target, patch)
}

/** `target` after `operations`, all or none. Throws ApiError BadRequest when it is no JSON patch, Invalid when it does not apply. */
export function jsonPatch(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw new ApiError('BadRequest', 'A JSON patch must be a list of operations')
  if (operations.length > mostOperations) {
    throw new ApiError('RequestEntityTooLarge', `A JSON patch may have no more than ${mostOperations} operations`)
  }
  const copied = { bytes: 0 }
  return operations.reduce<unknown>((document, operation) => applied(document, operation, copied), target)
}

/** The object with another value under `name`, or without it for undefined. */
export function withField(object: JsonObject, name: string, value: unknown): JsonObject {
  refuseReserved(name)
  const { [name]: _, ...others } = object
  return value === undefined ? others : { ...object, [name]: value }
}

const mostOperations = 10_000
const mostCopiedBytes = 3 * 2 ** 20 // copies of copies would otherwise double with every operation

function merged(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  let result: JsonObject = isObject(target) ? target : {}
  for (const [name, value] of Object.entries(patch)) {
    result = withField(result, name, value === null ? undefined : merged(fieldOf(result, name), value))
  }
  return result
}

function applied(document: unknown, operation: unknown, copied: { bytes: number }): unknown {
  if (!isObject(operation)) throw new ApiError('BadRequest', 'A JSON patch operation must be an object')
  const { op, value } = operation
  const path = pointer(operation['path'])
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      if (value === undefined) throw new ApiError('BadRequest', `JSON patch ${op} needs a value`)
      if (op === 'add') return added(document, path, value)
      if (op === 'replace') return replaced(document, path, value)
      if (isDeepStrictEqual(valueAt(document, path), value)) return document
      throw doesNotApply(path, 'test failed')
    case 'remove':
      return removed(document, path)
    case 'move': {
      const from = pointer(operation['from'])
      if (path.length > from.length && from.every((token, index) => token === path[index])) {
        throw doesNotApply(path, 'cannot move a value into itself')
      }
      return added(removed(document, from), path, valueAt(document, from))
    }
    case 'copy': {
      const found = valueAt(document, pointer(operation['from']))
      copied.bytes += JSON.stringify(found).length
      if (copied.bytes > mostCopiedBytes) throw doesNotApply(path, 'too much is copied')
      return added(document, path, found)
    }
    default:
      throw new ApiError('BadRequest', `Unknown JSON patch operation ${JSON.stringify(op)}`)
  }
}

type Path = readonly string[]

function pointer(text: unknown): Path {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) {
    throw new ApiError('BadRequest', `Not a JSON pointer: ${JSON.stringify(text)}`)
  }
  return text
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function valueAt(document: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, token) => {
    const value = Array.isArray(at) ? at[indexIn(at, token, path)] : isObject(at) ? fieldOf(at, token) : undefined
    if (value === undefined) throw doesNotApply(path, 'there is no such value')
    return value
  }, document)
}

function added(document: unknown, path: Path, value: unknown): unknown {
  return changed(document, path, path, value, (parent, token) => {
    if (isObject(parent)) return withField(parent, token, value)
    return parent.toSpliced(token === '-' ? parent.length : indexIn([...parent, value], token, path), 0, value)
  })
}

function replaced(document: unknown, path: Path, value: unknown): unknown {
  valueAt(document, path)
  return changed(document, path, path, value, (parent, token) =>
    isObject(parent) ? withField(parent, token, value) : parent.with(indexIn(parent, token, path), value),
  )
}

function removed(document: unknown, path: Path): unknown {
  valueAt(document, path)
  if (path.length === 0) throw doesNotApply(path, 'the whole object cannot be removed')
  return changed(document, path, path, undefined, (parent, token) =>
    isObject(parent) ? withField(parent, token, undefined) : parent.toSpliced(indexIn(parent, token, path), 1),
  )
}

type Container = JsonObject | readonly unknown[]

/** The document with the container of the last token changed; `whole` when the path is the document itself. */
function changed(
  at: unknown,
  rest: Path,
  path: Path,
  whole: unknown,
  change: (parent: Container, token: string) => unknown,
): unknown {
  const [token, ...further] = rest
  if (token === undefined) return whole
  if (!isContainer(at)) throw doesNotApply(path, 'there is no such place')
  if (further.length === 0) return change(at, token)
  if (isObject(at)) return withField(at, token, changed(fieldOf(at, token), further, path, whole, change))
  const index = indexIn(at, token, path)
  return at.with(index, changed(at[index], further, path, whole, change))
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

function indexIn(list: readonly unknown[], token: string, path: Path): number {
  const index = /^(0|[1-9]\d{0,8})$/.test(token) ? Number(token) : Number.NaN
  if (index < list.length) return index
  throw doesNotApply(path, `${JSON.stringify(token)} is not a place in this list`)
}

function doesNotApply(path: Path, because: string): ApiError {
  return new ApiError('Invalid', `The JSON patch does not apply at ${JSON.stringify(`/${path.join('/')}`)}: ${because}`)
}

/** Written into an object this name would change what it inherits. */
function refuseReserved(name: string): void {
  if (name === '__proto__') throw new ApiError('BadRequest', 'The field name "__proto__" is not allowed')
}
