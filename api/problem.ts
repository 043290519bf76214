/** A problem of a field, in Kubernetes' words: one cause of a 422, or one line about a file. */
import { ApiError } from './api-error.ts'

export type ProblemReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueTypeInvalid'
  | 'FieldValueForbidden'
  | 'FieldValueDuplicate'
  | 'FieldValueNotFound'
  | 'FieldValueTooLong'

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

/** Problems that are named one by one; Kubernetes counts no more strict decoding errors of one object either. */
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
  const short = typeof value === 'string' ? value.slice(0, most) : value
  return clipped(JSON.stringify(short) ?? String(short), most)
}
