/**
 * Loop: pods bound to a node → one retained message for that node, with all of them and the ConfigMaps and Secrets they refer to: those
 * that the node holds by reference, the others as they are. It also publishes that the controller is online, and its time.
 */
import type { ControllerMessage, DesiredMessage } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { CheckpointWindow } from '../../store/checkpoints/checkpoint-window.ts'
import type { ContentProver } from '../../store/checkpoints/content-proof.ts'
import type { Store, StoredObject, StoreOrigin } from '../../store/store.ts'
import type { Broker } from '../broker.ts'
import { claimRecords } from './claim-records.ts'
import { controllerMessage } from './controller-message.ts'
import { type DesiredContent, desiredContent, isPublished, type PublishedDesired } from './desired-content.ts'
import { namedContents, referencesMessage, wholeMessage } from './desired-message.ts'
import { desiredSources } from './desired-sources.ts'
import { type HeldContents, heldContents } from './held-contents.ts'

export type NodeOutboxNeeds = {
  readonly store: Store
  readonly broker: Pick<Broker, 'publish' | 'withdraw' | 'identifiesSenders'>
  readonly clock: Clock
  readonly log: Log
  /** New at each start of the controller. */
  readonly epoch: string
  /** Identifies the store; undefined: no checkpoints of nodes are needed. */
  readonly origin?: StoreOrigin
  /** Are checkpoints of nodes accepted? undefined: no. */
  readonly checkpoints?: Pick<CheckpointWindow, 'isOpen' | 'onClose'>
  /** Proves the content that nodes receive; undefined: it has no proofs. */
  readonly contentProver?: Pick<ContentProver, 'proofOf' | 'proofOfRecord'>
  /** Where containers reach the API; undefined: their environment does not name it. */
  readonly apiServer?: DesiredMessage['apiServer']
  /** Identifies the authorities that are trusted now. */
  readonly trust?: () => string
  /** The addresses of all controllers; undefined: this is the only one. */
  readonly servers?: () => Pick<ControllerMessage, 'apiServers' | 'mqttServers'>
  /** How long the node lifecycle controller waits for a silent node. */
  readonly nodeMonitorGraceMs?: number
  /** The longest lease that it grants a node. */
  readonly nodeLeaseLimitMs?: number
  /** The fleet has a network of its own, and its messages are published; undefined: not. */
  readonly podNetwork?: { readonly clusterDomain: string } | undefined
}

export interface NodeOutbox extends Loop {
  /** The pods bound to this node, as far as the outbox has read them. */
  podsOf(node: string): readonly StoredObject<'pods'>[]
  /** Publishes the `controller` message again, because its content changed. */
  announce(): void
  /** The node has connected, with an agent that reads references or does not. */
  nodeOnline(node: string, readsReferences: boolean): void
  /** The node has reported the names of the contents that it holds. */
  nodeHolds(node: string, names: readonly string[]): void
}

/** Changes often come together (a deployment, an eviction) and are published in one message. */
const debounceMs = 20
/**
 * Each message has all pods of its node, so a large one is followed by a pause: a node gets a megabyte a second at the most,
 * however often its pods change.
 */
const bytesPerMs = 1000
/** Each takes 400 bytes of every node's link: 1.8 MB a month at ten minutes, 0.6 MB at thirty. */
const timeEveryMs = 30 * 60_000

export function nodeOutbox(needs: NodeOutboxNeeds): NodeOutbox {
  const { clock, log, checkpoints } = needs
  const queue = workQueue(clock)
  const sources = desiredSources(needs, (node, because) =>
    because === 'node' ? queue.add(node) : queue.addAfter(node, debounceMs),
  )
  checkpoints?.onClose(() => {
    for (const node of sources.nodeNames()) queue.add(node)
  })
  const held = heldContents()
  const recordOf = needs.contentProver && claimRecords(needs.contentProver)
  const publisher = desiredPublisher(needs, held)
  const publishState = statePublisher(needs)

  const reconcile = async (name: string): Promise<Reconciled> => {
    const node = sources.node(name)
    const nodeUID = node?.metadata.uid
    const earlier = await publisher.withdrawDeleted(name, nodeUID)
    const pauseMs = (earlier?.pausedUntilMs ?? 0) - clock.monotonicMs()
    if (pauseMs > 0) return { requeueAfterMs: pauseMs }
    const content = desiredContent(name, {
      ...sources,
      node,
      pods: sources.podsOf(name),
      acceptingStoreID: checkpoints?.isOpen() ? needs.origin?.id : undefined,
      apiServer: needs.apiServer,
      clusterDomain: needs.podNetwork?.clusterDomain,
      ...(needs.contentProver && { proofOf: needs.contentProver.proofOf }),
      ...(recordOf && { recordOf }),
      earlier,
    })
    if (content !== undefined) await publisher.publish(name, node, content)
    return undefined
  }

  /** In another form. A node without a Node object must not receive that it has no pods. */
  const publishAgain = (node: string) => {
    if (publisher.hasPublished(node)) queue.add(node)
  }

  const reconciling = async (signal: AbortSignal) => {
    // A node that receives no pods removes those it runs, and without a Secret it starts none that need it: so nothing is
    // published before all objects have been read.
    await sources.listed
    if (!signal.aborted) await runController({ name: 'node-outbox', reconcile }, queue, log, signal)
  }

  /** Nodes check their clocks by it. A message that could not be sent does no harm. */
  const publishTime = async (signal: AbortSignal) => {
    for (;;) {
      await clock.sleep(timeEveryMs, signal)
      if (signal.aborted) return
      await publishState('online').catch((error: unknown) => log.debug('The time was not published', { error }))
    }
  }

  return {
    name: 'node-outbox',
    podsOf: sources.podsOf,
    announce: () => void publishState('online').catch((error) => log.warn('A change was not published', { error })),
    nodeOnline(node, readsReferences) {
      held.connected(node, readsReferences)
      if (!readsReferences) publishAgain(node)
    },
    nodeHolds(node, names) {
      held.reported(node, names)
      publishAgain(node)
    },
    async run(signal) {
      await publishState('online')
      const own = [
        { name: 'node-outbox-desired', run: reconciling },
        { name: 'node-outbox-time', run: publishTime },
      ]
      try {
        await runLoops([...sources.loops, ...own], signal, log)
      } finally {
        await publishState('lost')
      }
    },
  }
}

function statePublisher({
  broker,
  clock,
  origin,
  trust,
  podNetwork,
  servers,
  ...facts
}: NodeOutboxNeeds): (state: ControllerMessage['state']) => Promise<void> {
  return (state) => {
    const message = controllerMessage(
      state,
      {
        ...facts,
        storeID: origin?.id,
        trust: trust?.(),
        servers: servers?.(),
        shortLeases: broker.identifiesSenders,
        network: podNetwork !== undefined,
      },
      clock.wallMs(),
    )
    return broker.publish({ kind: 'controller' }, JSON.stringify(message))
  }
}

/** `form`: with all objects, or with references to those that the node held. */
type Published = PublishedDesired & { readonly form: 'whole' | 'references' }

/** Another machine may take the name of a deleted Node: it must find no Secret of the earlier one. */
function retention<T>(nodeUID: string | undefined, retaining: T): T | { readonly retain: false } {
  return nodeUID === undefined ? { retain: false } : retaining
}

/** Names of contents that the node does not hold. */
function contentsMissing(names: Iterable<string>, holds: ReturnType<HeldContents['of']>): readonly string[] {
  return holds === undefined || holds === 'all' ? [] : [...names].filter((one) => !holds.has(one))
}

/** Publishes the messages of nodes, and remembers the last one of each. */
function desiredPublisher({ broker, clock, epoch, origin }: NodeOutboxNeeds, held: HeldContents) {
  const published = new Map<string, Published>()
  let version = 0

  const remember = (node: string, message: Published) => {
    if (message.nodeUID === undefined && message.pods.size === 0) published.delete(node)
    else published.set(node, message)
  }

  return {
    hasPublished: (node: string) => published.has(node),
    /** Withdraws without a pause the message that is retained for a deleted Node. Gives the message that was published last. */
    async withdrawDeleted(node: string, nodeUID: string | undefined): Promise<PublishedDesired | undefined> {
      const earlier = published.get(node)
      if (earlier?.nodeUID === undefined || earlier.nodeUID === nodeUID) return earlier
      await broker.withdraw({ kind: 'desired', node })
      held.forget(node)
      const after = { ...earlier, nodeUID: undefined }
      published.set(node, after)
      return after
    },
    /** Publishes the content if it is not the one that was published last, or if the node lacks a part of it. */
    async publish(name: string, node: StoredObject<'nodes'> | undefined, content: DesiredContent): Promise<void> {
      // First: what the node reports meanwhile counts.
      const named = await namedContents(content)
      const earlier = published.get(name)
      const nodeUID = node?.metadata.uid
      const holds = content.data.awaitsCheckpoint ? undefined : held.of(name, node)
      const form = holds === undefined ? 'whole' : 'references'
      const missing = contentsMissing(named.contents.keys(), holds)
      const isComplete = missing.length === 0 && earlier?.form === form
      if (earlier !== undefined && isComplete && isPublished(content, nodeUID, earlier)) {
        return remember(name, { ...earlier, pods: content.pods })
      }
      version += 1
      const head = { epoch, version, ...(origin && { store: origin.id }) }
      const references = () => JSON.stringify(referencesMessage(head, content, named, []))
      const whole = wholeMessage(head, content, named.names)
      const message = holds === undefined ? whole : referencesMessage(head, content, named, missing)
      const again = () => JSON.stringify(message)
      const body = again()
      const retaining = retention(nodeUID, missing.length > 0 ? { retained: references } : { again })
      // Before: a report that arrives meanwhile is newer.
      if (holds !== undefined) held.published(name, named.contents.keys())
      await broker.publish({ kind: 'desired', node: name }, body, retaining)
      const pausedUntilMs = clock.monotonicMs() + body.length / bytesPerMs
      remember(name, { ...content, form, nodeUID, pausedUntilMs })
    },
  }
}
