/**
 * The calls of the registration of plugins and of the node service of CSI drivers, and the fields of their messages that the agent uses. Numbers
 * and names are those of `pluginregistration/v1/api.proto` of Kubernetes 1.32 and of `csi.proto` 1.9; earlier drivers leave out the later ones.
 */
import {
  boolValue,
  type Codec,
  int64,
  messageCodec,
  messageList,
  oneMessage,
  textList,
  textMap,
  textValue,
} from '../../../daemon/protobuf/protobuf-codec.ts'

/** A call with one request and one answer. */
export type GrpcMethod<Out, In> = {
  readonly path: string
  readonly request: Codec<unknown, In>
  readonly answer: Codec<Out, never>
}

const nothing = messageCodec({})

const pluginInfo = messageCodec({
  type: [1, textValue],
  name: [2, textValue],
  endpoint: [3, textValue],
  supportedVersions: [4, textList],
})
const registrationStatus = messageCodec({ registered: [1, boolValue], error: [2, textValue] })

const mountVolume = messageCodec({
  fsType: [1, textValue],
  mountFlags: [2, textList],
  volumeMountGroup: [3, textValue],
})
const accessMode = messageCodec({ mode: [1, int64] })
/** One of `block` and `mount`. */
const volumeCapability = messageCodec({
  block: [1, oneMessage(nothing)],
  mount: [2, oneMessage(mountVolume)],
  accessMode: [3, oneMessage(accessMode)],
})
const stageRequest = messageCodec({
  volumeId: [1, textValue],
  publishContext: [2, textMap],
  stagingTargetPath: [3, textValue],
  volumeCapability: [4, oneMessage(volumeCapability)],
  secrets: [5, textMap],
  volumeContext: [6, textMap],
})
const unstageRequest = messageCodec({ volumeId: [1, textValue], stagingTargetPath: [2, textValue] })
const publishRequest = messageCodec({
  volumeId: [1, textValue],
  publishContext: [2, textMap],
  stagingTargetPath: [3, textValue],
  targetPath: [4, textValue],
  volumeCapability: [5, oneMessage(volumeCapability)],
  readonly: [6, boolValue],
  secrets: [7, textMap],
  volumeContext: [8, textMap],
})
const unpublishRequest = messageCodec({ volumeId: [1, textValue], targetPath: [2, textValue] })
const expandRequest = messageCodec({
  volumeId: [1, textValue],
  volumePath: [2, textValue],
  capacityRange: [3, oneMessage(messageCodec({ requiredBytes: [1, int64] }))],
  stagingTargetPath: [4, textValue],
  volumeCapability: [5, oneMessage(volumeCapability)],
  secrets: [6, textMap],
})
const statsRequest = messageCodec({
  volumeId: [1, textValue],
  volumePath: [2, textValue],
  stagingTargetPath: [3, textValue],
})
const volumeUsage = messageCodec({ available: [1, int64], total: [2, int64], used: [3, int64], unit: [4, int64] })
const volumeCondition = messageCodec({ abnormal: [1, boolValue], message: [2, textValue] })
const volumeStats = messageCodec({ usage: [1, messageList(volumeUsage)], condition: [2, oneMessage(volumeCondition)] })
const topology = messageCodec({ segments: [1, textMap] })
const nodeInfo = messageCodec({
  nodeId: [1, textValue],
  maxVolumesPerNode: [2, int64],
  accessibleTopology: [3, oneMessage(topology)],
})
const rpcCapability = messageCodec({ type: [1, int64] })
const nodeCapability = messageCodec({ rpc: [1, oneMessage(rpcCapability)] })
const nodeCapabilities = messageCodec({ capabilities: [1, messageList(nodeCapability)] })

/** NodeServiceCapability.RPC.Type. */
export const nodeCapabilityTypes = {
  stageUnstage: 1,
  volumeStats: 2,
  expand: 3,
  volumeCondition: 4,
  singleNodeMultiWriter: 5,
  volumeMountGroup: 6,
} as const

const method = <Out, In>(
  path: string,
  request: Codec<unknown, In>,
  answer: Codec<Out, never>,
): GrpcMethod<Out, In> => ({
  path,
  request,
  answer,
})

/** VolumeUsage.Unit. */
export const usageUnits = { bytes: 1, inodes: 2 } as const

/** The package of the first has no version (`api.proto`). */
export const registrationCalls = {
  getInfo: method('/pluginregistration.Registration/GetInfo', nothing, pluginInfo),
  notify: method('/pluginregistration.Registration/NotifyRegistrationStatus', registrationStatus, nothing),
}

export const nodeCalls = {
  getInfo: method('/csi.v1.Node/NodeGetInfo', nothing, nodeInfo),
  getCapabilities: method('/csi.v1.Node/NodeGetCapabilities', nothing, nodeCapabilities),
  stage: method('/csi.v1.Node/NodeStageVolume', stageRequest, nothing),
  unstage: method('/csi.v1.Node/NodeUnstageVolume', unstageRequest, nothing),
  publish: method('/csi.v1.Node/NodePublishVolume', publishRequest, nothing),
  unpublish: method('/csi.v1.Node/NodeUnpublishVolume', unpublishRequest, nothing),
  stats: method('/csi.v1.Node/NodeGetVolumeStats', statsRequest, volumeStats),
  expand: method('/csi.v1.Node/NodeExpandVolume', expandRequest, nothing),
}
