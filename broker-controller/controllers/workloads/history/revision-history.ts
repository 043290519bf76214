/** Writes the ControllerRevisions of DaemonSets and StatefulSets. */
import { isApiError } from '../../../../api/api-error.ts'
import type { BuiltInName } from '../../../../api/resources.ts'
import type { LabelMatcher, Labels } from '../../../../api/selectors.ts'
import { removeObject } from '../../../store/object-removal.ts'
import { rewrite } from '../../../store/rewrite.ts'
import type { AnyStored, StoredObject } from '../../../store/store.ts'
import { claimObjects } from '../claims.ts'
import { controllerOf, controllerReference } from '../controller-ref.ts'
import type { OwnedObjects } from '../owned-objects.ts'
import type { PodControlNeeds } from '../pod-control.ts'
import { revisionHash, revisionName } from './revision-hash.ts'
import { holdsSame, planRevision, type StoredRevision } from './revisions.ts'

export type HistoryNeeds = PodControlNeeds & { readonly revisions: OwnedObjects<'controllerrevisions'> }

export interface RevisionHistory<R extends BuiltInName> {
  /** The revisions of the owner, as the store has them now; those without a controller that it selects are adopted. */
  claim(owner: StoredObject<R>, selects: LabelMatcher): Promise<readonly StoredRevision[]>
  /**
   * The revision of the present template, with the number that it must have: an earlier one gets a new number, and where there is
   * none it is created. Throws the ApiError of a refusal.
   */
  present(owner: StoredObject<R>, found: readonly StoredRevision[], wanted: WantedRevision): Promise<PresentRevision>
  delete(revisions: readonly StoredRevision[]): Promise<void>
}

export type WantedRevision = {
  readonly data: object
  /** Labels of the template. */
  readonly labels: Labels | undefined
  readonly collisionCount: number
}

export type PresentRevision = {
  readonly current: StoredRevision
  readonly duplicates: readonly StoredRevision[]
  readonly old: readonly StoredRevision[]
  /** How often a name was taken by another template so far. */
  readonly collisionCount: number
}

/** Names that are tried in one visit: each is taken by chance once in four thousand million. */
const mostNames = 5

/** `account`: the service account of the controller. `hashLabel`: the label of a revision that has the hash of its template. */
export function revisionHistory<R extends BuiltInName>(
  needs: HistoryNeeds,
  owners: R,
  { account, hashLabel }: { readonly account: string; readonly hashLabel: string },
): RevisionHistory<R> {
  const { store, creation, revisions } = needs

  const create = async (owner: StoredObject<R>, wanted: WantedRevision, number: number) => {
    const { namespace = '', annotations } = owner.metadata
    for (let count = wanted.collisionCount; count < wanted.collisionCount + mostNames; count++) {
      const hash = revisionHash(wanted.data, count)
      const name = revisionName(owner.metadata.name, hash)
      const metadata = {
        name,
        namespace,
        labels: { ...wanted.labels, [hashLabel]: hash },
        ...(annotations && { annotations }),
        ownerReferences: [controllerReference(owner)],
      }
      const revision = { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata } as const
      try {
        const made = await creation.create(
          'controllerrevisions',
          { ...revision, data: wanted.data, revision: number },
          account,
        )
        return { current: made, collisionCount: count }
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error
        const other = await store.get('controllerrevisions', { namespace, name })
        if (other !== undefined && isOf(owner, other) && holdsSame(other, wanted)) {
          return { current: other, collisionCount: count }
        }
      }
    }
    throw new Error(`No name for a revision of ${owner.kind} ${owner.metadata.name}: ${mostNames} are taken`)
  }

  const renumbered = async (revision: StoredRevision, number: number): Promise<StoredRevision> => {
    const { name, namespace = '', uid } = revision.metadata
    const change = (fresh: StoredRevision) => ({ ...fresh, revision: number })
    return (await rewrite(needs, 'controllerrevisions', { key: { namespace, name }, uid, change })) ?? revision
  }

  return {
    async claim(owner, selects) {
      await revisions.listed
      revisions.catchUp()
      const orphans = [...revisions.orphansOf(owner.metadata.namespace ?? '')]
      const found = [...revisions.ofController(owner), ...orphans.filter(({ metadata }) => selects(metadata.labels))]
      return await claimObjects(needs, { owners, owner, dependents: 'controllerrevisions', selects }, found)
    },
    async present(owner, found, wanted) {
      const { current, number, duplicates, old } = planRevision(found, wanted.data)
      if (current === undefined) return { ...(await create(owner, wanted, number)), duplicates, old }
      const { collisionCount } = wanted
      if (current.revision === number) return { current, duplicates, old, collisionCount }
      return { current: await renumbered(current, number), duplicates, old, collisionCount }
    },
    async delete(surplus) {
      for (const revision of surplus) await removeObject(needs, 'controllerrevisions', revision)
    },
  }
}

function isOf(owner: AnyStored, revision: StoredRevision): boolean {
  return controllerOf(revision)?.uid === owner.metadata.uid
}
