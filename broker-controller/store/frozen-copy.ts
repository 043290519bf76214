import { sharedTexts } from './shared-texts.ts'

/**
 * The value as JSON would carry it, frozen all through: what is undefined is left out, what is frozen already is taken
 * as it is, so that versions of an object share what did not change. Its texts are shared with other objects, but for those of
 * a Secret: the shared texts outlive their objects, and a deleted secret must not stay in memory. The given value is never touched.
 */
export function frozenCopy<T>(value: T): T {
  const isSecret = typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'Secret'
  return copied(value, isSecret ? (text) => text : shared) as T
}

const shared = sharedTexts()

function copied(value: unknown, share: (text: string) => string): unknown {
  if (typeof value === 'string') return share(value)
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (Array.isArray(value)) return Object.freeze(value.map((item) => (item === undefined ? null : copied(item, share))))
  const copy: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue
    if (name === '__proto__') Object.defineProperty(copy, name, { value: copied(item, share), enumerable: true })
    else copy[name] = copied(item, share)
  }
  return Object.freeze(copy)
}
