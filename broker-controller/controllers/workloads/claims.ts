/** The writes of adoption and release (pkg/controller/controller_ref_manager.go). */
import type { BuiltInName } from '../../../api/resources.ts'
import type { LabelMatcher } from '../../../api/selectors.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { AnyStored, Store, StoredObject } from '../../store/store.ts'
import { type ClaimStep, claimStep, controllerReference } from './controller-ref.ts'

export type Claim<R extends BuiltInName, D extends BuiltInName> = {
  readonly owners: R
  readonly owner: StoredObject<R>
  readonly dependents: D
  readonly selects: LabelMatcher
  /** What an object must be beside its labels; undefined: anything. */
  readonly isMember?: (object: StoredObject<D>) => boolean
  /** Set on what is adopted, and removed from what is released. */
  readonly finalizer?: string
}

export type ClaimNeeds = { readonly store: Store; readonly clock: Clock }

const writesAtOnce = 16

/**
 * Those of `found` that belong to the owner after its adoptions and releases, in the order of `found`. An object that somebody
 * else has taken, changed or deleted in the meantime is left alone: the next visit decides on what it is then.
 */
export async function claimObjects<R extends BuiltInName, D extends BuiltInName>(
  needs: ClaimNeeds,
  claim: Claim<R, D>,
  found: readonly StoredObject<D>[],
): Promise<readonly StoredObject<D>[]> {
  const { isMember = () => true } = claim
  const stepOf = (object: StoredObject<D>): ClaimStep => {
    return claimStep(claim.owner, object, claim.selects(object.metadata.labels) && isMember(object))
  }
  const owned: StoredObject<D>[] = []
  const writes: (readonly ['adopt' | 'release', StoredObject<D>])[] = []
  await eachInTurns(found, (object) => {
    const step = stepOf(object)
    if (step === 'owned') owned.push(object)
    else if (step !== 'ignore') writes.push([step, object])
  })
  if (writes.length === 0) return owned
  const claimed = new Map(owned.map((object) => [object.metadata.uid, object]))
  const mayAdopt = await isStillThere(needs, claim)
  await inParallel(writes, writesAtOnce, async ([step, object]) => {
    if (step === 'adopt' && !mayAdopt) return
    const { name, namespace = '', uid } = object.metadata
    const change = (fresh: StoredObject<D>) => {
      if (stepOf(fresh) !== step) return undefined
      return step === 'adopt' ? adopted(fresh, claim) : released(fresh, claim)
    }
    const written = await rewrite(needs, claim.dependents, { key: { namespace, name }, uid, change })
    if (step === 'adopt' && written !== undefined) claimed.set(uid, written)
  })
  return found.flatMap(({ metadata }) => claimed.get(metadata.uid) ?? [])
}

/** An owner that is being deleted adopts nothing, even if its informer has not received that yet (RecheckDeletionTimestamp). */
async function isStillThere<R extends BuiltInName, D extends BuiltInName>(
  { store }: ClaimNeeds,
  { owners, owner }: Claim<R, D>,
): Promise<boolean> {
  const { name, namespace = '', uid } = owner.metadata
  const fresh = await store.get(owners, { namespace, name })
  return fresh?.metadata.uid === uid && fresh.metadata.deletionTimestamp === undefined
}

type Owning = { readonly owner: AnyStored; readonly finalizer?: string }

function adopted<O extends AnyStored>(object: O, { owner, finalizer }: Owning): O {
  const { ownerReferences = [], finalizers = [] } = object.metadata
  const isHeld = finalizer === undefined || finalizers.includes(finalizer)
  const metadata = {
    ...object.metadata,
    ownerReferences: [...ownerReferences, controllerReference(owner)],
    ...(!isHeld && { finalizers: [...finalizers, finalizer] }),
  }
  return { ...object, metadata }
}

function released<O extends AnyStored>(object: O, { owner, finalizer }: Owning): O {
  const { ownerReferences = [], finalizers, ...kept } = object.metadata
  const others = ownerReferences.filter(({ uid }) => uid !== owner.metadata.uid)
  const held = (finalizers ?? []).filter((name) => name !== finalizer)
  const metadata = {
    ...kept,
    ...(others.length > 0 && { ownerReferences: others }),
    ...(held.length > 0 && { finalizers: held }),
  }
  return { ...object, metadata }
}
