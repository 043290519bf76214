/** Pods of one owner are better apart: on different machines first, in different zones next. */
import type { Pod } from '../../api/pod.ts'
import type { NodeUsage } from './node-usage.ts'

/** The group of the pod that is to be placed, and how many of it each zone has. */
export type Spread = {
  readonly group: string
  readonly nodeCount: number
  readonly ofZone: ReadonlyMap<string, number>
}

/** Pods that are one another's likes: of one controller, or else with the same labels. Undefined: it is like nobody. */
export function groupOf({ metadata }: Pod): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  if (owner !== undefined) return owner.uid
  const labels = Object.entries(metadata.labels ?? {})
  return labels.length === 0 ? undefined : `${metadata.namespace}/${JSON.stringify(labels.sort())}`
}

export function zoneLabel({ node }: NodeUsage): string | undefined {
  return node.metadata.labels?.['topology.kubernetes.io/zone']
}

/** What Kubernetes spreads by when nobody says otherwise: a skew of 3 between machines and of 5 between zones is fine. */
const hostSkew = 3
const zoneSkew = 5

/** 0 to 100 for each node: the fewer of its like are there, the more. */
export function spreadScores(nodes: readonly NodeUsage[], { group, nodeCount, ofZone }: Spread): number[] {
  const crowd = nodes.map((usage) => {
    const zone = zoneLabel(usage)
    const here = usage.ofGroup(group) * Math.log(nodeCount + 2) + (hostSkew - 1)
    return zone === undefined ? here : here + (ofZone.get(zone) ?? 0) * Math.log(ofZone.size + 2) + (zoneSkew - 1)
  })
  const [least, most] = [Math.min(...crowd), Math.max(...crowd)]
  return crowd.map((count) => (most === 0 ? 100 : Math.floor((100 * (most + least - count)) / most)))
}
