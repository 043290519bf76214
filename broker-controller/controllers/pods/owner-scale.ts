/** How many pods the controllers of the given pods want (getExpectedScale in pkg/controller/disruption/disruption.go). */
import { isApiError } from '../../../api/api-error.ts'
import type { AnyObject, OwnerReference } from '../../../api/meta.ts'
import { builtInResources } from '../../../api/resources.ts'
import { isObject } from '../../../api/text/json.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { AnyStored, Store } from '../../store/store.ts'
import type { Scales } from '../autoscaling/scales.ts'

/** Kinds with a scale. */
const scaled: readonly string[] = ['replicasets', 'replicationcontrollers', 'deployments', 'statefulsets']

export type OwnerScaleNeeds = {
  readonly store: Pick<Store, 'get'>
  /** Scales of custom kinds; undefined: they have none. */
  readonly scales?: Pick<Scales, 'get'>
}

/** Pods of one namespace. */
export type PodsByController = {
  /** How many have none. */
  readonly uncontrolled: number
  /** Each controller once, with the number of its pods. */
  controllers(): Iterable<{ readonly reference: OwnerReference; readonly count: number }>
}

/** What wants pods, and how many. */
type Wanting = { readonly uid: string; readonly replicas: number | undefined }

/**
 * The replicas of each controller once; of a ReplicaSet of a Deployment those of the Deployment. A pod whose controller has no scale, or
 * that has none, counts as one. Rejects where the scale of a custom kind cannot be read.
 */
export async function expectedPodsOf(
  needs: OwnerScaleNeeds,
  namespace: string,
  { uncontrolled, controllers }: PodsByController,
): Promise<number> {
  const wanted = new Map<string, number>()
  let others = uncontrolled
  for (const { reference, count } of [...controllers()]) {
    await yieldTurn()
    const owner = await wantingOf(needs, namespace, reference)
    if (owner?.replicas === undefined) others += count
    else wanted.set(owner.uid, owner.replicas)
  }
  return [...wanted.values()].reduce((sum, replicas) => sum + replicas, others)
}

async function wantingOf(
  { store, scales }: OwnerScaleNeeds,
  namespace: string,
  reference: OwnerReference,
): Promise<Wanting | undefined> {
  const { apiVersion, kind, name, uid } = reference
  if (builtInResources.ofKind(apiVersion, kind) !== undefined) {
    const owner = await topOwner(store, namespace, reference)
    return owner && { uid: owner.metadata.uid, replicas: replicasOf(owner) }
  }
  try {
    const read = await scales?.get(namespace, { apiVersion, kind, name })
    return read?.scale.metadata.uid === uid ? { uid, replicas: read.scale.spec?.replicas ?? 0 } : undefined
  } catch (error) {
    // Neither its kind, its subresource nor the object is there.
    if (!isApiError(error) || isApiError(error, 'NotFound')) return undefined
    throw error
  }
}

async function topOwner(
  store: Pick<Store, 'get'>,
  namespace: string,
  reference: OwnerReference,
): Promise<AnyStored | undefined> {
  const resource = builtInResources.ofKind(reference.apiVersion, reference.kind)
  if (resource === undefined || !scaled.includes(resource.id)) return undefined
  const owner = await store.get(resource.id, { namespace, name: reference.name })
  if (owner?.metadata.uid !== reference.uid) return undefined
  const above = controllerReferenceOf(owner)
  return (above && (await topOwner(store, namespace, above))) ?? owner
}

export function controllerReferenceOf({ metadata }: AnyObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

function replicasOf({ spec }: AnyObject): number | undefined {
  const replicas = isObject(spec) ? spec['replicas'] : undefined
  return typeof replicas === 'number' ? replicas : undefined
}
