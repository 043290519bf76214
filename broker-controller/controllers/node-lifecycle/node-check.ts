/** Checks one node: its silence, labels, taints, Events and pods. Reads the store's objects from the roster and writes what differs. */
import type { Node } from '../../../api/node.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { type RewriteNeeds, rewrite } from '../../store/rewrite.ts'
import type { StoredObject } from '../../store/store.ts'
import type { NoExecuteTainting } from './no-execute-tainting.ts'
import { hasFlappingTaint, type NodeAnnouncements } from './node-announcements.ts'
import { silentNode } from './node-conditions.ts'
import type { NodeLifecycleEvents } from './node-events.ts'
import { type Judgement, judgeNode, settledNode } from './node-judgement.ts'
import type { NodeLifecycleSettings } from './node-lifecycle-settings.ts'
import type { NodeRoster } from './node-roster.ts'
import { noExecuteStep, withNoExecuteTaint, withoutNoExecuteTaints } from './node-taints.ts'
import type { PodMarker } from './pod-marker.ts'
import { isReady } from './zones.ts'

export type NodeCheckNeeds = RewriteNeeds & {
  readonly log: Log
  readonly roster: NodeRoster
  readonly nodeEvents: NodeLifecycleEvents
  readonly announcements: NodeAnnouncements
  readonly marker: PodMarker
  readonly settings: NodeLifecycleSettings
}

export interface NodeCheck {
  /** Checks the node; rejects when something could not be written. `isNew`: this process has not seen it before. */
  check(name: string, isNew: boolean, tainting: NoExecuteTainting): Promise<void>
  /** Puts the NoExecute taint on the node, unless it is ready or its failure is not proven any more. */
  taint(name: string): Promise<void>
  clearNoExecuteTaints(name: string): Promise<void>
}

export function nodeCheck(needs: NodeCheckNeeds): NodeCheck {
  const { store, clock, log, roster, nodeEvents, announcements, marker, settings } = needs
  const stamp = () => rfc3339(clock.wallMs())

  /** As of this moment; undefined for a node that does not exist. */
  const judge = (name: string): Judgement | undefined => {
    const [entry, nowMs] = [roster.get(name), clock.monotonicMs()]
    return entry && judgeNode(entry, roster.suspicionOf(name, nowMs), settings, nowMs)
  }

  const put = (written: StoredObject<'nodes'> | undefined) => {
    if (written !== undefined) roster.putNode(written, { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() })
  }

  const change = async (name: string, wanted: (node: StoredObject<'nodes'>) => Node | undefined) => {
    const entry = roster.get(name)
    if (entry === undefined || wanted(entry.node) === undefined) return
    const { uid } = entry.node.metadata
    put(await rewrite({ store, clock }, 'nodes', { key: { namespace: '', name }, uid, change: wanted }))
  }

  /** Silence moves Ready to Unknown; a node that was Ready until now fails with its pods. */
  const markIfSilent = async (name: string) => {
    const entry = roster.get(name)
    const silence = judge(name)?.silence
    if (entry === undefined || silence === undefined || silentNode(entry.node, silence, stamp()) === undefined) return
    let wasReady = false
    const written = await rewrite({ store, clock }, 'nodes', {
      key: { namespace: '', name },
      uid: entry.node.metadata.uid,
      part: 'status',
      change: (node) => {
        wasReady = isReady(node)
        const still = judge(name)?.silence
        return still && silentNode(node, still, stamp())
      },
    })
    if (written === undefined) return
    put(written)
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

  const enqueue = (name: string, tainting: NoExecuteTainting) => {
    const entry = roster.get(name)
    if (entry === undefined) return
    if (noExecuteStep(entry.node).step !== 'queue') return tainting.remove(name)
    if (judge(name)?.isProven === true) tainting.add(name, entry.zone)
  }

  return {
    async check(name, isNew, tainting) {
      const entry = roster.get(name)
      if (entry === undefined) return
      if (isNew) {
        await nodeEvents.registered(entry.node)
        await change(name, (node) => withoutNoExecuteTaints(node))
      }
      await markIfSilent(name)
      const wasFlapping = hasFlappingTaint(roster.get(name)?.node)
      await change(name, (node) => {
        const judgement = judge(name)
        return judgement && settledNode(node, judgement, stamp(), settings)
      })
      await announce(name, wasFlapping)
      await marker.markNode(name)
      enqueue(name, tainting)
    },
    async taint(name) {
      if (judge(name)?.isProven !== true) return
      await change(name, (node) => (isReady(node) ? undefined : withNoExecuteTaint(node, stamp())))
    },
    clearNoExecuteTaints: (name) => change(name, (node) => withoutNoExecuteTaints(node)),
  }
}
