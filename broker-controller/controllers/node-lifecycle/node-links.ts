/** The nodes of each link, and those that were lost with it. The cost is per change of a link. */
import { judgeLink, type LinkSettings, type Suspicion } from './link-suspicion.ts'

export type NodeOnLink = {
  /** undefined: not reported. */
  readonly link: string | undefined
  /** Since when it is Unknown; undefined: it is not. */
  readonly lostMs: number | undefined
  readonly isOutOfService: boolean
}

export interface NodeLinks {
  put(name: string, node: NodeOnLink): void
  delete(name: string): void
  /** Thinks again about the links that changed. Names the nodes for which something else holds now. */
  judge(nowMs: number): readonly string[]
  /** Why this node keeps its pods, if it is for its link's sake. */
  suspicionOf(name: string, nowMs: number): Suspicion | undefined
}

type Link = {
  readonly nodes: Set<string>
  readonly lost: Map<string, number>
  readonly outOfService: Set<string>
  suspicions: readonly Suspicion[]
}

export function nodeLinks(settings: LinkSettings): NodeLinks {
  const nodes = new Map<string, NodeOnLink>()
  const links = new Map<string, Link>()
  const changed = new Set<string>()

  const linkNamed = (name: string): Link => {
    const link = links.get(name) ?? { nodes: new Set(), lost: new Map(), outOfService: new Set(), suspicions: [] }
    links.set(name, link)
    return link
  }

  const take = (name: string) => {
    const link = nodes.get(name)?.link
    nodes.delete(name)
    if (link === undefined) return
    const { nodes: names, lost, outOfService } = linkNamed(link)
    for (const group of [names, lost, outOfService]) group.delete(name)
    if (names.size === 0) links.delete(link)
    else changed.add(link)
  }

  const join = (name: string, { lostMs, isOutOfService }: NodeOnLink, linkName: string) => {
    const link = linkNamed(linkName)
    link.nodes.add(name)
    if (lostMs === undefined) link.lost.delete(name)
    else link.lost.set(name, lostMs)
    if (isOutOfService) link.outOfService.add(name)
    else link.outOfService.delete(name)
    changed.add(linkName)
  }

  return {
    put(name, node) {
      const before = nodes.get(name)
      if (before !== undefined && isSame(before, node)) return
      if (before?.link !== node.link) take(name)
      nodes.set(name, node)
      if (node.link !== undefined) join(name, node, node.link)
    },
    delete: take,
    judge(nowMs) {
      const concerned = new Set<string>()
      for (const name of changed) {
        const link = links.get(name)
        if (link === undefined || (link.lost.size === 0 && link.suspicions.length === 0)) continue
        const before = link.suspicions
        link.suspicions = judgeLink(name, before, link, nowMs, settings)
        for (const member of membersOfChanged(before, link.suspicions)) concerned.add(member)
      }
      changed.clear()
      return [...concerned]
    },
    suspicionOf(name, nowMs) {
      const node = nodes.get(name)
      if (node?.link === undefined || node.lostMs === undefined) return undefined
      return links
        .get(node.link)
        ?.suspicions.find(({ members, untilMs }) => nowMs < untilMs && members.get(name) === node.lostMs)
    },
  }
}

function isSame(a: NodeOnLink, b: NodeOnLink): boolean {
  return a.link === b.link && a.lostMs === b.lostMs && a.isOutOfService === b.isOutOfService
}

/** Members of suspicions that have begun or ended. */
function membersOfChanged(before: readonly Suspicion[], now: readonly Suspicion[]): readonly string[] {
  return [...before, ...now]
    .filter((one) => !before.includes(one) || !now.includes(one))
    .flatMap(({ members }) => [...members.keys()])
}
