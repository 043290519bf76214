/** Loop: withdraws messages that an external MQTT server retains, and that belong to nothing any more. */
import { serviceShards } from '../../../api/network/service-endpoints.ts'
import type { NodeTopic, Topic } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'

export type RetainedCleanupNeeds = {
  readonly store: Store
  readonly broker: {
    /** Withdraws what is retained on the topic, unless this controller has published it. */
    withdrawForeign(topic: Topic): Promise<void>
    foundRetained(): readonly NodeTopic[]
    onConnected(listener: () => void): void
  }
  /** Whether the messages of the fleet's network are published. */
  readonly hasNetwork: boolean
  readonly clock: Clock
  readonly log: Log
}

export type RetainedFacts = {
  /** Topics that had a retained message when the controller connected. */
  readonly found: readonly NodeTopic[]
  /** Names of the Nodes. */
  readonly nodes: ReadonlySet<string>
  /** Names of Nodes that were deleted since. */
  readonly deleted: ReadonlySet<string>
  readonly hasNetwork: boolean
}

/** What no reader is to receive: messages of and for nodes that do not exist, and those of a network that is turned off. */
export function staleTopics({ found, nodes, deleted, hasNetwork }: RetainedFacts): readonly Topic[] {
  const ofNodes = found.filter(({ node }) => !nodes.has(node))
  const gone = new Set([...ofNodes.map(({ node }) => node), ...[...deleted].filter((node) => !nodes.has(node))])
  const shards = Array.from({ length: serviceShards }, (_, shard) => ({ kind: 'services', shard }) as const)
  return [
    ...(hasNetwork ? [] : [{ kind: 'network' } as const, ...shards, ...[...nodes].map(policiesOf)]),
    ...ofNodes.filter(({ kind }) => kind === 'pod'),
    ...[...gone].flatMap((node) => [
      { kind: 'desired', node } as const,
      { kind: 'connection', node } as const,
      { kind: 'status', node } as const,
      policiesOf(node),
      { kind: 'volumes', node } as const,
    ]),
  ]
}

function policiesOf(node: string): Topic {
  return { kind: 'policies', node }
}

const onlyKey = 'retained'
/** Nodes that join publish before they are registered: what they retained is not needed again, and withdrawn only later. */
const settleMs = 10_000

export function retainedCleanup({ store, broker, hasNetwork, clock, log }: RetainedCleanupNeeds): Loop {
  const queue = workQueue(clock)
  const deleted = new Set<string>()
  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    if (present !== undefined || previous === undefined) return
    deleted.add(previous.metadata.name)
    queue.addAfter(onlyKey, settleMs)
  })
  let isNewConnection = false
  broker.onConnected(() => {
    isNewConnection = true
    queue.addAfter(onlyKey, settleMs)
  })

  const reconcile = async () => {
    const names = new Set([...nodes.all()].map(({ metadata }) => metadata.name))
    // Those of a network that is turned off are one for each Node: once for a connection.
    const topics = staleTopics({
      ...{ found: broker.foundRetained(), nodes: names, deleted },
      hasNetwork: hasNetwork || !isNewConnection,
    })
    isNewConnection = false
    deleted.clear()
    for (const topic of topics) await broker.withdrawForeign(topic)
    return undefined
  }
  const withdrawing = async (signal: AbortSignal) => {
    await nodes.listed
    if (!signal.aborted) await runController({ name: 'retained-cleanup', reconcile }, queue, log, signal)
  }
  return {
    name: 'retained-cleanup',
    run: (signal) =>
      runLoops(
        [
          { name: 'retained-cleanup-nodes', run: nodes.run },
          { name: 'retained-cleanup-messages', run: withdrawing },
        ],
        signal,
        log,
      ),
  }
}
