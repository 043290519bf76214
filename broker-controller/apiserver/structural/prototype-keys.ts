/** Keys that would be the prototype of a copy of their object. */

/** Whether the value, which is parsed JSON of bounded depth, has a field `__proto__`. What is frozen comes from the store. */
export function hasPrototypeKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return false
  if (Array.isArray(value)) return value.some(hasPrototypeKey)
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasPrototypeKey)
}
