import { sharedFields } from './shared-fields.ts'
import { sharedTexts } from './shared-texts.ts'

/**
 * The value as JSON would carry it, frozen all through: what is undefined is left out, what is frozen already is taken
 * as it is, so that versions of an object share what did not change. Its texts are shared with other objects, but for those of
 * a Secret: the shared texts outlive their objects, and a deleted secret must not stay in memory. The given value is never touched.
 */
export function frozenCopy<T>(value: T): T {
  const isSecret = typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'Secret'
  return copied(value, isSecret ? unshared : shared) as T
}

type Share = { readonly text: (text: string) => string; readonly fields: (fields: object) => object }
const shared: Share = { text: sharedTexts(), fields: sharedFields() }
const unshared: Share = { text: (text) => text, fields: (fields) => fields }

function copied(value: unknown, share: Share): unknown {
  if (typeof value === 'string') return share.text(value)
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (Array.isArray(value)) return Object.freeze(value.map((item) => (item === undefined ? null : copied(item, share))))
  const copy: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue
    if (name === '__proto__') Object.defineProperty(copy, name, { value: copied(item, share), enumerable: true })
    else copy[name] = name === 'fieldsV1' ? copiedFields(item, share) : copied(item, share)
  }
  return Object.freeze(copy)
}

function copiedFields(value: unknown, share: Share): unknown {
  const copy = copied(value, share)
  return typeof copy === 'object' && copy !== null ? share.fields(copy) : copy
}
