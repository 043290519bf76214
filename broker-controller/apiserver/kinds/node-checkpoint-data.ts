/**
 * ConfigMaps and Secrets of checkpoints. One is taken from the node that delivers it where nothing contradicts it; else it
 * is kept apart for an operator, with an Event, and no pod gets it.
 */
import { createHash } from 'node:crypto'
import { isApiError } from '../../../api/api-error.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import { nodeLeaseNamespace } from '../../../api/lease.ts'
import type { ObjectMeta } from '../../../api/meta.ts'
import {
  checkpointCopyAnnotation,
  checkpointCopyLabel,
  contestedByAnnotation,
  learntDigestAnnotation,
  learntFromAnnotation,
  rejectedFromAnnotation,
  unprovenFromAnnotation,
} from '../../../api/node/node-checkpoint.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import { contentDigest, deliveredBy, isUnproven, nodeNames } from '../../store/checkpoints/checkpoint-data.ts'
import { nodeReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import { warnLimited } from '../handlers/resource-request.ts'
import type { ResourceNeeds } from '../handlers/strategy.ts'

/**
 * Namespaces of the fleet itself, in which checkpoints change nothing: Secrets there admit machines, and every client relies
 * on the ConfigMaps.
 */
export const ownNamespaces: readonly string[] = ['kube-system', 'kube-public', nodeLeaseNamespace]

/**
 * Whether these pods name the object, outside the fleet's own namespaces. The names are collected once: a checkpoint may
 * have thousands of objects, and a node hundreds of pods.
 */
export function namedBy(
  pods: readonly Pod[],
  namesOf: (pod: Pod) => ReadonlySet<string>,
): (metadata: ObjectMeta) => boolean {
  const named = new Map<string, Set<string>>()
  for (const pod of pods) {
    const { namespace = '' } = pod.metadata
    const names = named.get(namespace) ?? new Set<string>()
    for (const name of namesOf(pod)) names.add(name)
    named.set(namespace, names)
  }
  return ({ name = '', namespace = '' }) =>
    !ownNamespaces.includes(namespace) && named.get(namespace)?.has(name) === true
}

type Data = ConfigMap | Secret
type DataResource = 'configmaps' | 'secrets'

/** The node that delivers an object, and whether the controller assigned a pod to it that names the object. */
export type Deliverer = { readonly node: string; readonly hasAssigned: boolean }

export type TakenData = {
  /** Why it was not taken. */
  readonly refused: readonly string[]
  /** The object waits for an operator, because no node has proven its content. */
  readonly isUnproven: boolean
}

/** `create`: stores a new object with this content. */
export async function createDataFromCheckpoint(
  resource: DataResource,
  delivered: Data,
  { node, hasAssigned }: Deliverer,
  needs: ResourceNeeds,
  create: (object: Data) => Promise<void>,
): Promise<TakenData> {
  const { name = '', namespace = '' } = delivered.metadata
  const key = { namespace, name }
  const digest = contentDigest(delivered)
  const isProven = needs.contentProver?.isProven(delivered) === true
  const annotations = {
    ...{ [learntFromAnnotation]: node, [learntDigestAnnotation]: digest },
    ...(!isProven && { [unprovenFromAnnotation]: node }),
  }
  // Other metadata are not the node's to set.
  await create({ ...delivered, metadata: { name, namespace, annotations } })
  const claim = { delivered, digest, isProven, node, hasAssigned, store: needs.origin?.id ?? '' }
  let decided: Decision = { step: 'keep' }
  let found: Data | undefined
  const change = (present: Data): Data | undefined => {
    decided = decide(present, claim)
    const next = 'object' in decided ? decided.object : undefined
    found = next ?? present
    return next
  }
  const rewriting = { key, change: (present: Data) => change(present) }
  if (resource === 'secrets') {
    await rewrite(needs, 'secrets', { ...rewriting, change: (present) => asSecret(change(present)) })
  } else {
    await rewrite(needs, 'configmaps', { ...rewriting, change: (present) => asConfigMap(change(present)) })
  }
  return {
    refused: await reportDecision(decided, resource, claim, needs),
    isUnproven: found !== undefined && isUnproven(found) && deliveredBy(found).includes(node),
  }
}

type Claim = Deliverer & {
  readonly delivered: Data
  readonly digest: string
  /** See `ContentProver`. */
  readonly isProven: boolean
  /** Identifies it: after another restore a node may deliver again. */
  readonly store: string
}

type Decision =
  | { readonly step: 'keep' }
  | { readonly step: 'write'; readonly object: Data }
  /** What the node delivered is kept apart. `others`: the nodes that delivered the present content. */
  | { readonly step: 'refuse'; readonly object?: Data; readonly others: readonly string[] }
  /** What others delivered is kept apart: they have not proven it, and the node has. */
  | { readonly step: 'replace'; readonly object: Data; readonly replaced: Data; readonly others: readonly string[] }

/** What becomes of an object that is there, when a node delivers one of its name. */
function decide(present: Data, { delivered, digest, isProven, node, hasAssigned, store }: Claim): Decision {
  const others = deliveredBy(present)
  // Equal content gives access to the object, so a node must not find it by trying: its first content counts.
  if (nodeNames(present.metadata.annotations?.[rejectedFromAnnotation]).includes(rejection(node, store)))
    return { step: 'refuse', others }
  const isNowProven = isProven && isUnproven(present)
  if (contentDigest(present) === digest) {
    const isNeeded = !others.includes(node) && !(others.length === 0 && hasAssigned)
    return confirmed(present, { node, digest, isNeeded, isNowProven })
  }
  if (others.length === 1 && others[0] === node) return { step: 'keep' }
  if (isNowProven) {
    const rejected = others.reduce(
      (object, other) => withNode(object, rejectedFromAnnotation, rejection(other, store)),
      without(present, unprovenFromAnnotation, contestedByAnnotation, learntFromAnnotation),
    )
    const { metadata } = withDeliverer(rejected, node, digest)
    return { step: 'replace', object: { ...delivered, metadata }, replaced: present, others }
  }
  const rejected = withNode(present, rejectedFromAnnotation, rejection(node, store))
  // What no controller has sent does not put in doubt what one has sent.
  const isInDoubt = others.length > 0 && (isProven || isUnproven(present))
  return { step: 'refuse', others, object: isInDoubt ? withNode(rejected, contestedByAnnotation, node) : rejected }
}

type Confirmation = {
  readonly node: string
  readonly digest: string
  /** The node is noted as one that delivers it. */
  readonly isNeeded: boolean
  readonly isNowProven: boolean
}

/** The node delivers the same content. */
function confirmed(present: Data, { node, digest, isNeeded, isNowProven }: Confirmation): Decision {
  if (!isNeeded && !isNowProven) return { step: 'keep' }
  const known = isNeeded ? withDeliverer(present, node, digest) : present
  return { step: 'write', object: isNowProven ? without(known, unprovenFromAnnotation) : known }
}

function rejection(node: string, store: string): string {
  return `${node}@${store}`
}

async function reportDecision(
  decided: Decision,
  resource: DataResource,
  { delivered, node }: Claim,
  needs: ResourceNeeds,
): Promise<readonly string[]> {
  switch (decided.step) {
    case 'keep':
    case 'write':
      return []
    case 'refuse':
      return refuse(resource, delivered, node, decided.others, needs)
    case 'replace':
      for (const other of decided.others) await refuse(resource, decided.replaced, other, [node], needs)
      return []
  }
}

async function refuse(
  resource: DataResource,
  delivered: Data,
  node: string,
  others: readonly string[],
  needs: ResourceNeeds,
): Promise<readonly string[]> {
  const { name = '', namespace = '' } = delivered.metadata
  const { kind } = delivered
  const copy = await keepCopy(resource, delivered, node, needs)
  const where = copy === undefined ? 'no copy was kept' : `its copy is Secret kube-system/${copy}`
  const of = others.length === 0 ? 'the existing object' : `what node ${others.join(', ')} delivered`
  const message = `${kind} ${namespace}/${name} of node ${node} differs from ${of} and was not applied; an operator must decide: ${where}`
  warnLimited(needs, node, 'Content of a node checkpoint was not applied: it differs', { node, because: message })
  for (const one of [node, ...others]) {
    const what = {
      type: 'Warning',
      reason: 'CheckpointContradiction',
      message,
      component: 'bramble-controller',
    } as const
    await needs.events.record({ object: nodeReference(one), ...what })
  }
  return [message]
}

/** A node delivers more Secrets and ConfigMaps than this only if it invents them. */
const mostCopies = 50

/** The name of the Secret with the copy, new or existing; undefined where the node has too many. */
async function keepCopy(
  resource: DataResource,
  delivered: Data,
  node: string,
  { store, clock }: ResourceNeeds,
): Promise<string | undefined> {
  const { metadata, kind } = delivered
  const of = `${resource} ${metadata.namespace}/${metadata.name}`
  const name = `checkpoint-${createHash('sha256')
    .update(`${of} ${contentDigest(delivered)}`)
    .digest('hex')
    .slice(0, 16)}`
  const key = { namespace: 'kube-system', name }
  const present = await store.get('secrets', key)
  if (present !== undefined) {
    const change = (copy: Secret) => (isDeliverer(copy, node) ? undefined : withNode(copy, learntFromAnnotation, node))
    await rewrite({ store, clock }, 'secrets', { key, change })
    return name
  }
  const copies = (await store.list('secrets', 'kube-system')).items.filter(
    (secret) => secret.metadata.labels?.[checkpointCopyLabel] !== undefined && isDeliverer(secret, node),
  )
  if (copies.length >= mostCopies) return undefined
  const object = {
    apiVersion: 'v1',
    kind,
    ...contentOf(delivered),
    metadata: { name: metadata.name, namespace: metadata.namespace },
  }
  const copy: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...key,
      labels: { [checkpointCopyLabel]: 'true' },
      annotations: { [checkpointCopyAnnotation]: of, [learntFromAnnotation]: node },
    },
    type: 'bramble.dev/checkpoint-copy',
    data: { 'object.json': Buffer.from(JSON.stringify(object)).toString('base64') },
  }
  try {
    await store.create('secrets', copy)
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error
  }
  return name
}

function contentOf(object: Data) {
  const { data } = object
  if (object.kind === 'Secret')
    return { ...(data && { data }), ...(object.type !== undefined && { type: object.type }) }
  return { ...(data && { data }), ...(object.binaryData && { binaryData: object.binaryData }) }
}

function isDeliverer({ metadata }: Data, node: string): boolean {
  return nodeNames(metadata.annotations?.[learntFromAnnotation]).includes(node)
}

/** What others delivered before it was changed does not count any more. */
function withDeliverer<T extends Data>(object: T, node: string, digest: string): T {
  const nodes = [...new Set([...deliveredBy(object), node])].sort()
  const annotations = {
    ...object.metadata.annotations,
    [learntFromAnnotation]: nodes.join(','),
    [learntDigestAnnotation]: digest,
  }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

function without<T extends Data>(object: T, ...names: readonly string[]): T {
  const annotations = Object.entries(object.metadata.annotations ?? {}).filter(([name]) => !names.includes(name))
  return { ...object, metadata: { ...object.metadata, annotations: Object.fromEntries(annotations) } }
}

function withNode<T extends Data>(object: T, annotation: string, node: string): T {
  const names = nodeNames(object.metadata.annotations?.[annotation])
  const annotations = { ...object.metadata.annotations, [annotation]: [...new Set([...names, node])].sort().join(',') }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

function asSecret(object: Data | undefined): Secret | undefined {
  return object?.kind === 'Secret' ? object : undefined
}

function asConfigMap(object: Data | undefined): ConfigMap | undefined {
  return object?.kind === 'ConfigMap' ? object : undefined
}
