/**
 * create of nodes/checkpoint: a restored or new store gets what the fleet runs from the checkpoints of the nodes. Only
 * such a store accepts them, once from each node, and only the node's own pods and what those refer to.
 */
import { rootCertificatesName } from '../../../api/access/service-account-names.ts'
import { ApiError, isApiError, notFound } from '../../../api/api-error.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import { type Identity, nodeOf, olderThanStoreKey } from '../../../api/identity.ts'
import type { AnyObject, ObjectMeta } from '../../../api/meta.ts'
import { learntByAnnotation, learntFromAnnotation, NodeCheckpointSchema } from '../../../api/node/node-checkpoint.ts'
import { hasEndedForGood } from '../../../api/node/node-shutdown.ts'
import type { Node } from '../../../api/node.ts'
import { boundPod } from '../../../api/pod/pod-conditions.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import { configMapsOf, secretsOf } from '../../../api/pod/pod-references.ts'
import { mirrorAnnotation, type Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import { podNameLabel } from '../../../api/workloads/stateful-set.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { isAssigned } from '../../store/checkpoints/checkpoint-data.ts'
import { keyText } from '../../store/informer.ts'
import { nodeReference } from '../../store/references.ts'
import { removeIfThere, rewrite } from '../../store/rewrite.ts'
import { prepareForCreate } from '../handlers/admission.ts'
import { keyOfRoute, presentObject, warnLimited } from '../handlers/resource-request.ts'
import type { KindStrategy, ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { parseBody, readAs } from '../wire/request-body.ts'
import { successStatus } from '../wire/status-errors.ts'
import { configMapStrategy } from './data/config-map.ts'
import { secretStrategy } from './data/secret.ts'
import { namespaceStrategy } from './namespace.ts'
import { createDataFromCheckpoint, namedBy, ownNamespaces } from './node-checkpoint-data.ts'
import { podStrategy } from './pod.ts'
import { restoreClaims } from './storage/restored-claims.ts'

const kinds = { configmaps: configMapStrategy, secrets: secretStrategy }
const namesOf = { configmaps: configMapsOf, secrets: secretsOf }
/** A kubelet runs 110 unless configured; a node that has more pods than this made them up. */
const mostPods = 500

/**
 * 201 when the checkpoint was restored; its message names what was not. Objects that exist stay as they are. Throws
 * Conflict where the store accepts no checkpoints, or none from this node.
 */
export async function restoreCheckpoint(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, identity } = request
  const input = parseBody(await request.readBody(), request, { schema: NodeCheckpointSchema }, needs.parseYaml)
  const delivered = readAs(NodeCheckpointSchema, 'NodeCheckpoint', input)
  const node = await presentObject(request, needs)
  const because = refusal(delivered.store, node.metadata, needs)
  if (because !== undefined) throw new ApiError('Conflict', `node "${route.name}": ${because}`)
  if (!isKnownBefore(identity, needs)) {
    // It has nothing to restore, so nothing waits for its checkpoint.
    await markNode(request, needs)
    const message = 'checkpoints are accepted only from nodes that joined before the restore'
    throw new ApiError('Conflict', `node "${route.name}": ${message}`)
  }

  const refused = await restorePods(delivered.pods ?? [], request, needs)
  const unproven: string[] = []
  await reportRefused(route.name, refused, needs)
  const bound = await needs.store.podsOfNode(route.name)
  const assigned = bound.filter(isAssigned)
  const take = async (resource: 'configmaps' | 'secrets', objects: readonly (ConfigMap | Secret)[]) => {
    if (objects.length === 0) return
    const isNamed = namedBy(bound, namesOf[resource])
    const isNamedByAssigned = namedBy(assigned, namesOf[resource])
    for (const object of objects.filter(
      ({ metadata }) => isNamed(metadata) && metadata.name !== rootCertificatesName,
    )) {
      const deliverer = { node: route.name, hasAssigned: isNamedByAssigned(object.metadata) }
      const create = (made: ConfigMap | Secret) => createFromCheckpoint(kinds[resource], made, identity, needs)
      const taken = await createDataFromCheckpoint(resource, object, deliverer, needs, create)
      refused.push(...taken.refused)
      if (taken.isUnproven) unproven.push(`${kinds[resource].kind} ${keyText(object.metadata)}`)
    }
  }
  if (delivered.claims !== undefined) {
    const create = (kind: KindStrategy, object: AnyObject) => createFromCheckpoint(kind, object, identity, needs)
    refused.push(...(await restoreClaims(delivered.claims, { node: route.name, pods: bound }, needs, create)))
  }
  await take('configmaps', delivered.configMaps ?? [])
  await take('secrets', delivered.secrets ?? [])
  await reportUnproven(route.name, unproven, needs)
  if (delivered.complete && delivered.hasAllPods) await removeReplacedPods(route.name, needs)
  if (delivered.complete) await markNode(request, needs)
  return objectAnswer({ ...successStatus(), ...(refused.length > 0 && { message: refused.join('; ') }) }, 201)
}

/** Returns why some were not restored. */
async function restorePods(
  pods: readonly Pod[],
  { route, identity }: ResourceRequest,
  needs: ResourceNeeds,
): Promise<string[]> {
  const refused: string[] = []
  const restored = await podsFromCheckpoint(route.name, needs)
  for (const pod of pods) {
    const isOneMore = !restored.has(keyText(pod.metadata))
    const problem =
      isOneMore && restored.size >= mostPods
        ? notRestored(pod, route.name, `the limit of ${mostPods} pods from its checkpoint is reached`)
        : await createPodFromCheckpoint(pod, route.name, identity, needs)
    if (problem === undefined) restored.add(keyText(pod.metadata))
    else refused.push(problem)
  }
  return refused
}

function refusal(store: string, { annotations = {} }: ObjectMeta, needs: ResourceNeeds): string | undefined {
  const { origin, checkpoints } = needs
  if (origin === undefined || !checkpoints?.isOpen()) return 'checkpoints are accepted only after a restore'
  if (store !== origin.id) return 'the checkpoint was requested by another store'
  return annotations[learntByAnnotation] === origin.id ? 'its checkpoint was already received' : undefined
}

/** True when its certificate is older than the store: the fleet before the restore admitted it. */
export function isKnownBefore({ extra }: Identity, { origin }: Pick<ResourceNeeds, 'origin'>): boolean {
  return origin !== undefined && extra?.[olderThanStoreKey]?.includes(origin.id) === true
}

/** A node that joined after the store began has no checkpoint to wait for. */
export function withoutCheckpoint(object: Node, identity: Identity, needs: ResourceNeeds): Node {
  const isNew = needs.checkpoints?.isOpen() === true && !isKnownBefore(identity, needs)
  return isNew && nodeOf(identity) !== undefined ? marked(object, needs) : object
}

/** Restores one pod; returns the reason when it is not restored. */
async function createPodFromCheckpoint(
  pod: Pod,
  node: string,
  identity: Identity,
  needs: ResourceNeeds,
): Promise<string | undefined> {
  const { metadata, spec, status } = pod
  if (spec.nodeName !== node || metadata.uid === undefined) {
    const message = `pod ${metadata.namespace}/${metadata.name} was not bound to node "${node}"`
    throw new ApiError('BadRequest', message)
  }
  // The node creates the mirror pods of its static pods itself.
  if (metadata.annotations?.[mirrorAnnotation] !== undefined) return undefined
  const { name = '', namespace = '', uid } = metadata
  const key = { namespace, name }
  const present = await needs.store.get('pods', key)
  const isKnown = present?.metadata.uid === uid && present?.spec.nodeName === node
  if (ownNamespaces.includes(namespace) && !isKnown) {
    return notRestored(pod, node, 'pods in this namespace are not accepted from checkpoints')
  }
  if (present?.metadata.uid === uid) {
    await rewrite(needs, 'pods', { key, uid, change: (it) => takenBy(node, it, needs) })
  } else if (present === undefined || !isTaken(present, node, needs)) {
    const claimed = claimedBy(node, marked(isFinished(pod) ? { ...pod, status } : pod, needs))
    await createFromCheckpoint(podStrategy, claimed, identity, needs)
  }
  const kept = await needs.store.get('pods', key)
  if (kept === undefined || kept.spec.nodeName === node) return undefined
  const other = kept.spec.nodeName
  return notRestored(
    pod,
    node,
    other ? `a pod with that name is bound to node ${other}` : 'a pod with that name exists',
  )
}

/**
 * Removes the pods that the node does not have and that have a controller: those of the backup were deleted since, and their controllers
 * have replaced them; sent to the node they would run beside those. This store has sent the node none yet, so one that it made since is
 * made again: no date decides, for the clock may have been wrong. Pods that ended for good no longer run, and count for Jobs; one that its
 * machine ended to shut down would run again.
 */
async function removeReplacedPods(node: string, { store, origin, log }: ResourceNeeds): Promise<void> {
  const isReplaced = (pod: Pod) => {
    const { annotations = {}, labels = {}, name, ownerReferences = [] } = pod.metadata
    // The node itself controls mirror pods, and creates them.
    if (annotations[learntByAnnotation] === origin?.id || annotations[mirrorAnnotation] !== undefined) return false
    // One that a checkpoint brought to the store of the backup has no owner until its StatefulSet adopts it.
    const isControlled = ownerReferences.some(({ controller }) => controller) || labels[podNameLabel] === name
    return isControlled && !hasEndedForGood(pod)
  }
  const replaced = (await store.podsOfNode(node)).filter(isReplaced)
  for (const pod of replaced) await removeIfThere(store, 'pods', pod)
  if (replaced.length > 0) log.info('Pods removed that their node does not have', { node, pods: replaced.length })
}

/** The pods that came with the node's checkpoint. */
async function podsFromCheckpoint(node: string, { store }: ResourceNeeds): Promise<Set<string>> {
  const bound = await store.podsOfNode(node)
  const restored = bound.filter(({ metadata }) => metadata.annotations?.[learntFromAnnotation] !== undefined)
  return new Set(restored.map(({ metadata }) => keyText(metadata)))
}

/** Marks it as part of this node's checkpoint: the node may read what it refers to only as far as the node delivers it. */
function claimedBy<T extends AnyObject>(node: string, object: T): T {
  const annotations = { ...object.metadata.annotations, [learntFromAnnotation]: node }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** A pod that was pending in the backup may have been bound to this node since. Undefined: it is bound to another one. */
function takenBy(node: string, pod: Pod, needs: ResourceNeeds): Pod | undefined {
  if (!pod.spec.nodeName) return claimedBy(node, marked(boundPod(pod, node, rfc3339(needs.clock.wallMs())), needs))
  return pod.spec.nodeName === node ? marked(pod, needs) : undefined
}

/** With this store's mark: a node has delivered it, and no other node can claim its name. */
function marked<T extends AnyObject>(object: T, { origin }: ResourceNeeds): T {
  const annotations = { ...object.metadata.annotations, [learntByAnnotation]: origin?.id ?? '' }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/**
 * Another node has delivered its pod of that name. Which of them is right cannot be decided here, and no node may end
 * what another one runs.
 */
function isTaken(present: Pod, node: string, { origin }: ResourceNeeds): boolean {
  const isDelivered = present.metadata.annotations?.[learntByAnnotation] === origin?.id
  return isDelivered && present.spec.nodeName !== node && !hasEndedForGood(present)
}

function notRestored({ metadata }: Pod, node: string, because: string): string {
  return `Pod ${metadata.namespace}/${metadata.name} (uid ${metadata.uid}) of node ${node} was not restored: ${because}`
}

/** A node that invents pods must not fill the log and the Events with them. With the last line these are nine: more Events are combined. */
const mostReported = 8

async function reportRefused(node: string, refused: readonly string[], needs: ResourceNeeds): Promise<void> {
  const more = refused.length - mostReported
  const last = more > 0 ? [`${more} more pods of node ${node} were not restored`] : []
  for (const message of [...refused.slice(0, mostReported), ...last]) {
    warnLimited(needs, node, 'Pod from a node checkpoint was not restored', { node, because: message })
    const what = { type: 'Warning', reason: 'PodNotLearnt', message, component: 'bramble-controller' } as const
    await needs.events.record({ object: nodeReference(node), ...what })
  }
}

/** One Event for a part of a checkpoint: its message names as many objects as are read. */
async function reportUnproven(node: string, unproven: readonly string[], needs: ResourceNeeds): Promise<void> {
  if (unproven.length === 0) return
  const more = unproven.length - mostReported
  const named = `${unproven.slice(0, mostReported).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  const remedy = 'run bramble-controller checkpoints on the controller, and accept or refuse it there'
  const message = `Node ${node} has not proven that a controller of this fleet sent it ${named}: pods of other nodes do not get it until an operator decides (${remedy})`
  warnLimited(needs, node, 'Content of a node checkpoint waits for an operator: it is not proven', {
    node,
    objects: unproven.length,
    because: message,
  })
  const what = { type: 'Warning', reason: 'CheckpointNotProven', message, component: 'bramble-controller' } as const
  await needs.events.record({ object: nodeReference(node), ...what })
}

/**
 * Creates it with its uid, its age and its deletion time. Without owner references: the owners are lost, and the garbage collector would delete
 * it. The pod that a claim was made for is not lost.
 */
async function createFromCheckpoint(kind: KindStrategy, object: AnyObject, requester: Identity, needs: ResourceNeeds) {
  const { store, clock } = needs
  const { name = '', namespace = '', uid, creationTimestamp } = object.metadata
  const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata
  const present = await store.get(kind.id, { namespace, name })
  if (present !== undefined && !isLaterPod(object, present, needs)) return
  const { ownerReferences, resourceVersion: _, ...own } = object.metadata
  const prepared = prepareForCreate(
    kind,
    { ...object, metadata: own },
    { nowMs: clock.wallMs(), requester, restored: true },
  )
  if (namespace !== '') await ensureNamespace(namespace, requester, needs)
  const metadata = {
    ...prepared.metadata,
    ...(uid !== undefined && { uid }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
    ...(!isPod(object) && ownerReferences && { ownerReferences }),
  }
  const hasStatus = isPod(object) ? isFinished(object) : object.status !== undefined
  const ended = hasStatus && { status: object.status }
  if (present !== undefined) await removeIfThere(store, kind.id, present)
  await createIfAbsent(kind, { ...prepared, ...ended, metadata }, needs)
}

/** The later of two pods with one name was wanted last. A pod created in this store is later than all. */
function isLaterPod(delivered: AnyObject, present: AnyObject, { origin, clock }: ResourceNeeds): boolean {
  if (!isPod(delivered) || delivered.metadata.uid === present.metadata.uid) return false
  const madeMs = ({ metadata }: AnyObject) => Date.parse(metadata.creationTimestamp ?? '')
  return madeMs(delivered) > madeMs(present) && madeMs(delivered) <= (origin?.sinceMs ?? clock.wallMs())
}

async function ensureNamespace(name: string, requester: Identity, needs: ResourceNeeds): Promise<void> {
  if ((await needs.store.get('namespaces', { namespace: '', name })) !== undefined) return
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } as const
  const facts = { nowMs: needs.clock.wallMs(), requester }
  await createIfAbsent(namespaceStrategy, prepareForCreate(namespaceStrategy, namespace, facts), needs)
}

async function createIfAbsent(kind: KindStrategy, object: AnyObject, { store }: ResourceNeeds): Promise<void> {
  try {
    await store.create(kind.id, object)
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error
  }
}

async function markNode({ route }: ResourceRequest, needs: ResourceNeeds): Promise<void> {
  const written = await rewrite(needs, 'nodes', { key: keyOfRoute(route), change: (node) => marked(node, needs) })
  if (written === undefined) throw notFound(route.resource, route.name)
}

function isPod(object: AnyObject): object is Pod {
  return object.kind === podStrategy.kind
}
