/** core/v1 Node. */
import { ObjectMetaSchema, ObjectReferenceSchema } from './meta.ts'
import {
  bool,
  type Described,
  field,
  integer,
  list,
  listBy,
  mapOf,
  object,
  oneOf,
  optional,
  quantity,
  setOf,
  text,
  time,
} from './schema.ts'

export const TaintSchema = object({
  key: field(1, text),
  value: field(2, optional(text)),
  effect: field(3, oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute')),
  timeAdded: field(4, optional(time)),
})
export type Taint = Described<typeof TaintSchema>

const NodeConditionSchema = object({
  type: text,
  status: oneOf('True', 'False', 'Unknown'),
  lastHeartbeatTime: optional(time),
  lastTransitionTime: optional(time),
  reason: optional(text),
  message: optional(text),
})
export type NodeCondition = Described<typeof NodeConditionSchema>

const NodeAddressSchema = object({
  type: oneOf('InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS'),
  address: text,
})
export type NodeAddress = Described<typeof NodeAddressSchema>

const NodeSystemInfoSchema = object({
  machineID: text,
  systemUUID: text,
  bootID: text,
  kernelVersion: text,
  osImage: text,
  containerRuntimeVersion: text,
  kubeletVersion: text,
  kubeProxyVersion: optional(text),
  operatingSystem: text,
  architecture: text,
})
export type NodeSystemInfo = Described<typeof NodeSystemInfoSchema>

export const NodeStatusSchema = object({
  capacity: optional(mapOf(quantity)),
  allocatable: optional(mapOf(quantity)),
  phase: optional(text),
  conditions: optional(listBy('type', NodeConditionSchema)),
  addresses: optional(listBy('type', NodeAddressSchema)),
  daemonEndpoints: optional(object({ kubeletEndpoint: optional(object({ Port: integer })) })),
  nodeInfo: optional(NodeSystemInfoSchema),
  images: optional(list(object({ names: optional(list(text)), sizeBytes: optional(integer) }))),
  volumesInUse: optional(list(text)),
  volumesAttached: optional(list(object({ name: text, devicePath: text }))),
})
export type NodeStatus = Described<typeof NodeStatusSchema>

const NodeSpecSchema = object({
  podCIDR: field(1, optional(text)),
  podCIDRs: field(7, optional(setOf(text))),
  providerID: field(3, optional(text)),
  unschedulable: field(4, optional(bool)),
  taints: field(5, optional(list(TaintSchema))),
  externalID: field(2, optional(text)),
  configSource: optional(object({ configMap: optional(ObjectReferenceSchema) })),
})
export type NodeSpec = Described<typeof NodeSpecSchema>

export const NodeSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Node'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(NodeSpecSchema)),
  status: optional(NodeStatusSchema),
})
export type Node = Described<typeof NodeSchema>

/** The conditions an agent owns, in the order the kubelet writes them: Ready last. */
export const nodeConditionTypes = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'] as const
export type PressureType = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure'

/** Further conditions of the machine's health that an agent reports; a machine without the sensor has no such condition. */
export const healthConditionTypes = [
  'UnderVoltage',
  'ThermalThrottling',
  'HighTemperature',
  'ReadOnlyFilesystem',
  'StorageWear',
  'ClockUnsynchronized',
  'WeakWifi',
  'MemoryCgroupDisabled',
  'DockerUnhealthy',
  'PodNetworkUnavailable',
  'KernelDeadlock',
  'FrequentRestarts',
] as const
export type HealthConditionType = (typeof healthConditionTypes)[number]
