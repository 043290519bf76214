/**
 * Loop: expands the volumes of pools and shares when their claims request more. The size is not enforced, so nothing waits for a node: first the
 * volume has the new capacity, then the status of the claim. Others are expanded by the external-resizer of their driver
 * (pkg/controller/volume/expand of Kubernetes), or those of the source `local` by their owner.
 */
import { isApiError } from '../../../api/api-error.ts'
import { compareQuantities, formatQuantity } from '../../../api/quantity.ts'
import { localProvisioner } from '../../../api/storage/pools.ts'
import { isOnClassShare } from '../../../api/storage/shares.ts'
import { capacityOfVolume, requestOfClaim } from '../../../api/storage/volume-matching.ts'
import { poolOfVolume } from '../../../api/storage/volume-place.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { type InformerNeeds, informer, keyFrom, keyText } from '../../store/informer.ts'
import { objectReference } from '../../store/references.ts'
import type { StoredClaim, VolumeWrite } from './bind-writes.ts'
import type { StoredVolume } from './volume-index.ts'
import { volumeWrites } from './volume-writes.ts'

export type LocalExpanderNeeds = InformerNeeds & { readonly events: EventRecorder }

/** Another writer was faster: its write is visible by then. */
const conflictMs = 20

/** The next write; undefined: there is nothing to expand, or it is for others to do. Admission has refused what may not grow. */
export function nextExpansion(claim: StoredClaim, volume: StoredVolume | undefined): VolumeWrite | undefined {
  if (volume === undefined || !isBoundTo(claim, volume)) return undefined
  if (!isOwn(volume)) return grownByOwner(claim, volume)
  if (!wantsMore(claim, volume)) return undefined
  const request = requestOfClaim(claim)
  const storage = claim.spec?.resources?.requests?.['storage']
  if (storage === undefined) return undefined
  if (compareQuantities(capacityOfVolume(volume), request) < 0) {
    const spec = { ...volume.spec, capacity: { ...volume.spec?.capacity, storage } }
    return { resource: 'persistentvolumes', part: 'whole', object: { ...volume, spec } }
  }
  const status = { ...claim.status, capacity: { ...claim.status?.capacity, storage } }
  return { resource: 'persistentvolumeclaims', part: 'status', object: { ...claim, status } }
}

/** The conditions of an expansion (MergeResizeConditionOnPVC in pkg/volume/util/resize_util.go). */
const resizeConditions: readonly string[] = [
  ...['FileSystemResizePending', 'Resizing', 'ControllerResizeError', 'NodeResizeError'],
]

/**
 * A volume of the source `local` has a larger capacity, because the owner of the machine has enlarged its device or its disk. The kubelet has
 * nothing to do for a device or a folder (NodeExpand in pkg/volume/local), and writes the capacity into the status of the claim.
 */
function grownByOwner(claim: StoredClaim, volume: StoredVolume): VolumeWrite | undefined {
  if (!hasGrown(claim, volume)) return undefined
  const { status = {} } = claim
  const { storage: step, ...steps } = status.allocatedResourceStatuses ?? {}
  // The resizer that writes these two decides when the node may expand it (checkForRecoveryFromExpansion, runPreCheck).
  const isDirected = step !== undefined || status.allocatedResources !== undefined
  if (isDirected && step !== 'NodeResizePending' && step !== 'NodeResizeInProgress') return undefined
  const storage = (isDirected ? status.allocatedResources : volume.spec?.capacity)?.['storage']
  if (storage === undefined) return undefined
  const { conditions = [], allocatedResourceStatuses: _, ...others } = status
  const object = {
    ...claim,
    status: {
      ...{ ...others, capacity: { ...status.capacity, storage } },
      conditions: conditions.filter(({ type }) => !resizeConditions.includes(type)),
      ...(Object.keys(steps).length > 0 && { allocatedResourceStatuses: steps }),
    },
  }
  return { resource: 'persistentvolumeclaims', part: 'status', object }
}

function hasGrown({ status }: StoredClaim, volume: StoredVolume): boolean {
  const has = status?.capacity?.['storage']
  if (volume.spec?.local === undefined || has === undefined || isOwn(volume)) return false
  return compareQuantities(capacityOfVolume(volume), has) > 0
}

function isOwn(volume: StoredVolume): boolean {
  return poolOfVolume(volume) !== undefined || isOnClassShare(volume)
}

function isBoundTo({ metadata, spec, status }: StoredClaim, volume: StoredVolume): boolean {
  const isBound = status?.phase === 'Bound' && spec?.volumeName === volume.metadata.name
  return isBound && volume.spec?.claimRef?.uid === metadata.uid
}

function wantsMore(claim: StoredClaim, volume: StoredVolume): boolean {
  const has = claim.status?.capacity?.['storage']
  if (!isBoundTo(claim, volume) || has === undefined) return false
  return compareQuantities(requestOfClaim(claim), has) > 0
}

/** Most claims have what they request, in the same words: they are not visited. */
function mayGrow({ spec, status }: StoredClaim): boolean {
  const has = status?.capacity?.['storage']
  return has !== undefined && has !== spec?.resources?.requests?.['storage']
}

export function localExpander(needs: LocalExpanderNeeds): Loop {
  const { clock, log, events } = needs
  const queue = workQueue(clock)
  const writes = volumeWrites(needs)
  const claims = informer(needs, 'persistentvolumeclaims', (present, previous) => {
    if (present !== undefined && mayGrow(present)) queue.add(keyText(present.metadata))
    else announced.delete(keyText((present ?? previous)?.metadata ?? {}))
  })
  const volumes = informer(needs, 'persistentvolumes', (present) => {
    const { claimRef } = present?.spec ?? {}
    const claim = claimRef && claims.get(keyFrom(keyText(claimRef)))
    if (present === undefined || claim === undefined) return
    if (mayGrow(claim) || hasGrown(claim, present)) queue.add(keyText(claim.metadata))
  })

  const record = async (claim: StoredClaim, component: string, reason: string, message: string) => {
    const event = { object: objectReference(claim), component, type: 'Normal' as const, reason, message }
    await events
      .record(event)
      .catch((error: unknown) => log.warn('Event not recorded', { object: event.object.name, error }))
  }
  /** By claim: the size of the last Event. */
  const announced = new Map<string, string>()
  const announce = async (key: string, claim: StoredClaim) => {
    const size = formatQuantity(requestOfClaim(claim))
    if (announced.get(key) === size) return
    announced.set(key, size)
    const message = 'waiting for an external controller to expand this PVC'
    await record(claim, 'volume_expand', 'ExternalExpanding', message)
  }

  const visit = async (key: string): Promise<Reconciled> => {
    for (const source of [claims, volumes]) source.catchUp()
    const claim = claims.get(keyFrom(key))
    const volume = volumes.get({ namespace: '', name: claim?.spec?.volumeName ?? '' })
    const next = claim && nextExpansion(claim, volume)
    const isForOthers = volume !== undefined && !isOwn(volume)
    if (claim !== undefined && isForOthers && next === undefined && wantsMore(claim, volume)) await announce(key, claim)
    else announced.delete(key)
    if (claim === undefined || next === undefined) return undefined
    await writes.write(next)
    if (next.resource === 'persistentvolumes') return undefined
    const [reason, message] = isForOthers
      ? ['FileSystemResizeSuccessful', `MountVolume.NodeExpandVolume succeeded for volume "${volume.metadata.name}"`]
      : ['VolumeResizeSuccessful', `ExpandVolume succeeded for volume ${key}`]
    await record(claim, isForOthers ? 'volume_expand' : localProvisioner, reason, message)
    return undefined
  }
  const reconcile = async (key: string): Promise<Reconciled> => {
    try {
      return await visit(key)
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) return { requeueAfterMs: conflictMs }
      throw error
    }
  }

  return {
    name: 'local-expander',
    run: (signal) =>
      runLoops(
        [
          { name: 'claims', run: claims.run },
          { name: 'volumes', run: volumes.run },
          {
            name: 'work',
            async run(stop) {
              await Promise.all([claims.listed, volumes.listed])
              if (!stop.aborted) await runController({ name: 'local-expander', reconcile }, queue, log, stop, 5)
            },
          },
        ],
        signal,
        log,
      ),
  }
}
