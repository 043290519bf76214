/** What is wrong with a field, in Kubernetes' words: one problem is one cause of a 422, or one line about a file. */
import { ApiError } from './api-error.ts'

export type ProblemReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueTypeInvalid'
  | 'FieldValueForbidden'
  | 'FieldValueDuplicate'
  | 'FieldValueNotFound'

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
  return { field, reason: 'FieldValueInvalid', message: `Invalid value: ${shown(value)}: ${detail}` }
}

export function typeInvalid(field: string, value: unknown, expected: string): Problem {
  return { field, reason: 'FieldValueTypeInvalid', message: `Invalid value: ${shown(value)}: must be ${expected}` }
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): Problem {
  const words = supported.map((word) => JSON.stringify(word)).join(', ')
  const message = `Unsupported value: ${shown(value)}: supported values: ${words}`
  return { field, reason: 'FieldValueNotSupported', message }
}

export function forbidden(field: string, detail: string): Problem {
  return { field, reason: 'FieldValueForbidden', message: `Forbidden: ${detail}` }
}

export function duplicate(field: string, value: unknown): Problem {
  return { field, reason: 'FieldValueDuplicate', message: `Duplicate value: ${shown(value)}` }
}

/** It names what is not there. */
export function notFoundValue(field: string, value: unknown): Problem {
  return { field, reason: 'FieldValueNotFound', message: `Not found: ${shown(value)}` }
}

/** `spec.nodeName: Invalid value: "A": must be …` */
export function problemText({ field, message }: Problem): string {
  return field === '' ? message : `${field}: ${message}`
}

/** 422 with a cause for each problem. */
export function invalidObject(
  { kind, group }: { readonly kind: string; readonly group: string },
  name: string,
  problems: readonly Problem[],
): ApiError {
  const texts = problems.map(problemText)
  const all = texts.length === 1 ? texts.join() : `[${texts.join(', ')}]`
  const message = `${group === '' ? kind : `${kind}.${group}`} "${name}" is invalid: ${all}`
  const causes = problems.map(({ field, message, reason }) => ({ reason, message, field }))
  return new ApiError('Invalid', message, { name, kind, ...(group === '' ? {} : { group }), causes })
}

/** `parent.key`, or `key` at the top. */
export function within(parent: string, key: string): string {
  return parent === '' ? key : `${parent}.${key}`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 120 ? `${text.slice(0, 117)}...` : text
}
