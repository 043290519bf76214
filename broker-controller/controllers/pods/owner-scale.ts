/** How many pods the controllers of the given pods want (getExpectedScale in pkg/controller/disruption/disruption.go). */
import type { AnyObject, OwnerReference } from '../../../api/meta.ts'
import { builtInResources } from '../../../api/resources.ts'
import { isObject } from '../../../api/text/json.ts'
import type { AnyStored, Store, StoredPod } from '../../store/store.ts'

/** Kinds with a scale. */
const scaled: readonly string[] = ['replicasets', 'replicationcontrollers', 'deployments', 'statefulsets']

/**
 * The replicas of each controller once; of a ReplicaSet of a Deployment those of the Deployment. A pod whose controller has no scale, or
 * that has none, counts as one.
 */
export async function expectedPodsOf(store: Pick<Store, 'get'>, pods: readonly StoredPod[]): Promise<number> {
  const known = new Map<string, AnyStored | undefined>()
  const scales = new Map<string, number>()
  let others = 0
  for (const pod of pods) {
    const reference = controllerReferenceOf(pod)
    if (reference !== undefined && !known.has(reference.uid)) {
      known.set(reference.uid, await topOwner(store, pod, reference))
    }
    const owner = reference && known.get(reference.uid)
    const replicas = owner && replicasOf(owner)
    if (owner === undefined || replicas === undefined) others++
    else scales.set(owner.metadata.uid, replicas)
  }
  return [...scales.values()].reduce((sum, replicas) => sum + replicas, others)
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
