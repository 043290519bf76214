/**
 * JSON patch (RFC 6902). An operation costs its path and its value: the first change of an object or list copies that
 * one level, later changes are made in the copy. What an operation can multiply is bounded: copied bytes, list items
 * that are moved by insertions and removals, depth. Messages are those of the library that Kubernetes uses
 * (evanphx/json-patch v4).
 */
import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../../api/api-error.ts'
import { clipped, quoted } from '../../../api/problem.ts'
import { fieldOf, isObject } from '../../../api/text/json.ts'
import { type OwnObject, ownCopy, setField } from './patch.ts'

/** `target` after `operations`, all or none. Throws ApiError BadRequest when it is not a JSON patch, Invalid when it does not apply. */
export function jsonPatch(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw new ApiError('BadRequest', 'A JSON patch must be a list of operations')
  if (operations.length > mostOperations) {
    const message = `The allowed maximum operations in a JSON patch is ${mostOperations}, got ${operations.length}`
    throw new ApiError('RequestEntityTooLarge', message)
  }
  const draft: Draft = { document: target, own: new Map(), copiedBytes: 0, copiedValues: 0, movedItems: 0 }
  for (const operation of operations) apply(draft, operation)
  return draft.document
}

const mostOperations = 10_000 // as Kubernetes (maxJSONPatchOperations)
const mostCopiedBytes = 3 * 2 ** 20 // as Kubernetes; copies of copies would double with every operation
const mostCopiedValues = 100_000 // about 50 ms; an object has 16,384 at most
const mostMovedItems = 100_000_000 // about 25 ms; 10,000 insertions at the head of a list of 5,000 items need as many
const deepestCopy = 128

type Draft = {
  document: unknown
  /** Objects and lists made for this document alone, which are changed in place. */
  readonly own: Map<unknown, Owned>
  copiedBytes: number
  copiedValues: number
  movedItems: number
}

type Owned = OwnObject | unknown[]
type Path = readonly string[]

function apply(draft: Draft, operation: unknown): void {
  if (!isObject(operation)) throw new ApiError('BadRequest', 'A JSON patch operation must be an object')
  // As in that library: a value that is missing is null, and a field that is missing is equal to null.
  const { op, value = null } = operation
  const path = pointer(operation['path'])
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      if (op === 'add') add(draft, op, path, value)
      else if (op === 'replace') replace(draft, path, value)
      else if (!isEqualAt(draft.document, path, value)) {
        throw doesNotApply(`testing value ${textOf(path)} failed: test failed`)
      }
      break
    case 'remove':
      remove(draft, op, path)
      break
    case 'move': {
      const from = pointer(operation['from'])
      if (path.length > from.length && from.every((token, index) => token === path[index])) {
        throw doesNotApply(`cannot move ${textOf(from)} into itself: ${textOf(path)}`)
      }
      const moved = valueAt(draft.document, op, from)
      remove(draft, op, from)
      add(draft, op, path, moved)
      break
    }
    case 'copy':
      add(draft, op, path, copyOf(draft, valueAt(draft.document, op, pointer(operation['from']))))
      break
    default:
      throw new ApiError('BadRequest', `Unknown JSON patch operation ${quoted(op)}`)
  }
}

function pointer(text: unknown): Path {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) {
    throw new ApiError('BadRequest', `Not a JSON pointer: ${quoted(text)}`)
  }
  const tokens = text.split('/').slice(1)
  return text.includes('~') ? tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~')) : tokens
}

function valueAt(document: unknown, op: string, path: Path): unknown {
  let at = document
  for (const token of path) at = childOf(at, op, token, path)
  return at
}

function isEqualAt(document: unknown, path: Path, value: unknown): boolean {
  const parent = valueAt(document, 'test', path.slice(0, -1))
  const last = path.at(-1)
  if (value === null && last !== undefined && isObject(parent) && fieldOf(parent, last) === undefined) return true
  return isDeepStrictEqual(valueAt(document, 'test', path), value)
}

function childOf(at: unknown, op: string, token: string, path: Path): unknown {
  const value = Array.isArray(at) ? at[indexIn(at.length, token, path)] : isObject(at) ? fieldOf(at, token) : undefined
  if (value === undefined) {
    throw doesNotApply(`${op} operation does not apply: doc is missing path: "${textOf(path)}": missing value`)
  }
  return value
}

function add(draft: Draft, op: string, path: Path, value: unknown): void {
  const [parent, token] = parentOf(draft, op, path)
  if (parent === undefined) draft.document = value
  else if (!Array.isArray(parent)) setField(parent, token, value)
  else {
    const index = token === '-' ? parent.length : indexIn(parent.length + 1, token, path)
    movingItems(draft, parent.length - index)
    parent.splice(index, 0, value)
  }
}

function replace(draft: Draft, path: Path, value: unknown): void {
  valueAt(draft.document, 'replace', path)
  const [parent, token] = parentOf(draft, 'replace', path)
  if (parent === undefined) draft.document = value
  else if (Array.isArray(parent)) parent[indexIn(parent.length, token, path)] = value
  else setField(parent, token, value)
}

function remove(draft: Draft, op: string, path: Path): void {
  valueAt(draft.document, op, path)
  const [parent, token] = parentOf(draft, op, path)
  if (parent === undefined) throw doesNotApply(`${op} operation does not apply: the whole object cannot be removed`)
  if (!Array.isArray(parent)) setField(parent, token, undefined)
  else {
    const index = indexIn(parent.length, token, path)
    movingItems(draft, parent.length - index)
    parent.splice(index, 1)
  }
}

/** What holds the last token of the path, safe to change; undefined where the path is the document itself. */
function parentOf(draft: Draft, op: string, path: Path): readonly [Owned | undefined, string] {
  const last = path.at(-1)
  if (last === undefined) return [undefined, '']
  let at = owned(draft, draft.document, op, path)
  draft.document = at
  for (const token of path.slice(0, -1)) {
    const child = childOf(at, op, token, path)
    const own = owned(draft, child, op, path)
    if (own !== child) {
      if (Array.isArray(at)) at[indexIn(at.length, token, path)] = own
      else setField(at, token, own)
    }
    at = own
  }
  return [at, last]
}

function owned(draft: Draft, value: unknown, op: string, path: Path): Owned {
  const known = draft.own.get(value)
  if (known !== undefined) return known
  const copy: Owned | undefined = Array.isArray(value) ? [...value] : isObject(value) ? ownCopy(value) : undefined
  if (copy === undefined) {
    throw doesNotApply(`${op} operation does not apply: doc is missing path: "${textOf(path)}": missing value`)
  }
  draft.own.set(copy, copy)
  return copy
}

/** A copy that shares nothing with the original: both may be changed by later operations. */
function copyOf(draft: Draft, value: unknown): unknown {
  const copied = deepCopy(draft, value, 0)
  draft.copiedBytes += JSON.stringify(copied).length
  if (draft.copiedBytes <= mostCopiedBytes) return copied
  throw doesNotApply(
    `Unable to complete the copy, the accumulated size increase of copy is ${draft.copiedBytes}, exceeding the limit ${mostCopiedBytes}`,
  )
}

function deepCopy(draft: Draft, value: unknown, depth: number): unknown {
  draft.copiedValues++
  if (draft.copiedValues > mostCopiedValues) {
    throw doesNotApply(
      `Unable to complete the copy: the operations copy more than ${mostCopiedValues} fields and items`,
    )
  }
  if (depth > deepestCopy) throw doesNotApply(`Unable to complete the copy of more than ${deepestCopy} levels`)
  if (Array.isArray(value)) return value.map((item) => deepCopy(draft, item, depth + 1))
  if (!isObject(value)) return value
  const copy: OwnObject = {}
  for (const [name, item] of Object.entries(value)) setField(copy, name, deepCopy(draft, item, depth + 1))
  return copy
}

/** An insertion or removal moves all items behind it. */
function movingItems(draft: Draft, items: number): void {
  draft.movedItems += items
  if (draft.movedItems <= mostMovedItems) return
  throw doesNotApply('the operations move too many list items: send the whole list in one operation')
}

/** A negative index counts from the end, -1 being the last place (SupportNegativeIndices of evanphx/json-patch, on in Kubernetes). */
function indexIn(length: number, token: string, path: Path): number {
  const index = /^(0|-?[1-9]\d{0,8})$/.test(token) ? Number(token) : Number.NaN
  if (index < length && index >= -length) return index < 0 ? index + length : index
  if (Number.isNaN(index)) {
    throw doesNotApply(`value was not a proper array index: ${quoted(token)} in path "${textOf(path)}"`)
  }
  throw doesNotApply(`Unable to access invalid index: ${index} in path "${textOf(path)}": invalid index referenced`)
}

function textOf(path: Path): string {
  return clipped(path.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''))
}

/** Kubernetes sends the first sentence alone. The details are empty, not absent: kubectl prints the message only then. */
function doesNotApply(because: string): ApiError {
  return new ApiError('Invalid', `the server rejected our request due to an error in our request: ${because}`, {})
}
