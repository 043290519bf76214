/** Loop: pods bound to a node → one retained message for that node, with all of them; and that the controller is there. */
import type { Pod } from '../../api/pod.ts'
import type { ControllerMessage, DesiredMessage } from '../../api/topics.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { follow } from '../store/follow.ts'
import { podsByNode } from '../store/pods-by-node.ts'
import type { Store, StoredObject } from '../store/store.ts'
import type { Broker } from './broker.ts'
import { desiredPods, isToldAlready } from './desired.ts'

export type NodeOutboxNeeds = {
  readonly store: Store
  readonly broker: Pick<Broker, 'publish'>
  readonly clock: Clock
  readonly log: Log
  /** New at each start of the controller. */
  readonly epoch: string
}

export interface NodeOutbox extends Loop {
  /** The pods bound to this node, as the outbox knows them. */
  podsOf(node: string): readonly StoredObject<'pods'>[]
}

/** Changes come in handfuls (a deployment, an eviction): they are told together. */
const debounceMs = 20

export function nodeOutbox({ store, broker, clock, log, epoch }: NodeOutboxNeeds): NodeOutbox {
  const index = podsByNode()
  const queue = workQueue(clock)
  const told = new Map<string, ReadonlyMap<string, Pod>>()
  let version = 0

  const nodes = follow({ store, clock, log }, 'nodes', (present, previous) => {
    if (present !== undefined && previous === undefined) queue.add(present.metadata.name)
    if (present === undefined && previous !== undefined) told.delete(previous.metadata.name)
  })
  const pods = follow({ store, clock, log }, 'pods', (present, previous) => {
    index.tell(present, previous)
    for (const node of new Set([present?.spec.nodeName, previous?.spec.nodeName])) {
      if (node) queue.addAfter(node, debounceMs)
    }
  })

  const tell = async (node: string): Promise<undefined> => {
    const earlier = told.get(node)
    const now = desiredPods(index.of(node), earlier ?? new Map())
    if (isToldAlready(now, earlier)) return
    version += 1
    const message: DesiredMessage = { epoch, version, pods: [...now.values()] }
    await broker.publish({ kind: 'desired', node }, JSON.stringify(message))
    told.set(node, now)
  }

  const sayThatWeAre = async (state: ControllerMessage['state']) => {
    const message: ControllerMessage = { state, epoch, time: rfc3339(clock.wallMs()) }
    await broker.publish({ kind: 'controller' }, JSON.stringify(message))
  }

  return {
    name: 'node-outbox',
    podsOf: (node) => index.of(node),
    async run(signal) {
      await sayThatWeAre('online')
      const telling: Loop = {
        name: 'node-outbox-telling',
        async run(signal) {
          // A node that is told of no pods removes those it runs: nothing may be told before all of them are known.
          await pods.listed
          if (!signal.aborted) await runController({ name: 'node-outbox', reconcile: tell }, queue, log, signal)
        },
      }
      try {
        await runLoops(
          [{ name: 'node-outbox-nodes', run: nodes.run }, { name: 'node-outbox-pods', run: pods.run }, telling],
          signal,
          log,
        )
      } finally {
        await sayThatWeAre('lost')
      }
    },
  }
}
