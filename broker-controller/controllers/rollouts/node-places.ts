/** Where a node is, and how many nodes of a place may be busy at a time. Decides only. */
import { segmentOf } from '../../../api/network/segment.ts'
import type { Node } from '../../../api/node.ts'

/** Link and zone; empty if it has none. */
export type LinkAndZone = { readonly link: string; readonly zone: string }

/** Without a number there is no limit. */
export type PlaceLimits = {
  readonly perLink?: number | undefined
  readonly perZone?: number | undefined
  readonly atOnce?: number | undefined
}

const zoneLabel = 'topology.kubernetes.io/zone'
/** As the node lifecycle has it: the access point, switch or line that the node hangs on. */
const linkLabel = 'bramble.dev/link'

/** Without a label the link is the segment of its address. */
export function linkAndZoneOf({ metadata: { labels = {}, annotations }, status }: Node): LinkAndZone {
  const [address] = internalAddressesOf(status)
  return {
    link: labels[linkLabel] || (address === undefined ? '' : segmentOf(annotations, address)),
    zone: labels[zoneLabel] ?? '',
  }
}

export function internalAddressesOf(status: Node['status']): readonly string[] {
  return (status?.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []))
}

/** Counts the nodes that are busy. A node without a link or a zone is limited by the others only. */
export function freePlaces({ perLink, perZone, atOnce }: PlaceLimits) {
  const [links, zones] = [new Map<string, number>(), new Map<string, number>()]
  let all = 0
  const isFull = (most: number | undefined, taken: ReadonlyMap<string, number>, key: string) =>
    most !== undefined && key !== '' && (taken.get(key) ?? 0) >= most
  return {
    has: ({ link, zone }: LinkAndZone) =>
      (atOnce === undefined || all < atOnce) && !isFull(perLink, links, link) && !isFull(perZone, zones, zone),
    take({ link, zone }: LinkAndZone) {
      all += 1
      links.set(link, (links.get(link) ?? 0) + 1)
      zones.set(zone, (zones.get(zone) ?? 0) + 1)
    },
  }
}
