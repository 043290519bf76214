/** Makes the claims of the pods of StatefulSets, and sets who owns them (pkg/controller/statefulset/stateful_pod_control.go). */
import { isApiError } from '../../../../api/api-error.ts'
import type { OwnerReference } from '../../../../api/meta.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { messageOf } from '../../../../daemon/errors.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { informer } from '../../../store/informer.ts'
import { rewrite } from '../../../store/rewrite.ts'
import type { StoredObject, StoredPod } from '../../../store/store.ts'
import type { OwnersInQueue } from '../owner-loop.ts'
import { isNamespaceTerminating, type PodControlNeeds, podControl } from '../pod-control.ts'
import { claimOwners, claimsOfPlace, goesWithEarlierPod, setsOfClaim } from './stateful-claims.ts'
import { ordinalOf } from './stateful-identity.ts'

type StoredStatefulSet = StoredObject<'statefulsets'>
type StoredClaim = StoredObject<'persistentvolumeclaims'>

type ClaimPlace = {
  readonly wanted: PersistentVolumeClaim
  readonly name: string
  readonly present: StoredClaim | undefined
}

export interface StatefulClaimControl {
  /** Makes those of the place that are missing. False: the namespace is being deleted. Throws while one is being deleted. */
  make(set: StoredStatefulSet, ordinal: number): Promise<boolean>
  /** Sets who owns the claims of the pod, by the retention policy. */
  retain(set: StoredStatefulSet, pod: StoredPod): Promise<void>
  /** A claim of the place goes with an earlier pod: a new one waits for its end. */
  isLeaving(set: StoredStatefulSet, ordinal: number): boolean
  /** A claim is missing. */
  isMissing(set: StoredStatefulSet, ordinal: number): boolean
  /** Its claims have other owners than the policy gives them. */
  hasOtherOwners(set: StoredStatefulSet, pod: StoredPod): boolean
  /** A set is visited after what happens to its claims. */
  connect(owners: OwnersInQueue<'statefulsets'>): void
  catchUp(): void
  readonly listed: Promise<void>
  run(signal: AbortSignal): Promise<void>
}

export function statefulClaimControl(needs: PodControlNeeds, component: string): StatefulClaimControl {
  let sets: OwnersInQueue<'statefulsets'> | undefined
  const claims = informer(needs, 'persistentvolumeclaims', (present, previous) => {
    const { namespace = '', name } = (present ?? previous)?.metadata ?? {}
    if (name === undefined || (present && previous && !concernsSet(present, previous))) return
    for (const set of setsOfClaim(name)) {
      const owner = sets?.get({ namespace, name: set })
      if (owner !== undefined && (owner.spec.volumeClaimTemplates ?? []).length > 0) sets?.enqueue(owner)
    }
  })
  const { record } = podControl(needs, component)

  const placeOf = (set: StoredStatefulSet, ordinal: number) =>
    claimsOfPlace(set, ordinal).map((wanted) => {
      const { namespace = '', name = '' } = wanted.metadata
      return { wanted, name, present: claims.get({ namespace, name }) }
    })
  const claimsOfPod = (set: StoredStatefulSet, pod: StoredPod): readonly StoredClaim[] => {
    const ordinal = ordinalOf(set.metadata.name, pod.metadata.name)
    return ordinal === undefined ? [] : placeOf(set, ordinal).flatMap(({ present = [] }) => present)
  }

  /** What is wrong with the claim. */
  const fill = async (
    set: StoredStatefulSet,
    ordinal: number,
    { wanted, name, present }: ClaimPlace,
  ): Promise<readonly string[] | 'terminating'> => {
    const isLeaving = present?.metadata.deletionTimestamp !== undefined
    if (present !== undefined) return isLeaving ? [`pvc ${name} is being deleted`] : []
    const pod = `${set.metadata.name}-${ordinal}`
    const subject = `StatefulSet ${set.metadata.name}`
    try {
      await needs.creation.create('persistentvolumeclaims', wanted, component)
      const message = `create Claim ${name} Pod ${pod} in ${subject} success`
      await record(set, { type: 'Normal', reason: 'SuccessfulCreate', message })
      return []
    } catch (error) {
      if (isNamespaceTerminating(error)) return 'terminating'
      if (!isApiError(error, 'AlreadyExists')) {
        const message = `create Claim ${name} for Pod ${pod} in ${subject} failed error: ${messageOf(error)}`
        await record(set, { type: 'Warning', reason: 'FailedCreate', message })
      }
      return [`failed to create PVC ${name}: ${messageOf(error)}`]
    }
  }

  return {
    async make(set, ordinal) {
      const problems: string[] = []
      for (const place of placeOf(set, ordinal)) {
        const found = await fill(set, ordinal, place)
        if (found === 'terminating') return false
        problems.push(...found)
      }
      if (problems.length > 0) throw new Error(problems.length === 1 ? problems[0] : `[${problems.join(', ')}]`)
      return true
    },
    async retain(set, pod) {
      claims.catchUp()
      for (const claim of claimsOfPod(set, pod)) {
        const { name, namespace = '', uid } = claim.metadata
        const { change, isConflicting } = claimOwners(set, pod, claim)
        if (isConflicting) {
          const message =
            `PersistentVolumeClaim ${name} has a conflicting OwnerReference that acts as a manging controller, ` +
            'the retention policy is ignored for this claim'
          await record(set, { type: 'Warning', reason: 'ConflictingController', message })
        }
        if (change === undefined) continue
        const decide = (fresh: StoredClaim) => withOwners(fresh, claimOwners(set, pod, fresh).change)
        await rewrite(needs, 'persistentvolumeclaims', { key: { namespace, name }, uid, change: decide })
      }
    },
    isLeaving: (set, ordinal) =>
      placeOf(set, ordinal).some(
        ({ present }) => present !== undefined && goesWithEarlierPod(set, `${set.metadata.name}-${ordinal}`, present),
      ),
    isMissing: (set, ordinal) => placeOf(set, ordinal).some(({ present }) => present === undefined),
    hasOtherOwners: (set, pod) =>
      claimsOfPod(set, pod).some((claim) => claimOwners(set, pod, claim).change !== undefined),
    connect: (owners) => {
      sets = owners
    },
    catchUp: claims.catchUp,
    listed: claims.listed,
    run: claims.run,
  }
}

/** Its phase and the like change nothing for the set. */
function concernsSet({ metadata: now }: StoredClaim, { metadata: before }: StoredClaim): boolean {
  return (
    now.uid !== before.uid ||
    now.deletionTimestamp !== before.deletionTimestamp ||
    !equalJSON(now.ownerReferences, before.ownerReferences)
  )
}

function withOwners(claim: StoredClaim, change: readonly OwnerReference[] | undefined): StoredClaim | undefined {
  if (change === undefined) return undefined
  const { ownerReferences: _, ...metadata } = claim.metadata
  return { ...claim, metadata: { ...metadata, ...(change.length > 0 && { ownerReferences: change }) } }
}
