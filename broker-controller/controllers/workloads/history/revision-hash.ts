/** Short texts that stand for a template, in names and labels (pkg/controller/history/controller_history.go). */
import { isObject } from '../../../../api/text/json.ts'

/**
 * Ten characters at most, none of which makes a word: the FNV-1a hash of the value and of how often its name was taken already.
 * The order of the fields of the value does not matter.
 */
export function revisionHash(value: unknown, collisionCount = 0): string {
  const text = orderedText(value) + (collisionCount > 0 ? String(collisionCount) : '')
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return safeText(String(hash >>> 0))
}

/** `web-` and the hash; a long beginning is cut, so that the name stays a label (ControllerRevisionName). */
export function revisionName(owner: string, hash: string): string {
  return `${owner.slice(0, longestBeginning)}-${hash}`
}

/** As Kubernetes; the whole is then a name, although not always a label. */
const longestBeginning = 223

/** JSON with the fields of each object in the order of their names, as Go writes maps. */
function orderedText(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    isObject(part) && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}

/** Without vowels and what looks like them (apimachinery, util/rand SafeEncodeString). */
const safeCharacters = 'bcdfghjklmnpqrstvwxz2456789'

function safeText(text: string): string {
  return [...text].map((one) => safeCharacters[one.charCodeAt(0) % safeCharacters.length]).join('')
}
