/**
 * The wire between agent and broker-controller: every topic, who may speak on it, and what its body is. MQTT 3.1.1.
 * Bodies are JSON and carry whole states, so that losing or repeating one does no harm. See docs/mqtt.md.
 */
import { ConfigMapSchema } from './config-map.ts'
import { EventSchema } from './event.ts'
import { PoliciesMessageSchema } from './network/node-policies.ts'
import { NetworkMessageSchema } from './network/pod-network.ts'
import { ServicesMessageSchema, serviceShards } from './network/service-endpoints.ts'
import { ServiceLinkSchema } from './network/service-links.ts'
import { AgentReleaseSchema } from './node/agent-update.ts'
import { OsUpgradeSchema } from './node/os-updates.ts'
import { RebootRequestSchema } from './node/remote-reboot.ts'
import { SummarySchema } from './node/stats.ts'
import { NodeStatusSchema } from './node.ts'
import { PodSchema, PodStatusSchema } from './pod.ts'
import {
  bool,
  type Described,
  decodedLater,
  double,
  integer,
  list,
  mapOf,
  object,
  oneOf,
  optional,
  type TSchema,
  text,
} from './schema.ts'
import { SecretSchema } from './secret.ts'
import { NodeClaimSchema, NodeCsiDriverSchema } from './storage/node-claim.ts'
import { StorageMessageSchema, VolumesMessageSchema } from './storage/volume-messages.ts'

const topicPrefix = 'bramble/v1'

/**
 * `bootID` distinguishes a reboot from a restart; `expectedBackSeconds` goes with a goodbye. `leaseDurationSeconds`: the agent
 * renews its lease four times within this; 40 where it is left out.
 */
export const ConnectionMessageSchema = object({
  state: oneOf('online', 'lost', 'goodbye'),
  bootID: text,
  agentVersion: text,
  reason: optional(text),
  expectedBackSeconds: optional(integer),
  leaseDurationSeconds: optional(integer),
  /** The node reads `desired` by reference, and publishes `contents`. */
  references: optional(bool),
})
export type ConnectionMessage = Described<typeof ConnectionMessageSchema>

/**
 * State of the whole machine, for people: the hottest sensor, the load of one minute, the disk with the agent's data.
 */
const MachineStatsSchema = object({
  celsius: optional(double),
  load: optional(double),
  diskUsedBytes: optional(integer),
  diskCapacityBytes: optional(integer),
})
export type MachineStats = Described<typeof MachineStatsSchema>

/** Who uses how much. `windowSeconds`: over how long the rates in it are taken; left out when there are none yet. */
export const StatsMessageSchema = object({
  time: text,
  windowSeconds: optional(double),
  whole: optional(bool),
  summary: SummarySchema,
  machine: optional(MachineStatsSchema),
})
export type StatsMessage = Described<typeof StatsMessageSchema>

/** The heartbeat. `digest` covers the node's status and its pods' statuses: see `api/digest.ts`. */
export const LeaseMessageSchema = object({ seq: integer, digest: text })

/**
 * Where a node publishes its leases once the controller has published `shortLeases`: the certificate of the connection
 * names the node. The body is a LeaseMessage, '' while its digest is that of the last lease on this connection, or
 * `standingStatusBody`. At 10 s between leases each byte of it is 0.25 MB a month.
 */
export const shortLeaseTopic = 'l'
/** As '', and the node's status is the one that was last published: as if it were published once more. */
export const standingStatusBody = 's'

/**
 * One pod's status. `observedResourceVersion` is the version of the pod in `desired` that it was computed from.
 * An empty body on this topic means that nothing of the pod is left on the node: a pod that is being deleted may be removed.
 */
export const PodMessageSchema = object({
  namespace: text,
  name: text,
  uid: text,
  observedResourceVersion: text,
  status: PodStatusSchema,
})
export type PodMessage = Described<typeof PodMessageSchema>

/** Names of the objects in `desired`, in the order of its lists: the same name is the same content, in every epoch. */
export const ContentNamesSchema = object({
  pods: list(text),
  configMaps: optional(list(text)),
  secrets: optional(list(text)),
})
export type ContentNames = Described<typeof ContentNamesSchema>

/**
 * All pods bound to the node, with what they name, and the addresses the node may give them. `version` only rises, within
 * one `epoch` of the controller.
 */
export const DesiredMessageSchema = object({
  epoch: text,
  version: integer,
  pods: list(PodSchema),
  configMaps: optional(list(ConfigMapSchema)),
  secrets: optional(list(SecretSchema)),
  podCIDR: optional(text),
  /** Pods are on the network of the fleet, and agents answer names of this domain. Left out with `podNetwork: node`. */
  clusterDomain: optional(text),
  /** Where containers reach the Kubernetes API: their environment names it. */
  apiServer: optional(object({ host: text, port: integer })),
  /** Those that the pods name. */
  runtimeClasses: optional(list(object({ name: text, handler: text }))),
  /** The Services whose addresses the containers of these pods get as variables. */
  services: optional(list(ServiceLinkSchema)),
  /** The claims that the pods use, with their volumes. */
  claims: optional(list(NodeClaimSchema)),
  /** Those of volumes that the pods have inline. */
  csiDrivers: optional(list(NodeCsiDriverSchema)),
  /** The machine is to restart, if it has this boot still. */
  reboot: optional(RebootRequestSchema),
  /** The release that the agent may be updated to. Left out: the version that is committed stays. */
  agent: optional(AgentReleaseSchema),
  /** The machine is to install its security updates. Left out: it installs none. */
  osUpgrade: optional(OsUpgradeSchema),
  /** Which store this is from. */
  store: optional(text),
  /**
   * That store began without knowing this node, and nothing else in the message counts: the node continues with what it
   * holds, and posts it to `nodes/NODE/checkpoint`.
   */
  awaitsCheckpoint: optional(bool),
  /** Earlier controllers leave it out. */
  names: optional(ContentNamesSchema),
})
export type DesiredMessage = Described<typeof DesiredMessageSchema>

const { pods: _, configMaps: __, secrets: ___, ...besideObjects } = DesiredMessageSchema.properties
/**
 * As DesiredMessage, for a node that has published what it holds: `contents` has the objects that it does not hold, by their names. An
 * agent from before that cannot decode it, and keeps its pods as they are.
 */
export const DesiredReferencesSchema = object({
  ...besideObjects,
  names: ContentNamesSchema,
  contents: mapOf(decodedLater),
})
export type DesiredReferences = Described<typeof DesiredReferencesSchema>

/** The names of all contents that the node holds. Published on each connection, and when a message refers to others. */
export const ContentsMessageSchema = object({ names: list(text) })
export type ContentsMessage = Described<typeof ContentsMessageSchema>
/** A node has 110 pods. The contents beyond this number are sent each time. */
export const mostHeldNames = 4096

/**
 * What the controller asks of a node. `report`: publish the whole state again. `stats`: publish what is used for
 * `seconds` from now on, every `everySeconds`; CPU and memory only, unless `whole` (once) is asked for, as older controllers do.
 * `machine`: with `machine` in each message, which the dashboard shows; older agents leave it out.
 * `session`: connect to the API under this id (`api/sessions.ts`).
 */
export const CallMessageSchema = object({
  call: oneOf('report', 'stats', 'session'),
  reason: optional(text),
  seconds: optional(integer),
  everySeconds: optional(integer),
  whole: optional(bool),
  machine: optional(bool),
  session: optional(text),
})
export type CallMessage = Described<typeof CallMessageSchema>

/** A node that receives another `store` than before registers again: that store may not have it. */
export const ControllerMessageSchema = object({
  state: oneOf('online', 'lost'),
  epoch: text,
  time: text,
  store: optional(text),
  /**
   * Hash of the authorities that the fleet trusts: a node that trusts others reads them from kube-public/cluster-info.
   */
  trust: optional(text),
  /** How long a node that is silent stays Ready: nodes wait less than this between their attempts to connect. */
  nodeMonitorGraceSeconds: optional(double),
  /** The longest lease that a node is given: one that has a longer one configured renews it as if it were this. */
  nodeLeaseLimitSeconds: optional(double),
  /** Leases are taken on `shortLeaseTopic`, too. */
  shortLeases: optional(bool),
  /** Addresses of several controllers, `https://HOST:PORT` and `mqtts://HOST:PORT`, those of this one first. */
  apiServers: optional(list(text)),
  mqttServers: optional(list(text)),
  /** The topics `network` and `services` exist: nodes subscribe to them. */
  network: optional(bool),
  /** The topic `policies` of each node exists, too. */
  policies: optional(bool),
  /** The topic `contents` of each node exists. */
  contents: optional(bool),
  /** The topics `volumes` and `storage` of each node exist. */
  volumes: optional(bool),
})
export type ControllerMessage = Described<typeof ControllerMessageSchema>

export type NodeTopic =
  | {
      readonly kind:
        | 'connection'
        | 'lease'
        | 'status'
        | 'events'
        | 'stats'
        | 'contents'
        | 'desired'
        | 'calls'
        | 'policies'
        | 'volumes'
        | 'storage'
      readonly node: string
    }
  | { readonly kind: 'pod'; readonly node: string; readonly uid: string }
/** Every node may read it. */
export type FleetTopic =
  | { readonly kind: 'controller' | 'network' }
  | { readonly kind: 'services'; readonly shard: number }
export type Topic = NodeTopic | FleetTopic

export type TopicRule = {
  readonly from: 'node' | 'controller'
  readonly qos: 0 | 1
  readonly retain: boolean
  readonly schema: TSchema
}

export const topicRules: { readonly [Kind in Topic['kind']]: TopicRule } = {
  connection: { from: 'node', qos: 1, retain: true, schema: ConnectionMessageSchema },
  lease: { from: 'node', qos: 1, retain: false, schema: LeaseMessageSchema },
  status: { from: 'node', qos: 1, retain: true, schema: NodeStatusSchema },
  pod: { from: 'node', qos: 1, retain: true, schema: PodMessageSchema },
  events: { from: 'node', qos: 1, retain: false, schema: EventSchema },
  stats: { from: 'node', qos: 0, retain: false, schema: StatsMessageSchema },
  contents: { from: 'node', qos: 1, retain: false, schema: ContentsMessageSchema },
  desired: { from: 'controller', qos: 1, retain: true, schema: DesiredMessageSchema },
  calls: { from: 'controller', qos: 1, retain: false, schema: CallMessageSchema },
  policies: { from: 'controller', qos: 1, retain: true, schema: PoliciesMessageSchema },
  volumes: { from: 'controller', qos: 1, retain: true, schema: VolumesMessageSchema },
  storage: { from: 'node', qos: 1, retain: false, schema: StorageMessageSchema },
  controller: { from: 'controller', qos: 1, retain: true, schema: ControllerMessageSchema },
  network: { from: 'controller', qos: 1, retain: true, schema: NetworkMessageSchema },
  services: { from: 'controller', qos: 1, retain: true, schema: ServicesMessageSchema },
}

/** Narrows a topic to those that belong to no node. */
export function isFleetTopic(topic: Topic): topic is FleetTopic {
  return topic.kind === 'controller' || topic.kind === 'network' || topic.kind === 'services'
}

/** The topic's name on the wire. */
export function topicName(topic: Topic): string {
  if (topic.kind === 'services') return `${topicPrefix}/services/${topic.shard}`
  if (isFleetTopic(topic)) return `${topicPrefix}/${topic.kind}`
  if (topic.kind === 'pod') return `${topicPrefix}/nodes/${topic.node}/pods/${topic.uid}`
  return `${topicPrefix}/nodes/${topic.node}/${topic.kind}`
}

/** The name under which a node's publication is known: of the short lease topic the node's own lease topic. */
export function namedTopic(published: string, node: string): string {
  return published === shortLeaseTopic ? topicName({ kind: 'lease', node }) : published
}

/** A topic of this node, of any kind. */
export function isBelowNode(name: string, node: string): boolean {
  return name.startsWith(`${topicPrefix}/nodes/${node}/`)
}

/** A UID of the store has 36 characters. The controller keeps topics in memory, and MQTT allows 65,535 bytes for one. */
const longestUID = 128

/** Parses a topic; undefined if it is not a topic of Bramble. */
export function parseTopic(name: string): Topic | undefined {
  if (!name.startsWith(`${topicPrefix}/`)) return undefined
  const [first, node, kind, uid, ...rest] = name.slice(topicPrefix.length + 1).split('/')
  if ((first === 'controller' || first === 'network') && node === undefined) return { kind: first }
  if (first === 'services') return kind === undefined ? shardTopic(node) : undefined
  if (first !== 'nodes' || !node || !kind || rest.length > 0) return undefined
  if (kind === 'pods') return uid && uid.length <= longestUID ? { kind: 'pod', node, uid } : undefined
  if (uid !== undefined || !isPlainKind(kind)) return undefined
  return { kind, node }
}

function shardTopic(text: string | undefined): Topic | undefined {
  const shard = Number(text)
  return String(shard) === text && Number.isInteger(shard) && shard >= 0 && shard < serviceShards
    ? { kind: 'services', shard }
    : undefined
}

const plainKinds = [
  'connection',
  'lease',
  'status',
  'events',
  'stats',
  'contents',
  'desired',
  'calls',
  'policies',
  'volumes',
  'storage',
] as const

function isPlainKind(kind: string): kind is (typeof plainKinds)[number] {
  return plainKinds.some((plain) => plain === kind)
}
