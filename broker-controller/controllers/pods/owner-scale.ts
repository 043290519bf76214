/** How many pods the controllers of the given pods want (getExpectedScale in pkg/controller/disruption/disruption.go). */
import { isApiError } from '../../../api/api-error.ts'
import type { AnyObject, OwnerReference } from '../../../api/meta.ts'
import { builtInResources } from '../../../api/resources.ts'
import { isObject } from '../../../api/text/json.ts'
import type { AnyStored, Store, StoredPod } from '../../store/store.ts'
import type { Scales } from '../autoscaling/scales.ts'

/** Kinds with a scale. */
const scaled: readonly string[] = ['replicasets', 'replicationcontrollers', 'deployments', 'statefulsets']

export type OwnerScaleNeeds = {
  readonly store: Pick<Store, 'get'>
  /** Scales of custom kinds; undefined: they have none. */
  readonly scales?: Pick<Scales, 'get'>
}

/** What wants pods, and how many. */
type Wanting = { readonly uid: string; readonly replicas: number | undefined }

/**
 * The replicas of each controller once; of a ReplicaSet of a Deployment those of the Deployment. A pod whose controller has no scale, or
 * that has none, counts as one. Rejects where the scale of a custom kind cannot be read.
 */
export async function expectedPodsOf(needs: OwnerScaleNeeds, pods: readonly StoredPod[]): Promise<number> {
  const known = new Map<string, Wanting | undefined>()
  const wanted = new Map<string, number>()
  let others = 0
  for (const pod of pods) {
    const reference = controllerReferenceOf(pod)
    if (reference !== undefined && !known.has(reference.uid)) {
      known.set(reference.uid, await wantingOf(needs, pod, reference))
    }
    const owner = reference && known.get(reference.uid)
    if (owner?.replicas === undefined) others++
    else wanted.set(owner.uid, owner.replicas)
  }
  return [...wanted.values()].reduce((sum, replicas) => sum + replicas, others)
}

async function wantingOf(
  { store, scales }: OwnerScaleNeeds,
  pod: StoredPod,
  reference: OwnerReference,
): Promise<Wanting | undefined> {
  const { apiVersion, kind, name, uid } = reference
  if (builtInResources.ofKind(apiVersion, kind) !== undefined) {
    const owner = await topOwner(store, pod, reference)
    return owner && { uid: owner.metadata.uid, replicas: replicasOf(owner) }
  }
  try {
    const read = await scales?.get(pod.metadata.namespace ?? '', { apiVersion, kind, name })
    return read?.scale.metadata.uid === uid ? { uid, replicas: read.scale.spec?.replicas ?? 0 } : undefined
  } catch (error) {
    // Neither its kind, its subresource nor the object is there.
    if (!isApiError(error) || isApiError(error, 'NotFound')) return undefined
    throw error
  }
}

async function topOwner(
  store: Pick<Store, 'get'>,
  object: AnyStored,
  reference: OwnerReference,
): Promise<AnyStored | undefined> {
  const resource = builtInResources.ofKind(reference.apiVersion, reference.kind)
  if (resource === undefined || !scaled.includes(resource.id)) return undefined
  const key = { namespace: object.metadata.namespace ?? '', name: reference.name }
  const owner = await store.get(resource.id, key)
  if (owner?.metadata.uid !== reference.uid) return undefined
  const above = controllerReferenceOf(owner)
  return (above && (await topOwner(store, owner, above))) ?? owner
}

function controllerReferenceOf({ metadata }: AnyObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

function replicasOf({ spec }: AnyObject): number | undefined {
  const replicas = isObject(spec) ? spec['replicas'] : undefined
  return typeof replicas === 'number' ? replicas : undefined
}
