/**
 * Equal parts of objects, held once: what one manifest or one controller made has the same `fieldsV1` of managedFields, which take
 * several kB for a pod, the pods of one template have the same containers, and nodes have the same images.
 */

import { equalJSON } from '../equal-json.ts'

export type SharedPartsLimits = {
  /** The most parts that are kept. */
  readonly parts: number
  /** Characters of one part, about those of its JSON, and of its key; a longer one is seldom the same elsewhere. */
  readonly longest: number
}

/**
 * Gives the frozen copy that was made first of equal parts, as long as it is kept: of two generations the older one is
 * dropped when the younger one has half of the limit, and a part that is found in the older one moves to the younger.
 * `copy` is called for a part that is not found, and gives it frozen all through. `keyOf`: equal parts have the same key, and of
 * unequal parts with one key the latest is kept; undefined: the part is not looked for. Without `keyOf` the key is the whole JSON.
 */
export function sharedParts({ parts, longest }: SharedPartsLimits, keyOf?: (part: object) => string | undefined) {
  const textOf = keyOf ?? ((part: object): string | undefined => JSON.stringify(part))
  let young = new Map<string, object>()
  let old = new Map<string, object>()
  const add = (key: string, part: object) => {
    if (young.size >= parts / 2) {
      old = young
      young = new Map()
    }
    young.set(key, part)
  }
  return (part: object, copy: (part: object) => object): object => {
    if (Object.isFrozen(part)) return part
    const key = textOf(part)
    if (key === undefined || key.length > longest) return copy(part)
    const recent = young.get(key)
    const found = recent ?? old.get(key)
    const isSame = found !== undefined && (keyOf === undefined || equalJSON(found, part))
    const kept = isSame ? found : copy(part)
    if (kept === recent) return kept
    if (keyOf !== undefined && !isSame && charactersOf(kept) > longest) return kept
    add(key, kept)
    return kept
  }
}

/** About as many as its JSON has, which is not made for it: a fleet whose nodes have no image in common has 50 new ones for each node. */
function charactersOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 8
  let characters = 2
  if (Array.isArray(value)) for (const item of value) characters += 1 + charactersOf(item)
  else for (const [name, item] of Object.entries(value)) characters += name.length + 4 + charactersOf(item)
  return characters
}
