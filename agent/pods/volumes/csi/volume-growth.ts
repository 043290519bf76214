/**
 * The expansion of a volume on its node, and what becomes of the status of its claim: first it is in progress, then its driver is called, then
 * the claim has the size or the reason (pkg/volume/util/operationexecutor/node_expander.go of Kubernetes).
 */
import { decode } from '../../../../api/decode.ts'
import { quantityToNumber } from '../../../../api/quantity.ts'
import type { ApiClient } from '../../../../daemon/api-client.ts'
import { type Clock, rfc3339 } from '../../../../daemon/clock.ts'
import { messageOf } from '../../../../daemon/errors.ts'
import type { Log } from '../../../../daemon/log.ts'
import { VolumeError } from '../volume-store.ts'
import {
  type FailedGrowth,
  type GrowingClaim,
  GrowingClaimSchema,
  type GrowthPlan,
  growthBegun,
  growthDone,
  growthFailed,
  growthPlan,
} from './claim-growth.ts'
import type { CsiGrowth } from './csi-mount.ts'
import { GrpcError, grpcCodes, isFinalError } from './grpc-error.ts'
import type { VolumeEvents } from './volume-events.ts'

export type GrowingVolume = {
  /** The name of the PersistentVolume. */
  readonly volume: string
  readonly driver: string
  /** As `namespace/name`. */
  readonly claim: string
  readonly claimUID: string
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly growth: CsiGrowth
}

/** undefined: the driver does not expand volumes on nodes. */
export type ExpandCall = ((bytes: number, secrets: { readonly [key: string]: string }) => Promise<void>) | undefined

/**
 * `later`: not yet, or the API cannot be reached: a pod with its data does not wait for a controller. `inUse`: the driver expands it only while no
 * pod has it.
 */
export type GrowthEnd = 'done' | 'later' | 'inUse'

export interface VolumeGrowth {
  /** Throws VolumeError. */
  grow(volume: GrowingVolume, expand: ExpandCall): Promise<GrowthEnd>
}

export type VolumeGrowthNeeds = {
  readonly api: Pick<ApiClient, 'get' | 'patch'>
  readonly events: VolumeEvents
  readonly clock: Clock
  readonly log: Log
}

type Expansion = GrowthPlan & { readonly step: 'expand' }

export function volumeGrowth({ api, events, clock, log }: VolumeGrowthNeeds, nodeName: string): VolumeGrowth {
  /** undefined: it is another claim now, or there is no answer. */
  const answered = async (call: () => ReturnType<ApiClient['get']>, { claim, claimUID }: GrowingVolume) => {
    const answer = await call().catch((error: unknown) => void log.warn('Claim not reached', { claim, error }))
    const found = answer?.status === 200 ? decode(GrowingClaimSchema, answer.body) : undefined
    return found?.ok && found.value.metadata.uid === claimUID ? found.value : undefined
  }
  const read = (volume: GrowingVolume) => answered(() => api.get(pathOf(volume)), volume)
  const write = (volume: GrowingVolume, patch: object) =>
    answered(() => api.patch(`${pathOf(volume)}/status`, patch), volume)

  const failed = async (volume: GrowingVolume, claim: GrowingClaim, failure: FailedGrowth): Promise<void> => {
    await write(volume, growthFailed(claim, failure, rfc3339(clock.wallMs())))
  }

  const succeeded = async (volume: GrowingVolume, claim: GrowingClaim, plan: Expansion): Promise<GrowthEnd> => {
    const event = {
      ...{ type: 'Normal' as const, reason: 'FileSystemResizeSuccessful' },
      message: `MountVolume.NodeExpandVolume succeeded for volume "${volume.volume}" ${nodeName}`,
    }
    events.ofPod(volume.pod, event)
    const [namespace = '', name = ''] = volume.claim.split('/')
    events.ofClaim({ namespace, name, uid: volume.claimUID }, event)
    if (plan.isWritten) return 'done'
    // Without an answer it is expanded once more, which changes nothing.
    return (await write(volume, growthDone(claim, plan.size))) === undefined ? 'later' : 'done'
  }

  const expanded = async (
    volume: GrowingVolume,
    { claim, plan, expand }: { readonly claim: GrowingClaim; readonly plan: Expansion; readonly expand: ExpandCall },
  ): Promise<GrowthEnd> => {
    const { secrets } = volume.growth
    if ('missing' in secrets) throw new VolumeError(`Expander.NodeExpand failed: ${secrets.missing}`)
    if (expand === undefined) return await withoutExpander(volume, claim, plan)
    try {
      await expand(quantityToNumber(plan.size), secrets.texts)
    } catch (cause) {
      const failure = failureOf(cause)
      if (isFinalError(cause) && !plan.isOfOldResizer) await failed(volume, claim, failure)
      if (!isInUse(cause)) throw new VolumeError(failure.message, { cause })
      log.warn('Volume not expanded: its driver expands none that is in use', { volume: volume.volume, error: cause })
      return 'inUse'
    }
    return await succeeded(volume, claim, plan)
  }

  /** The driver expands volumes in its controller only, if at all. */
  const withoutExpander = async (volume: GrowingVolume, claim: GrowingClaim, plan: Expansion): Promise<GrowthEnd> => {
    if (plan.isWritten || plan.isOfOldResizer) return 'done'
    const message = `NodeExpand is not supported by the CSI driver ${volume.driver}`
    await failed(volume, claim, { isInfeasible: false, message })
    throw new VolumeError(message)
  }

  return {
    async grow(volume, expand) {
      const claim = await read(volume)
      const plan = claim && growthPlan(claim, volume.growth.size)
      if (claim === undefined || plan === undefined || plan.step === 'wait') return 'later'
      if (plan.step === 'done') return 'done'
      const isMarked = !plan.isWritten && !plan.isOfOldResizer
      const begun = isMarked ? await write(volume, growthBegun(claim)) : claim
      return begun === undefined ? 'later' : await expanded(volume, { claim: begun, plan, expand })
    },
  }
}

function pathOf({ claim }: GrowingVolume): string {
  const [namespace = '', name = ''] = claim.split('/')
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(name)}`
}

const infeasible: readonly number[] = [grpcCodes.invalidArgument, grpcCodes.outOfRange, grpcCodes.notFound]

/** isInfeasibleError in pkg/volume/csi/expander.go; the two texts are its own. */
function failureOf(cause: unknown): FailedGrowth {
  const isInfeasible = cause instanceof GrpcError && infeasible.includes(cause.code)
  const failed = 'Expander.NodeExpand failed to expand the volume'
  return { isInfeasible, message: isInfeasible ? `${failed} ${messageOf(cause)}` : `${failed} : ${messageOf(cause)}` }
}

function isInUse(cause: unknown): boolean {
  return cause instanceof GrpcError && cause.code === grpcCodes.failedPrecondition
}
