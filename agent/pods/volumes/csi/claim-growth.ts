/**
 * A claim whose volume was made larger, as the API has it → what its node does, and what it writes into the status (runPreCheck and expandOnPlugin
 * in pkg/volume/util/operationexecutor/node_expander.go, pkg/volume/util/resize_util.go of Kubernetes). Pure.
 */
import { compareQuantities, formatQuantity } from '../../../../api/quantity.ts'
import { type Described, list, mapOf, object, optional, quantity, text } from '../../../../api/schema.ts'

const ConditionSchema = object({
  type: text,
  status: text,
  lastProbeTime: optional(text),
  lastTransitionTime: optional(text),
  reason: optional(text),
  message: optional(text),
})
const AmountsSchema = optional(mapOf(quantity))

/** The fields of a PersistentVolumeClaim that matter here. */
export const GrowingClaimSchema = object({
  metadata: object({ uid: text, resourceVersion: text }),
  spec: object({ accessModes: optional(list(text)) }),
  status: optional(
    object({
      capacity: AmountsSchema,
      conditions: optional(list(ConditionSchema)),
      allocatedResources: AmountsSchema,
      allocatedResourceStatuses: optional(mapOf(text)),
    }),
  ),
})
export type GrowingClaim = Described<typeof GrowingClaimSchema>

export type GrowthPlan =
  /** `isOfOldResizer`: it expects no statuses of the single steps. `isWritten`: the claim has the size, and its status stays as it is. */
  | { readonly step: 'expand'; readonly size: string; readonly isOfOldResizer?: true; readonly isWritten?: true }
  /** The volume has the size. */
  | { readonly step: 'done' }
  /** The controller of the driver has not finished, or the size cannot be had. */
  | { readonly step: 'wait' }

export type FailedGrowth = {
  /** No later attempt succeeds. */
  readonly isInfeasible: boolean
  readonly message: string
}

type Condition = Described<typeof ConditionSchema>

/** `volumeSize`: the capacity of the PersistentVolume. */
export function growthPlan({ spec, status = {} }: GrowingClaim, volumeSize: string): GrowthPlan {
  const { capacity = {}, allocatedResources, allocatedResourceStatuses = {} } = status
  const has = capacity['storage'] ?? '0'
  const step = allocatedResourceStatuses['storage']
  const isShared = spec.accessModes?.includes('ReadWriteMany') === true
  const isOfOldResizer = step === undefined && allocatedResources === undefined
  const size = formatQuantity((isOfOldResizer ? undefined : allocatedResources?.['storage']) ?? volumeSize)
  if (step === undefined && compareQuantities(has, size) >= 0) {
    return isShared ? { step: 'expand', size, isWritten: true } : { step: 'done' }
  }
  if (isOfOldResizer) return { step: 'expand', size, isOfOldResizer }
  return step === 'NodeResizePending' || step === 'NodeResizeInProgress' ? { step: 'expand', size } : { step: 'wait' }
}

/** Merge patches of the claim's status. All but that of a failure are refused if it was changed meanwhile. */
export function growthBegun({ metadata: { resourceVersion } }: GrowingClaim): object {
  return { metadata: { resourceVersion }, status: { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } } }
}

export function growthDone({ metadata: { resourceVersion }, status }: GrowingClaim, size: string): object {
  const conditions = (status?.conditions ?? []).filter(({ type }) => !ofGrowth.includes(type))
  return {
    metadata: { resourceVersion },
    status: { capacity: { storage: size }, allocatedResourceStatuses: withoutStorage(status), conditions },
  }
}

export function growthFailed(
  { metadata: { resourceVersion }, status }: GrowingClaim,
  { isInfeasible, message }: FailedGrowth,
  now: string,
): object {
  const before = status?.conditions ?? []
  const failed: Condition = {
    ...{ type: 'NodeResizeError', status: 'True', lastTransitionTime: now },
    message: `failed to expand pvc with ${message}`,
  }
  const isKnown = before.some(({ type, status: value }) => type === failed.type && value === 'True')
  const conditions = isKnown ? before : [...before.filter(({ type }) => type !== failed.type), failed]
  return {
    metadata: { resourceVersion },
    status: {
      conditions,
      ...(isInfeasible && { allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } }),
    },
  }
}

const ofGrowth: readonly string[] = [
  ...['FileSystemResizePending', 'Resizing', 'ControllerResizeError', 'NodeResizeError'],
]

function withoutStorage({ allocatedResourceStatuses = {} }: NonNullable<GrowingClaim['status']> = {}) {
  const isAlone = Object.keys(allocatedResourceStatuses).every((name) => name === 'storage')
  return isAlone ? null : { storage: null }
}
