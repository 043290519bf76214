/** The links that took machines down: access points, switches, uplinks. */
import type { NodeCard } from '../../api/dashboard/dashboard-messages.ts'

export type LostLink = { readonly link: string; readonly machines: number }

/** The links of which several machines were lost together, the one with the most first. */
export function lostLinks(nodes: readonly NodeCard[]): readonly LostLink[] {
  const counts = new Map<string, number>()
  for (const { lostLink } of nodes) {
    if (lostLink !== undefined) counts.set(lostLink, (counts.get(lostLink) ?? 0) + 1)
  }
  return [...counts]
    .map(([link, machines]) => ({ link, machines }))
    .sort((a, b) => b.machines - a.machines || (a.link < b.link ? -1 : 1))
}
