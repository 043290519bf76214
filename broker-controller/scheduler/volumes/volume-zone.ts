/** VolumeZone: a node in a zone takes no volumes of other zones. Volumes carry their zones as labels, or in the old way as a list in one. */
import type { Labels } from '../../../api/selectors.ts'
import type { NodeAllocation } from '../node-usage.ts'
import type { KnownVolume } from './volume-cache.ts'

export type ZoneRule = { readonly label: string; readonly values: ReadonlySet<string> }

const present: { readonly [label: string]: string } = {
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
}
const labels = [...Object.keys(present), ...Object.values(present)]

export function zoneRulesOf({ metadata }: KnownVolume): readonly ZoneRule[] {
  return labels.flatMap((label) => {
    const zones = metadata.labels?.[label]?.split('__').map((zone) => zone.trim())
    return zones === undefined || zones.includes('') ? [] : [{ label, values: new Set(zones) }]
  })
}

export function zoneRefusal(rules: readonly ZoneRule[], node: NodeAllocation): string | undefined {
  if (rules.length === 0 || !labels.some((label) => Object.hasOwn(node.labels, label))) return undefined
  const isHere = ({ label, values }: ZoneRule) => values.has(zoneOf(node.labels, label) ?? '')
  return rules.every(isHere) ? undefined : 'node(s) had no available volume zone'
}

/** A node that has no old label may have the present one. */
function zoneOf(of: Labels, label: string): string | undefined {
  return of[label] ?? of[present[label] ?? label]
}
