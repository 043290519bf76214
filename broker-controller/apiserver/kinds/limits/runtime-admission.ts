/** What the RuntimeClass of a new pod means for it (plugin/pkg/admission/runtimeclass/admission.go; messages as there). */
import { amountNamed } from '../../../../api/limits/resource-amounts.ts'
import type { RuntimeClass } from '../../../../api/node/runtime-class.ts'
import type { Pod, Toleration } from '../../../../api/pod.ts'
import { compareQuantities } from '../../../../api/quantity.ts'
import type { Admitted } from '../priority.ts'

type Amounts = { readonly [resource: string]: string | number }

/** The pod with the overhead, the node selector and the tolerations of its class. `found`: the class that it names. */
export function withRuntimeClass(pod: Pod, found: RuntimeClass | undefined): Admitted<Pod> {
  const { runtimeClassName, overhead = {} } = pod.spec
  if (runtimeClassName === undefined) return { ok: true, object: pod }
  if (found === undefined) return no(`pod rejected: RuntimeClass "${runtimeClassName}" not found`)
  const own = found.overhead === undefined ? undefined : (found.overhead.podFixed ?? {})
  if (own !== undefined && Object.keys(overhead).length > 0 && !isSame(own, overhead)) return no(otherOverhead)
  const charged: Pod = own === undefined ? pod : { ...pod, spec: { ...pod.spec, overhead: own } }
  return found.scheduling === undefined ? { ok: true, object: charged } : withScheduling(charged, found.scheduling)
}

/** The sentence of a 403 for a pod whose overhead is not that of its class. */
export function overheadViolation({ spec }: Pod, found: RuntimeClass | undefined): string | undefined {
  if (found?.overhead !== undefined) {
    return isSame(found.overhead.podFixed ?? {}, spec.overhead ?? {}) ? undefined : otherOverhead
  }
  if (spec.overhead === undefined) return undefined
  return 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'
}

const otherOverhead = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

function withScheduling(pod: Pod, { nodeSelector = {}, tolerations = [] }: NonNullable<RuntimeClass['scheduling']>) {
  const asked = pod.spec.nodeSelector ?? {}
  for (const [key, value] of Object.entries(nodeSelector)) {
    if (!Object.hasOwn(asked, key) || asked[key] === value) continue
    const classes = `runtimeClass.scheduling.nodeSelector[${key}] = ${value}`
    return no(`conflict: ${classes}; pod.spec.nodeSelector[${key}] = ${asked[key]}`)
  }
  const merged = mergedTolerations(pod.spec.tolerations ?? [], tolerations)
  const selector = { ...asked, ...nodeSelector }
  const spec = {
    ...pod.spec,
    ...(Object.keys(selector).length > 0 && { nodeSelector: selector }),
    ...(merged.length > 0 && { tolerations: merged }),
  }
  return { ok: true, object: { ...pod, spec } } as const
}

/** Without those that another one covers; of equal ones the first stays (MergeTolerations in pkg/util/tolerations). */
export function mergedTolerations(first: readonly Toleration[], second: readonly Toleration[]): readonly Toleration[] {
  const all = [...first, ...second]
  const later = widestTolerations()
  const isWiderLater = new Set<Toleration>()
  for (const one of all.toReversed()) {
    if (later.candidates(one).some((other) => covers(other, one) && !covers(one, other))) isWiderLater.add(one)
    later.add(one)
  }
  const kept = widestTolerations()
  return all.filter((one) => {
    if (isWiderLater.has(one) || kept.candidates(one).some((other) => covers(other, one))) return false
    kept.add(one)
    return true
  })
}

/**
 * The tolerations that were added, but for those that differ from another one in a shorter `tolerationSeconds` only: what such a one
 * covers, the longer one does. So a pod with thousands of them is compared with a few each.
 */
function widestTolerations() {
  // By effect, then by what they tolerate.
  const exists = new Map<string, Map<string, Toleration>>()
  const equal = new Map<string, Map<string, Toleration>>()
  return {
    add(one: Toleration): void {
      const { key = '', operator, effect = '', value = '' } = one
      // Other operators cover nothing.
      if (operator === 'Exists') keepWidest(exists, effect, key, one)
      else if (!operator || operator === 'Equal') keepWidest(equal, effect, keyAndValue(key, value), one)
    },
    /** Those that may cover this one. */
    candidates({ key = '', effect = '', value = '' }: Toleration): readonly Toleration[] {
      const found: Toleration[] = []
      const look = (group: Map<string, Toleration> | undefined, text: string) => {
        const one = group?.get(text)
        if (one !== undefined) found.push(one)
      }
      for (const wide of effect === '' ? [''] : [effect, '']) {
        look(exists.get(wide), key)
        if (key !== '') look(exists.get(wide), '')
        const ofEqual = equal.get(wide)
        if (ofEqual !== undefined) look(ofEqual, keyAndValue(key, value))
      }
      return found
    },
  }
}

function keepWidest(groups: Map<string, Map<string, Toleration>>, effect: string, text: string, one: Toleration): void {
  const group = groups.get(effect) ?? new Map<string, Toleration>()
  groups.set(effect, group)
  const present = group.get(text)
  if (present === undefined || secondsOf(present) < secondsOf(one)) group.set(text, one)
}

/** With a length no two pairs are one text, whatever is in them. */
function keyAndValue(key: string, value: string): string {
  return `${key.length} ${key}${value}`
}

function secondsOf({ tolerationSeconds }: Toleration): number {
  return tolerationSeconds ?? Number.POSITIVE_INFINITY
}

/** `wide` tolerates all that `one` does. */
function covers(wide: Toleration, one: Toleration): boolean {
  const { key = '', value = '', effect } = wide
  const operator = wide.operator || 'Equal'
  const isAnyKey = key === '' && operator === 'Exists'
  if (key !== (one.key ?? '') && !isAnyKey) return false
  if (effect && effect !== one.effect) return false
  if (!lastsAsLong(wide, one)) return false
  if (operator === 'Exists') return true
  return operator === 'Equal' && (one.operator || 'Equal') === 'Equal' && value === (one.value ?? '')
}

function lastsAsLong({ effect, tolerationSeconds: most }: Toleration, { tolerationSeconds }: Toleration): boolean {
  if (effect !== 'NoExecute' || most === undefined) return true
  return tolerationSeconds !== undefined && tolerationSeconds <= most
}

function isSame(one: Amounts, other: Amounts): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].every((name) => {
    const [a, b] = [amountNamed(one, name), amountNamed(other, name)]
    return a !== undefined && b !== undefined && compareQuantities(a, b) === 0
  })
}

function no(because: string): { readonly ok: false; readonly because: string } {
  return { ok: false, because }
}
