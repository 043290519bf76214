/** core/v1 Node. */
import { ObjectMetaSchema } from './meta.ts'
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
  pointer,
  quantity,
  setOf,
  text,
  time,
} from './schema.ts'

export const TaintSchema = object('core.v1.Taint', {
  key: field(1, text),
  value: field(2, optional(text)),
  effect: field(3, oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute')),
  timeAdded: field(4, optional(time)),
})
export type Taint = Described<typeof TaintSchema>

const NodeConditionSchema = object('core.v1.NodeCondition', {
  type: field(1, text),
  status: field(2, oneOf('True', 'False', 'Unknown')),
  lastHeartbeatTime: field(3, optional(time)),
  lastTransitionTime: field(4, optional(time)),
  reason: field(5, optional(text)),
  message: field(6, optional(text)),
})
export type NodeCondition = Described<typeof NodeConditionSchema>

const NodeAddressSchema = object('core.v1.NodeAddress', {
  type: field(1, oneOf('InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS')),
  address: field(2, text),
})
export type NodeAddress = Described<typeof NodeAddressSchema>

/** All texts as pointers: Go sends unknown ones as empty texts, and they are required. */
const NodeSystemInfoSchema = object('core.v1.NodeSystemInfo', {
  machineID: pointer(1, text),
  systemUUID: pointer(2, text),
  bootID: pointer(3, text),
  kernelVersion: pointer(4, text),
  osImage: pointer(5, text),
  containerRuntimeVersion: pointer(6, text),
  kubeletVersion: pointer(7, text),
  kubeProxyVersion: pointer(8, optional(text)),
  operatingSystem: pointer(9, text),
  architecture: pointer(10, text),
})
export type NodeSystemInfo = Described<typeof NodeSystemInfoSchema>

/** A name for RuntimeClasses; none is the handler of a pod without one. */
const NodeRuntimeHandlerSchema = object('core.v1.NodeRuntimeHandler', {
  name: field(1, optional(text)),
  features: field(
    2,
    optional(
      object('core.v1.NodeRuntimeHandlerFeatures', {
        recursiveReadOnlyMounts: pointer(1, optional(bool)),
        userNamespaces: pointer(2, optional(bool)),
      }),
    ),
  ),
})
export type NodeRuntimeHandler = Described<typeof NodeRuntimeHandlerSchema>

export const NodeStatusSchema = object('core.v1.NodeStatus', {
  capacity: field(1, optional(mapOf(quantity))),
  allocatable: field(2, optional(mapOf(quantity))),
  phase: field(3, optional(text)),
  conditions: field(4, optional(listBy('type', NodeConditionSchema))),
  addresses: field(5, optional(listBy('type', NodeAddressSchema))),
  daemonEndpoints: field(
    6,
    optional(
      object('core.v1.NodeDaemonEndpoints', {
        kubeletEndpoint: field(1, optional(object('core.v1.DaemonEndpoint', { Port: pointer(1, integer) }))),
      }),
    ),
  ),
  nodeInfo: field(7, optional(NodeSystemInfoSchema)),
  images: field(
    8,
    optional(
      list(
        object('core.v1.ContainerImage', {
          names: field(1, optional(list(text))),
          sizeBytes: field(2, optional(integer)),
        }),
      ),
    ),
  ),
  volumesInUse: field(9, optional(list(text))),
  volumesAttached: field(
    10,
    optional(list(object('core.v1.AttachedVolume', { name: pointer(1, text), devicePath: pointer(2, text) }))),
  ),
  runtimeHandlers: field(12, optional(list(NodeRuntimeHandlerSchema))),
})
export type NodeStatus = Described<typeof NodeStatusSchema>

const NodeConfigSourceSchema = object('core.v1.NodeConfigSource', {
  configMap: field(
    2,
    optional(
      object('core.v1.ConfigMapNodeConfigSource', {
        namespace: field(1, optional(text)),
        name: field(2, optional(text)),
        uid: field(3, optional(text)),
        resourceVersion: field(4, optional(text)),
        kubeletConfigKey: field(5, optional(text)),
      }),
    ),
  ),
})

const NodeSpecSchema = object('core.v1.NodeSpec', {
  podCIDR: field(1, optional(text)),
  podCIDRs: field(7, optional(setOf(text))),
  providerID: field(3, optional(text)),
  unschedulable: field(4, optional(bool)),
  taints: field(5, optional(list(TaintSchema))),
  externalID: field(2, optional(text)),
  // Without effect since Kubernetes 1.24, but kept.
  configSource: field(6, optional(NodeConfigSourceSchema)),
})
export type NodeSpec = Described<typeof NodeSpecSchema>

export const NodeSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Node'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(NodeSpecSchema)),
  status: field(3, optional(NodeStatusSchema)),
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
  'FleetNetworkUnavailable',
  'KernelDeadlock',
  'FrequentRestarts',
] as const
export type HealthConditionType = (typeof healthConditionTypes)[number]
