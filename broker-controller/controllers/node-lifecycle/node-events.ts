/** Records Events about a node that registers, fails or is removed. An Event that cannot be written is logged. */
import type { Log } from '../../../daemon/log.ts'
import type { Occurrence } from '../../store/event-correlation.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { nodeReference, podReference } from '../../store/references.ts'
import type { StoredObject } from '../../store/store.ts'

export interface NodeLifecycleEvents {
  registered(node: StoredObject<'nodes'>): Promise<void>
  removed(node: StoredObject<'nodes'>): Promise<void>
  notReady(node: StoredObject<'nodes'>): Promise<void>
  /** Its pods stay for a while although it is gone. */
  evictionsHeld(node: StoredObject<'nodes'>, why: string): Promise<void>
  evictionsResumed(node: StoredObject<'nodes'>): Promise<void>
  flapping(node: StoredObject<'nodes'>, how: string): Promise<void>
  steady(node: StoredObject<'nodes'>): Promise<void>
  podNotReady(pod: StoredObject<'pods'>): Promise<void>
}

const component = 'node-controller'

export function nodeLifecycleEvents(events: EventRecorder, log: Log): NodeLifecycleEvents {
  const record = async (occurrence: Omit<Occurrence, 'component'>) => {
    try {
      await events.record({ ...occurrence, component })
    } catch (error) {
      log.warn('Event not recorded', { reason: occurrence.reason, object: occurrence.object.name, error })
    }
  }
  const ofNode = (node: StoredObject<'nodes'>, reason: string, message: string, type: Occurrence['type'] = 'Normal') =>
    record({ object: nodeReference(node.metadata.name), type, reason, message })

  return {
    registered: (node) =>
      ofNode(node, 'RegisteredNode', eventText(node, `Registered Node ${node.metadata.name} in Controller`)),
    removed: (node) =>
      ofNode(node, 'RemovingNode', eventText(node, `Removing Node ${node.metadata.name} from Controller`)),
    notReady: (node) => ofNode(node, 'NodeNotReady', `Node ${node.metadata.name} status is now: NodeNotReady`),
    evictionsHeld: (node, why) => ofNode(node, 'EvictionsHeld', why),
    evictionsResumed: (node) =>
      ofNode(node, 'EvictionsResumed', 'The node did not come back: its pods are evicted as their tolerations allow.'),
    flapping: (node, how) => ofNode(node, 'NodeFlapping', how, 'Warning'),
    steady: (node) => ofNode(node, 'NodeSteady', 'The node has stayed Ready: new pods may be placed on it again.'),
    podNotReady: (pod) =>
      record({ object: podReference(pod), type: 'Warning', reason: 'NodeNotReady', message: 'Node is not ready' }),
  }
}

function eventText(node: StoredObject<'nodes'>, what: string): string {
  return `Node ${node.metadata.name} event: ${what}`
}
