/** Records an Event when the pods of a node begin or cease to be held, and when it begins or ceases to flap. */
import type { Node } from '../../../api/node.ts'
import type { StoredObject } from '../../store/store.ts'
import { type FlappingSettings, flappingTaint } from './flapping.ts'
import type { NodeLifecycleEvents } from './node-events.ts'
import type { Judgement } from './node-judgement.ts'

export interface NodeAnnouncements {
  recordHold(node: StoredObject<'nodes'>, judgement: Judgement | undefined): Promise<void>
  /** True when the node has just become steady. */
  recordFlapping(node: StoredObject<'nodes'>, wasFlapping: boolean): Promise<boolean>
  delete(name: string): void
}

export function nodeAnnouncements(events: NodeLifecycleEvents, settings: FlappingSettings): NodeAnnouncements {
  /** The last recorded reason of each node whose pods are held. */
  const held = new Map<string, string>()
  return {
    async recordHold(node, judgement) {
      const { name } = node.metadata
      const hold = judgement?.hold
      if (hold?.key === held.get(name)) return
      if (hold === undefined) held.delete(name)
      else held.set(name, hold.key)
      if (hold !== undefined) await events.evictionsHeld(node, hold.text)
      else if (judgement?.silence?.is === 'silent') await events.evictionsResumed(node)
    },
    async recordFlapping(node, wasFlapping) {
      if (hasFlappingTaint(node) === wasFlapping) return false
      if (wasFlapping) {
        await events.steady(node)
        return true
      }
      const { flappingLosses, flappingWindowMs, flappingSettleTimeMs } = settings
      const [windowMin, settleMin] = [flappingWindowMs, flappingSettleTimeMs].map((ms) => Math.round(ms / 60_000))
      const often = `Ready was lost ${flappingLosses} times within ${windowMin} min`
      await events.flapping(node, `${often}: no new pods until it has been Ready for ${settleMin} min.`)
      return false
    },
    delete: (name) => void held.delete(name),
  }
}

export function hasFlappingTaint(node: Node | undefined): boolean {
  return (node?.spec?.taints ?? []).some(({ key }) => key === flappingTaint)
}
