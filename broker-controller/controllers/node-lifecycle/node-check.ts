/** Checks one node: its silence, labels, taints, Events and pods. Reads objects from the roster and writes what differs. */
import { rfc3339 } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { StoredObject } from '../../store/store.ts'
import type { NoExecuteTainting } from './no-execute-tainting.ts'
import { hasFlappingTaint, type NodeAnnouncements } from './node-announcements.ts'
import { silentNode } from './node-conditions.ts'
import type { NodeLifecycleEvents } from './node-events.ts'
import { type NodeJudge, settledNode } from './node-judgement.ts'
import type { NodeLifecycleSettings } from './node-lifecycle-settings.ts'
import { noExecuteStep, withoutNoExecuteTaints } from './node-taints.ts'
import { type NodeWriteNeeds, rewriteNode } from './node-writes.ts'
import type { PodMarker } from './pod-marker.ts'
import { isReady } from './zones.ts'

export type NodeCheckNeeds = NodeWriteNeeds & {
  readonly log: Log
  readonly judge: NodeJudge
  readonly nodeEvents: NodeLifecycleEvents
  readonly announcements: NodeAnnouncements
  readonly marker: PodMarker
  readonly tainting: NoExecuteTainting
  readonly settings: NodeLifecycleSettings
}

/** Checks the node of this name; rejects when something could not be written. `isNew`: this process has not seen it before. */
export type NodeCheck = (name: string, isNew: boolean) => Promise<void>

export function nodeCheck(needs: NodeCheckNeeds): NodeCheck {
  const { clock, log, roster, judge, nodeEvents, announcements, marker, tainting, settings } = needs
  const stamp = () => rfc3339(clock.wallMs())

  /** Silence moves Ready to Unknown; a node that was Ready until now fails with its pods. */
  const markIfSilent = async (name: string) => {
    const silence = judge(name)?.silence
    if (silence === undefined) return
    let wasReady = false
    const change = (node: StoredObject<'nodes'>) => {
      wasReady = isReady(node)
      const still = judge(name)?.silence
      return still && silentNode(node, still, stamp())
    }
    const written = await rewriteNode(needs, name, change, 'status')
    if (written === undefined) return
    log.info('Node is silent', { node: name, silence: silence.is })
    if (!wasReady) return
    marker.failed(name)
    await nodeEvents.notReady(written)
  }

  const announce = async (name: string, wasFlapping: boolean) => {
    const [entry, judgement] = [roster.get(name), judge(name)]
    if (entry === undefined) return
    await announcements.recordHold(entry.node, judgement)
    if (wasFlapping && !hasFlappingTaint(entry.node)) roster.steady(name)
    await announcements.recordFlapping(entry.node, wasFlapping)
  }

  const enqueue = (name: string) => {
    const entry = roster.get(name)
    if (entry === undefined) return
    if (noExecuteStep(entry.node).step !== 'queue') return tainting.remove(name)
    if (judge(name)?.isProven === true) tainting.add(name, entry.zone)
  }

  return async (name, isNew) => {
    const entry = roster.get(name)
    if (entry === undefined) return
    if (isNew) {
      await nodeEvents.registered(entry.node)
      await rewriteNode(needs, name, (node) => withoutNoExecuteTaints(node))
    }
    await markIfSilent(name)
    const wasFlapping = hasFlappingTaint(roster.get(name)?.node)
    await rewriteNode(needs, name, (node) => {
      const judgement = judge(name)
      return judgement && settledNode(node, judgement, stamp(), settings)
    })
    await announce(name, wasFlapping)
    await marker.markNode(name)
    enqueue(name)
  }
}
