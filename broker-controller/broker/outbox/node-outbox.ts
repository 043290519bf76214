/**
 * Loop: pods bound to a node → one retained message for that node, with all of them and the ConfigMaps and Secrets they
 * name; and that the controller is there.
 */
import { isDeepStrictEqual } from 'node:util'
import type { ObjectMeta } from '../../../api/meta.ts'
import { learntByAnnotation } from '../../../api/node/node-checkpoint.ts'
import type { Pod } from '../../../api/pod.ts'
import type { ControllerMessage, DesiredMessage } from '../../../api/topics.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { isAssigned, mayHave } from '../../store/checkpoint-data.ts'
import type { CheckpointWindow } from '../../store/checkpoint-window.ts'
import { follow, keyFrom, keyText } from '../../store/follow.ts'
import { podsByNode } from '../../store/pods-by-node.ts'
import type { Store, StoredObject, StoreOrigin } from '../../store/store.ts'
import type { Broker } from '../broker.ts'
import { type DesiredPod, desiredPods, isToldAlready } from './desired-pods.ts'
import { namedData, namedDataIndex, projectConfigMap, projectSecret } from './referenced-data.ts'

export type NodeOutboxNeeds = {
  readonly store: Store
  readonly broker: Pick<Broker, 'publish' | 'withdraw'>
  readonly clock: Clock
  readonly log: Log
  /** New at each start of the controller. */
  readonly epoch: string
  /** Which store this is; undefined: one that knows its nodes. */
  readonly origin?: StoreOrigin
  /** Are checkpoints of nodes accepted? undefined: no. */
  readonly checkpoints?: Pick<CheckpointWindow, 'isOpen' | 'onClose'>
  /** Which authorities are trusted now, in one short text. */
  readonly trust?: () => string
  /** How long the node lifecycle controller waits for a silent node. */
  readonly nodeMonitorGraceMs?: number
  /** The longest lease that it gives a node. */
  readonly nodeLeaseLimitMs?: number
}

export interface NodeOutbox extends Loop {
  /** The pods bound to this node, as the outbox knows them. */
  podsOf(node: string): readonly StoredObject<'pods'>[]
  /** What all nodes are told of the controller has changed. */
  announce(): void
}

/** What a node was last told. */
type Told = {
  readonly pods: ReadonlyMap<string, DesiredPod>
  readonly data: Pick<DesiredMessage, 'configMaps' | 'secrets' | 'podCIDR' | 'awaitsCheckpoint'>
  /** The Node that the message is retained for; undefined: there is none, and nothing is retained. */
  readonly nodeUID: string | undefined
  /** Nothing more is published to it before then. */
  readonly quietUntilMs: number
}

/** Changes come in handfuls (a deployment, an eviction): they are told together. */
const debounceMs = 20
/**
 * Each message has all pods of its node, so a large one is followed by a pause: a node gets a megabyte a second at the most,
 * however often its pods change.
 */
const bytesPerMs = 1000
/** Each takes 400 bytes of every node's link: 1.8 MB a month at ten minutes, 0.6 MB at thirty. */
const timeEveryMs = 30 * 60_000

export function nodeOutbox(needs: NodeOutboxNeeds): NodeOutbox {
  const { store, broker, clock, log, epoch, origin, checkpoints, trust, nodeMonitorGraceMs, nodeLeaseLimitMs } = needs
  const index = podsByNode()
  const naming = namedDataIndex()
  const queue = workQueue(clock)
  const told = new Map<string, Told>()
  const storeID = origin === undefined ? {} : { store: origin.id }
  let version = 0

  const nodes = follow({ store, clock, log }, 'nodes', (present, previous) => {
    const isNew = present !== undefined && previous === undefined
    const isOther =
      present !== undefined && (cidrOf(present) !== cidrOf(previous) || isLearnt(present) !== isLearnt(previous))
    if (isNew || isOther) queue.add(present.metadata.name)
    if (present === undefined && previous !== undefined) queue.add(previous.metadata.name)
  })
  const pods = follow({ store, clock, log }, 'pods', (present, previous) => {
    index.update(present, previous)
    naming.tell(present, previous)
    for (const node of new Set([present?.spec.nodeName, previous?.spec.nodeName])) {
      if (node) queue.addAfter(node, debounceMs)
    }
  })

  const newsOf = (kind: 'configMaps' | 'secrets', metadata: ObjectMeta | undefined) => {
    for (const node of naming.nodesNaming(kind, keyText(metadata ?? {}))) queue.addAfter(node, debounceMs)
  }
  const configMaps = follow({ store, clock, log }, 'configmaps', (present, previous) =>
    newsOf('configMaps', (present ?? previous)?.metadata),
  )
  const secrets = follow({ store, clock, log }, 'secrets', (present, previous) =>
    newsOf('secrets', (present ?? previous)?.metadata),
  )

  /** Until then it is told nothing: it would end what it runs and nobody here knows of. */
  const isLearnt = (node: StoredObject<'nodes'> | undefined) =>
    origin === undefined || !checkpoints?.isOpen() || node?.metadata.annotations?.[learntByAnnotation] === origin.id
  checkpoints?.onClose(() => {
    for (const { metadata } of nodes.all()) queue.add(metadata.name)
  })

  /** What its pods name and it may have: a pod that a node claimed opens nothing that others have. */
  const dataOf = (node: string, pods: readonly Pod[]): Told['data'] => {
    const podCIDR = cidrOf(nodes.get({ namespace: '', name: node }))
    const named = namedData(pods)
    const given = pods.every(isAssigned) ? named : namedData(pods.filter(isAssigned))
    const [givenMaps, givenSecrets] = [new Set(given.configMaps), new Set(given.secrets)]
    const maps = named.configMaps.flatMap((key) => {
      const found = configMaps.get(keyFrom(key))
      return found !== undefined && mayHave(node, found, { assigned: givenMaps.has(key) }) ? [found] : []
    })
    const hidden = named.secrets.flatMap((key) => {
      const found = secrets.get(keyFrom(key))
      return found !== undefined && mayHave(node, found, { assigned: givenSecrets.has(key) }) ? [found] : []
    })
    return {
      ...(maps.length > 0 && { configMaps: maps.map(projectConfigMap) }),
      ...(podCIDR && { podCIDR }),
      ...(hidden.length > 0 && { secrets: hidden.map(projectSecret) }),
    }
  }

  const tell = async (node: string): Promise<Reconciled> => {
    const present = nodes.get({ namespace: '', name: node })
    const nodeUID = present?.metadata.uid
    const earlier = await afterDeletion(node, nodeUID)
    const pauseMs = (earlier?.quietUntilMs ?? 0) - clock.monotonicMs()
    if (earlier !== undefined && pauseMs > 0) return { requeueAfterMs: pauseMs }
    if (!isLearnt(present) && present === undefined) return // it is told when it has registered
    const known = isLearnt(present)
    const pods = known ? desiredPods(index.of(node), earlier?.pods ?? new Map()) : new Map<string, DesiredPod>()
    const wanted = [...pods.values()].map(({ pod }) => pod)
    const data = known ? dataOf(node, wanted) : { awaitsCheckpoint: true }
    const isSameNode = nodeUID === undefined || nodeUID === earlier?.nodeUID
    if (
      isSameNode &&
      earlier !== undefined &&
      isToldAlready(pods, earlier.pods) &&
      isDeepStrictEqual(data, earlier.data)
    ) {
      if (nodeUID === undefined && pods.size === 0) told.delete(node)
      else told.set(node, { ...earlier, pods })
      return
    }
    version += 1
    const message: DesiredMessage = { epoch, version, pods: wanted, ...data, ...storeID }
    const body = JSON.stringify(message)
    // Another machine may take the name of a deleted Node: it must find no Secret of the earlier one.
    await broker.publish({ kind: 'desired', node }, body, nodeUID === undefined ? { retain: false } : {})
    if (nodeUID === undefined && pods.size === 0) told.delete(node)
    else told.set(node, { pods, data, nodeUID, quietUntilMs: clock.monotonicMs() + body.length / bytesPerMs })
  }

  /** What was last published for the name. What is retained for a Node that is deleted is withdrawn first, without any pause. */
  const afterDeletion = async (node: string, nodeUID: string | undefined): Promise<Told | undefined> => {
    const earlier = told.get(node)
    if (earlier?.nodeUID === undefined || earlier.nodeUID === nodeUID) return earlier
    await broker.withdraw({ kind: 'desired', node })
    const after = { ...earlier, nodeUID: undefined }
    told.set(node, after)
    return after
  }

  const sayThatWeAre = async (state: ControllerMessage['state']) => {
    const message: ControllerMessage = {
      state,
      epoch,
      time: rfc3339(clock.wallMs()),
      ...storeID,
      ...(trust && { trust: trust() }),
      ...(nodeMonitorGraceMs !== undefined && { nodeMonitorGraceSeconds: nodeMonitorGraceMs / 1000 }),
      ...(nodeLeaseLimitMs !== undefined && { nodeLeaseLimitSeconds: nodeLeaseLimitMs / 1000 }),
      shortLeases: true,
    }
    await broker.publish({ kind: 'controller' }, JSON.stringify(message))
  }

  /** By it nodes know whether their clocks are right. Nobody takes harm from one that was not sent. */
  const sayTheTime = async (signal: AbortSignal) => {
    for (;;) {
      await clock.sleep(timeEveryMs, signal)
      if (signal.aborted) return
      await sayThatWeAre('online').catch((error: unknown) => log.debug('The time was not told', { error }))
    }
  }

  return {
    name: 'node-outbox',
    podsOf: (node) => index.of(node),
    announce: () => void sayThatWeAre('online').catch((error) => log.warn('Nodes not told of a change', { error })),
    async run(signal) {
      await sayThatWeAre('online')
      const telling: Loop = {
        name: 'node-outbox-telling',
        async run(signal) {
          // A node that is told of no pods removes those it runs, and of no Secret starts none that need it: nothing may
          // be told before all of them are known.
          await Promise.all([nodes.listed, pods.listed, configMaps.listed, secrets.listed])
          if (!signal.aborted) await runController({ name: 'node-outbox', reconcile: tell }, queue, log, signal)
        },
      }
      try {
        await runLoops(
          [
            { name: 'node-outbox-nodes', run: nodes.run },
            { name: 'node-outbox-pods', run: pods.run },
            { name: 'node-outbox-configmaps', run: configMaps.run },
            { name: 'node-outbox-secrets', run: secrets.run },
            telling,
            { name: 'node-outbox-time', run: sayTheTime },
          ],
          signal,
          log,
        )
      } finally {
        await sayThatWeAre('lost')
      }
    },
  }
}

function cidrOf(node: StoredObject<'nodes'> | undefined): string | undefined {
  return node?.spec?.podCIDR || node?.spec?.podCIDRs?.[0]
}
