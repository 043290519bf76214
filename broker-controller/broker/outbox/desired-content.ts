/** Decisions about the `desired` message of a node: its content, and whether it must be published. */
import { isDeepStrictEqual } from 'node:util'
import type { ServiceLink } from '../../../api/network/service-links.ts'
import { wantedReleaseOf } from '../../../api/node/agent-update.ts'
import { learntByAnnotation } from '../../../api/node/node-checkpoint.ts'
import { wantedUpgradeOf } from '../../../api/node/node-maintenance.ts'
import { podRangeOf } from '../../../api/node/pod-range.ts'
import { pendingReboot } from '../../../api/node/remote-reboot.ts'
import type { Pod } from '../../../api/pod.ts'
import type { NodeClaim } from '../../../api/storage/node-claim.ts'
import type { DesiredMessage } from '../../../api/topics.ts'
import { isAssigned, mayHave } from '../../store/checkpoints/checkpoint-data.ts'
import type { ContentProver } from '../../store/checkpoints/content-proof.ts'
import type { StoredObject } from '../../store/store.ts'
import { inlineCsiDrivers } from './csi/node-csi-volume.ts'
import { type DesiredPod, desiredPods, hasSamePods } from './desired-pods.ts'
import { linkedServices } from './linked-services.ts'
import { type NodeClaimSources, nodeClaims, secretsOfClaims } from './node-claims.ts'
import { projectConfigMap, projectSecret, type ReferencedData, referencedData } from './referenced-data.ts'

/** `awaitsCheckpoint`: the node keeps its pods running and posts its checkpoint; the other fields do not count. */
export type DesiredContent = {
  readonly pods: ReadonlyMap<string, DesiredPod>
  readonly data: Pick<
    DesiredMessage,
    | 'configMaps'
    | 'secrets'
    | 'podCIDR'
    | 'clusterDomain'
    | 'apiServer'
    | 'runtimeClasses'
    | 'services'
    | 'claims'
    | 'csiDrivers'
    | 'reboot'
    | 'agent'
    | 'osUpgrade'
    | 'awaitsCheckpoint'
  >
}

/** The message of a node that was published last. */
export type PublishedDesired = DesiredContent & {
  /** The Node that the message is retained for; undefined: there is none, and nothing is retained. */
  readonly nodeUID: string | undefined
  /** Nothing more is published to the node before then. */
  readonly pausedUntilMs: number
}

export type DesiredInputs = Omit<NodeClaimSources, 'node'> & {
  readonly node: StoredObject<'nodes'> | undefined
  readonly pods: readonly StoredObject<'pods'>[]
  /** By `namespace/name`. */
  readonly configMap: (key: string) => StoredObject<'configmaps'> | undefined
  readonly secret: (key: string) => StoredObject<'secrets'> | undefined
  readonly runtimeClass: (name: string) => StoredObject<'runtimeclasses'> | undefined
  /** Services of the namespace that its pods get environment variables for. */
  readonly servicesIn: (namespace: string) => readonly ServiceLink[]
  /** The store accepts checkpoints of nodes and has this identifier; undefined: it does not. */
  readonly acceptingStoreID: string | undefined
  /** Where containers reach the API; undefined: their environment does not name it. */
  readonly apiServer?: DesiredMessage['apiServer']
  /** undefined: the fleet has no network of its own. */
  readonly clusterDomain?: string | undefined
  /** Undefined: there is none to send. */
  readonly proofOf?: ContentProver['proofOf']
  readonly earlier: PublishedDesired | undefined
}

/**
 * The content for node `name`. undefined: nothing is published, because a store that accepts checkpoints has neither the Node nor its
 * checkpoint. A node that received the pods of such a store would stop pods that only its checkpoint has.
 */
export function desiredContent(name: string, inputs: DesiredInputs): DesiredContent | undefined {
  const { node, pods, acceptingStoreID, earlier } = inputs
  if (awaitsCheckpoint(node, acceptingStoreID)) {
    return node && { pods: new Map(), data: { awaitsCheckpoint: true } }
  }
  const desired = desiredPods(pods, earlier?.pods ?? new Map())
  return { pods: desired, data: desiredData(name, desired, inputs) }
}

/**
 * ConfigMaps and Secrets that the pods and the volumes of their claims refer to and the node may have, the Services of their namespaces,
 * their claims, its addresses, whether the machine is to restart, and the release that its agent may run. A pod that a node claimed in its checkpoint gives it access to nothing
 * that other nodes have.
 */
function desiredData(
  name: string,
  desired: ReadonlyMap<string, DesiredPod>,
  inputs: DesiredInputs,
): DesiredContent['data'] {
  const { node, configMap, secret, runtimeClass, servicesIn, apiServer, clusterDomain, proofOf } = inputs
  const pods = [...desired.values()].map(({ pod }) => pod)
  const claims = nodeClaims(pods, inputs)
  const dataFor = (some: readonly Pod[], theirs: readonly NodeClaim[]): ReferencedData => {
    const { configMaps, secrets } = referencedData(some)
    return { configMaps, secrets: [...new Set([...secrets, ...secretsOfClaims(theirs)])].sort() }
  }
  const all = dataFor(pods, claims)
  const own = pods.filter(isAssigned)
  const assigned = own.length === pods.length ? all : dataFor(own, nodeClaims(own, inputs))
  const allowed = <T extends StoredObject<'configmaps'> | StoredObject<'secrets'>>(
    keys: readonly string[],
    assignedKeys: ReadonlySet<string>,
    get: (key: string) => T | undefined,
  ) =>
    keys.flatMap((key) => {
      const found = get(key)
      return found !== undefined && mayHave(name, found, { assigned: assignedKeys.has(key) }) ? [found] : []
    })
  const configMaps = allowed(all.configMaps, new Set(assigned.configMaps), configMap)
  const secrets = allowed(all.secrets, new Set(assigned.secrets), secret)
  const classNames = new Set(pods.flatMap(({ spec }) => spec.runtimeClassName || []))
  const runtimeClasses = [...classNames].sort().flatMap((className) => {
    const found = runtimeClass(className)
    return found === undefined ? [] : [{ name: className, handler: found.handler }]
  })
  const services = linkedServices(pods, servicesIn)
  const csiDrivers = inlineCsiDrivers(pods, inputs)
  const podCIDR = podRangeOf(node)
  return {
    ...(configMaps.length > 0 && { configMaps: configMaps.map((one) => projectConfigMap(one, proofOf?.(one))) }),
    ...(podCIDR && { podCIDR }),
    ...(podCIDR && clusterDomain && { clusterDomain }),
    ...(apiServer && { apiServer }),
    ...(runtimeClasses.length > 0 && { runtimeClasses }),
    ...(services.length > 0 && { services }),
    ...(claims.length > 0 && { claims }),
    ...(csiDrivers.length > 0 && { csiDrivers }),
    ...(node && ordersOf(node)),
    ...(secrets.length > 0 && { secrets: secrets.map((one) => projectSecret(one, proofOf?.(one))) }),
  }
}

/** What the machine has to do beside its pods. */
function ordersOf(node: StoredObject<'nodes'>): Pick<DesiredMessage, 'reboot' | 'agent' | 'osUpgrade'> {
  const [reboot, agent, osUpgrade] = [pendingReboot(node), wantedReleaseOf(node), wantedUpgradeOf(node)]
  return { ...(reboot && { reboot }), ...(agent && { agent }), ...(osUpgrade && { osUpgrade }) }
}

/** Has the node received this content already? A new Node of the name gets its message again, because that of the earlier one was withdrawn. */
export function isPublished(
  content: DesiredContent,
  nodeUID: string | undefined,
  earlier: PublishedDesired | undefined,
): boolean {
  return (
    earlier !== undefined &&
    (nodeUID === undefined || nodeUID === earlier.nodeUID) &&
    hasSamePods(content.pods, earlier.pods) &&
    isDeepStrictEqual(content.data, earlier.data)
  )
}

/** Does the content of the node's message depend on what changed between these two? */
export function isOtherNode(
  present: StoredObject<'nodes'> | undefined,
  previous: StoredObject<'nodes'> | undefined,
): boolean {
  if (present === undefined || previous === undefined) return present !== previous
  if (podRangeOf(present) !== podRangeOf(previous) || checkpointStore(present) !== checkpointStore(previous))
    return true
  return !isDeepStrictEqual(ordersOf(present), ordersOf(previous))
}

/** Has the store not learnt yet which pods the node has? `acceptingStoreID`: see `DesiredInputs`. */
export function awaitsCheckpoint(
  node: StoredObject<'nodes'> | undefined,
  acceptingStoreID: string | undefined,
): boolean {
  return acceptingStoreID !== undefined && checkpointStore(node) !== acceptingStoreID
}

/** The store that accepted the node's checkpoint. */
function checkpointStore(node: StoredObject<'nodes'> | undefined): string | undefined {
  return node?.metadata.annotations?.[learntByAnnotation]
}
