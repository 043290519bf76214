/** A problem of a field, in Kubernetes' words: one cause of a 422, or one line about a file. */
import { ApiError } from './api-error.ts'
import type { JsonObject } from './text/json.ts'

export type ProblemReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueTypeInvalid'
  | 'FieldValueForbidden'
  | 'FieldValueDuplicate'
  | 'FieldValueNotFound'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'

/** What a client sent in the place of a name: text as it is, anything else as JSON. It need not have a text of its own. */
export function nameText(value: unknown): string {
  return typeof value === 'string' ? clipped(value) : quoted(value)
}

/** `field` as in `spec.containers[0].image`; `message` starts with the kind of problem: `Required value`. */
export type Problem = { readonly field: string; readonly message: string; readonly reason: ProblemReason }

export function required(field: string, detail = ''): Problem {
  return {
    field,
    reason: 'FieldValueRequired',
    message: detail === '' ? 'Required value' : `Required value: ${detail}`,
  }
}

export function invalid(field: string, value: unknown, detail: string): Problem {
  return { field, reason: 'FieldValueInvalid', message: `Invalid value: ${quoted(value)}: ${detail}` }
}

export function typeInvalid(field: string, value: unknown, expected: string): Problem {
  return { field, reason: 'FieldValueTypeInvalid', message: `Invalid value: ${quoted(value)}: must be ${expected}` }
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): Problem {
  const words = supported.map((word) => JSON.stringify(word)).join(', ')
  const message = `Unsupported value: ${quoted(value)}: supported values: ${words}`
  return { field, reason: 'FieldValueNotSupported', message }
}

export function forbidden(field: string, detail: string): Problem {
  return { field, reason: 'FieldValueForbidden', message: `Forbidden: ${detail}` }
}

export function duplicate(field: string, value: unknown): Problem {
  return { field, reason: 'FieldValueDuplicate', message: `Duplicate value: ${quoted(value)}` }
}

/** It names what is not there. */
export function notFoundValue(field: string, value: unknown): Problem {
  return { field, reason: 'FieldValueNotFound', message: `Not found: ${quoted(value)}` }
}

/** `spec.nodeName: Invalid value: "A": must be …` */
export function problemText({ field, message }: Problem): string {
  return field === '' ? message : `${field}: ${message}`
}

/** Problems that are named one by one; Kubernetes has the same limit for strict decoding errors of one object. */
export const mostProblems = 100
const longestField = 256
const longestMessage = 512

/** 422 with a cause for each problem, bounded: what a client sends wrong must not be multiplied in the answer. */
export function invalidObject(
  { kind, group }: { readonly kind: string; readonly group: string },
  name: string,
  problems: readonly Problem[],
): ApiError {
  const named = problems.slice(0, mostProblems).map(({ field, message, reason }) => ({
    reason,
    message: clipped(message, longestMessage),
    field: clipped(field, longestField),
  }))
  const more = problems.length - named.length
  const texts = [...named.map(problemText), ...(more > 0 ? [`and ${more} more`] : [])]
  const all = texts.length === 1 ? texts.join() : `[${texts.join(', ')}]`
  const message = `${group === '' ? kind : `${kind}.${group}`} ${quoted(name, longestField)} is invalid: ${all}`
  const details = { name: clipped(name, longestField), kind, ...(group === '' ? {} : { group }), causes: named }
  return new ApiError('Invalid', message, details)
}

/** `parent.key`, or `key` at the top. */
export function fieldWithin(parent: string, key: string): string {
  return parent === '' ? key : `${parent}.${key}`
}

/** The text, with its end cut off where it is longer than `most` characters. */
export function clipped(text: string, most = 120): string {
  return text.length > most ? `${text.slice(0, most - 3)}...` : text
}

/** Anything a client sent, as JSON of at most `most` characters. */
export function quoted(value: unknown, most = 120): string {
  return clipped(startOfJson(value, most, 0), most)
}

const deepestQuoted = 16

/** The value may have any size, and be nested deeper than the stack allows: only as much of it is written as is shown. */
function startOfJson(value: unknown, most: number, depth: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, most + 1))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? String(value)
  if (depth === deepestQuoted) return '...'
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  let text = ''
  for (const name of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    if (text.length > most) break
    if (text !== '') text += ','
    if (typeof name === 'string') text += `${JSON.stringify(name.slice(0, most + 1))}:`
    text += startOfJson((value as JsonObject)[name], Math.max(0, most - text.length), depth + 1)
  }
  return `${open}${text}${close}`
}
