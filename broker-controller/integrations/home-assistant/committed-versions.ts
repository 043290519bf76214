/** The versions of the agent that are committed in the fleet, counted as Nodes change: a fleet of 10,000 is not read for each look. */
import type { Node } from '../../../api/node.ts'
import { writtenOn } from '../../controllers/rollouts/node-facts.ts'

export type CommittedVersion = { readonly version: string; readonly sequence: number }

export interface CommittedVersions {
  /** `sign`: the node is as given from now on, or no longer. */
  count(node: Node, sign: 1 | -1): void
  /** The oldest that a connected node runs; where none is connected, of all nodes. Undefined: no agent updates itself. */
  lowest(): CommittedVersion | undefined
}

type Share = { readonly version: string; readonly connected: number; readonly all: number }

export function committedVersions(): CommittedVersions {
  const shares = new Map<number, Share>()
  return {
    count(node, sign) {
      const { report } = writtenOn(node)
      if (report === undefined) return
      const { version, sequence } = report
      const before = shares.get(sequence) ?? { version, connected: 0, all: 0 }
      const connected = before.connected + (isConnected(node) ? sign : 0)
      const all = before.all + sign
      if (all === 0) shares.delete(sequence)
      else shares.set(sequence, { version, connected, all })
    },
    lowest() {
      const least = (of: (share: Share) => number) => {
        let found: CommittedVersion | undefined
        for (const [sequence, share] of shares)
          if (of(share) > 0 && (found === undefined || sequence < found.sequence))
            found = { version: share.version, sequence }
        return found
      }
      return least(({ connected }) => connected) ?? least(({ all }) => all)
    },
  }
}

function isConnected({ status }: Node): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return ready !== undefined && ready.status !== 'Unknown'
}
