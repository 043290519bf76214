/**
 * Equal `fieldsV1` of managedFields, held once: objects that one manifest or one controller made have the same fields, and a
 * set of a pod's fields takes several kB.
 */

export type SharedFieldsLimits = {
  /** The most sets that are kept, of both generations. */
  readonly sets: number
  /** Characters of the JSON of one set; a longer one is seldom the same elsewhere. */
  readonly longest: number
}

/** At most some MB: the manifests of a fleet. */
const defaultLimits: SharedFieldsLimits = { sets: 1024, longest: 8192 }

/**
 * Gives the fields that were given first among equal ones, as long as they are kept: of two generations the older one is
 * dropped when the younger one has half of the limit, and fields that are found in the older one move to the younger.
 */
export function sharedFields(limits: SharedFieldsLimits = defaultLimits): (fields: object) => object {
  let young = new Map<string, object>()
  let old = new Map<string, object>()
  const known = new WeakSet<object>()
  return (fields) => {
    if (known.has(fields)) return fields
    const json = JSON.stringify(fields)
    if (json.length > limits.longest) return fields
    const recent = young.get(json)
    if (recent !== undefined) return recent
    const kept = old.get(json) ?? fields
    if (young.size >= limits.sets / 2) {
      old = young
      young = new Map()
    }
    young.set(json, kept)
    known.add(kept)
    return kept
  }
}
