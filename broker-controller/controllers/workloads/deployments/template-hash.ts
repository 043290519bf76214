/** Which templates are the same, and the label `pod-template-hash` (EqualIgnoreHash, ComputeHash). Pure. */
import type { PodTemplateSpec } from '../../../../api/pod.ts'
import { tryParseQuantity } from '../../../../api/quantity.ts'
import { isObject } from '../../../../api/text/json.ts'
import { withImpliedFields, withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'

export const templateHashLabel = 'pod-template-hash'

/** As Kubernetes compares: what is empty is absent, and `500m` is `0.5`. */
export function isSameTemplate(a: PodTemplateSpec, b: PodTemplateSpec): boolean {
  return canonicalTemplate(a) === canonicalTemplate(b)
}

/** Letters and digits without vowels: no bad word comes of it (SafeEncodeString, apimachinery util/rand). */
const safeCharacters = 'bcdfghjklmnpqrstvwxz2456789'

/** `collisions`: how often the name that came of it was taken. Other values than those of Kubernetes, which hashes its memory. */
export function templateHash(template: PodTemplateSpec, collisions: number | undefined): string {
  const text = `${canonicalTemplate(template)}${collisions === undefined ? '' : `#${collisions}`}`
  return [...String(fnv1a(text))].map((digit) => safeCharacters[digit.charCodeAt(0) % safeCharacters.length]).join('')
}

const known = new WeakMap<PodTemplateSpec, string>()

/** Stored objects are frozen: each template is written out once. */
function canonicalTemplate(template: PodTemplateSpec): string {
  const before = known.get(template)
  if (before !== undefined) return before
  const { [templateHashLabel]: _, ...labels } = template.metadata?.labels ?? {}
  // Kubernetes reads every object with its defaults: one that was stored before a default existed is the same template.
  const whole = withTemplateDefaults({ ...template, metadata: { ...template.metadata, labels } })
  // Earlier versions stored these in templates: one without them is the same.
  const text = JSON.stringify(canonical({ ...whole, spec: withImpliedFields(whole.spec) }, false))
  known.set(template, text)
  return text
}

const quantityFields = new Set(['limits', 'requests', 'overhead'])

/** Fields sorted by their names. `isQuantities`: the fields of the value are quantities. */
function canonical(value: unknown, isQuantities: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => canonical(item, false))
  if (!isObject(value)) return value
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(
    fields.map(([name, inner]) => [
      name,
      isQuantities ? canonicalQuantity(inner) : canonical(inner, quantityFields.has(name)),
    ]),
  )
}

function canonicalQuantity(value: unknown): unknown {
  const quantity = typeof value === 'string' || typeof value === 'number' ? tryParseQuantity(value) : undefined
  return quantity === undefined ? value : String(quantity.nano)
}

/** 32 bits, of UTF-8. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash
}
