/** The part of authorization that needs the requested object. */
import { type Identity, nodeOf } from '../../../api/identity.ts'
import type { Pod } from '../../../api/pod.ts'
import { isAssigned, isHeld, mayHave } from '../../store/checkpoints/checkpoint-data.ts'
import type { Store } from '../../store/store.ts'
import type { Attributes } from '../handlers/authorizer.ts'
import { needsForPod } from './authorization.ts'
import { isOwnRequest, seesOwnRequestsOnly } from './signer-rights.ts'

/**
 * The pods bound to the node that can decide about this request: the named one, or for a Secret or ConfigMap those of
 * its namespace. A node asks often, so it is not all pods of the fleet.
 */
export async function boundPodsFor(
  node: string,
  attributes: Attributes,
  store: Pick<Store, 'get' | 'list'>,
): Promise<readonly Pod[]> {
  if (attributes.kind !== 'resource' || attributes.namespace === '' || attributes.name === '') return []
  const { resource, namespace, name } = attributes
  const named = resource === 'pods' ? [await store.get('pods', { namespace, name })] : undefined
  const pods = named ?? (await store.list('pods', namespace)).items
  return pods.filter((pod) => pod !== undefined).filter((pod) => pod.spec.nodeName === node)
}

/** `boundPods`: those of `boundPodsFor`. For what `authorize` has allowed already. */
export async function isObjectAllowed(
  identity: Identity,
  attributes: Attributes,
  boundPods: readonly Pod[],
  store: Store,
): Promise<boolean> {
  if (attributes.kind !== 'resource' || attributes.name === '') return true
  const { resource, namespace, name, verb } = attributes
  if (resource === 'certificatesigningrequests') {
    if (!seesOwnRequestsOnly(identity)) return true
    const request = await store.get(resource, { namespace: '', name })
    return request === undefined || isOwnRequest(identity, request)
  }
  const node = nodeOf(identity)
  if (node === undefined || (resource !== 'secrets' && resource !== 'configmaps')) return true
  const naming = boundPods.filter((pod) => pod.metadata.namespace === namespace && needsForPod(pod, resource, name))
  // What authorization allows beside pods, as kube-public/cluster-info.
  if (naming.length === 0) return true
  const assigned = naming.some(isAssigned)
  const found = await store.get(resource, { namespace, name })
  if (found === undefined) return assigned || verb !== 'watch'
  // A watch goes on after this: what the object becomes is not what the node delivered.
  if (verb === 'watch') return assigned && !isHeld(found)
  return mayHave(node, found, { assigned })
}
