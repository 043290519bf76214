/** What the agent asks of a CSI driver: its registration, and its node service. */
import type { Codec } from '../../../daemon/protobuf/protobuf-codec.ts'
import type { CsiCapabilities } from '../../pods/volumes/csi/csi-mount.ts'
import type { DriverVolume } from '../../usage/volume-metrics.ts'
import { nodeCalls, nodeCapabilityTypes, registrationCalls, usageUnits } from './csi-messages.ts'
import { grpcCall } from './grpc-call.ts'

type RequestOf<Method extends { readonly request: Codec<unknown, never> }> =
  Method['request'] extends Codec<unknown, infer In> ? In : never

export type PluginInfo = {
  readonly type: string
  readonly name: string
  readonly endpoint: string
  readonly supportedVersions: readonly string[]
}

export type CsiNodeInfo = {
  readonly nodeId: string
  /** undefined: the driver states no limit. */
  readonly maxVolumes?: number
  readonly topology: { readonly [key: string]: string }
}

/** undefined: the driver states none. */
export type CsiStats = Pick<DriverVolume, 'bytes' | 'inodes' | 'condition'>

/** The socket in the registration folder. */
export interface CsiRegistration {
  getInfo(): Promise<PluginInfo>
  /** `error` '': it was registered. */
  notify(error: string): Promise<void>
}

/** The socket of the driver. */
export interface CsiClient {
  nodeInfo(): Promise<CsiNodeInfo>
  capabilities(): Promise<CsiCapabilities>
  stage(request: RequestOf<typeof nodeCalls.stage>): Promise<void>
  unstage(request: RequestOf<typeof nodeCalls.unstage>): Promise<void>
  publish(request: RequestOf<typeof nodeCalls.publish>): Promise<void>
  unpublish(request: RequestOf<typeof nodeCalls.unpublish>): Promise<void>
  stats(request: RequestOf<typeof nodeCalls.stats>): Promise<CsiStats>
  expand(request: RequestOf<typeof nodeCalls.expand>): Promise<void>
}

/** The kubelet waits so long (csiTimeout in pkg/volume/csi). */
const usualMs = 120_000
/** They are read once a minute, and of no use later. */
const statsMs = 30_000
/** The kubelet waits 1 s; a small machine that starts all its pods is slower. */
const registrationMs = 5_000

export function csiRegistration(socket: string): CsiRegistration {
  return {
    getInfo: () => grpcCall(socket, registrationCalls.getInfo, {}, registrationMs),
    async notify(error) {
      await grpcCall(socket, registrationCalls.notify, { registered: error === '', error }, registrationMs)
    },
  }
}

export function csiClient(socket: string, deadlineMs = usualMs): CsiClient {
  return {
    async nodeInfo() {
      const { nodeId, maxVolumesPerNode, accessibleTopology } = await grpcCall(
        socket,
        nodeCalls.getInfo,
        {},
        deadlineMs,
      )
      return {
        nodeId,
        ...(maxVolumesPerNode > 0 && { maxVolumes: maxVolumesPerNode }),
        topology: accessibleTopology?.segments ?? {},
      }
    },
    async capabilities() {
      const { capabilities } = await grpcCall(socket, nodeCalls.getCapabilities, {}, deadlineMs)
      const types = new Set(capabilities.flatMap(({ rpc }) => rpc?.type ?? []))
      return {
        stages: types.has(nodeCapabilityTypes.stageUnstage),
        mountsWithGroup: types.has(nodeCapabilityTypes.volumeMountGroup),
        expands: types.has(nodeCapabilityTypes.expand),
        hasStats: types.has(nodeCapabilityTypes.volumeStats),
        hasCondition: types.has(nodeCapabilityTypes.volumeCondition),
        hasSingleNodeModes: types.has(nodeCapabilityTypes.singleNodeMultiWriter),
      }
    },
    stage: async (request) => void (await grpcCall(socket, nodeCalls.stage, request, deadlineMs)),
    unstage: async (request) => void (await grpcCall(socket, nodeCalls.unstage, request, deadlineMs)),
    publish: async (request) => void (await grpcCall(socket, nodeCalls.publish, request, deadlineMs)),
    unpublish: async (request) => void (await grpcCall(socket, nodeCalls.unpublish, request, deadlineMs)),
    async stats(request) {
      const { usage, condition } = await grpcCall(socket, nodeCalls.stats, request, statsMs)
      const amounts = (unit: number) => usage.find((one) => one.unit === unit)
      const [bytes, inodes] = [amounts(usageUnits.bytes), amounts(usageUnits.inodes)]
      return { ...(bytes && { bytes }), ...(inodes && { inodes }), ...(condition && { condition }) }
    },
    expand: async (request) => void (await grpcCall(socket, nodeCalls.expand, request, deadlineMs)),
  }
}
