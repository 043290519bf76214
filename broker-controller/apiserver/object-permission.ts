/** What `authorize` cannot decide without the object that is asked for. */
import { type Identity, nodeOf } from '../../api/identity.ts'
import type { Pod } from '../../api/pod.ts'
import { isAssigned, isContested, mayHave } from '../store/checkpoint-data.ts'
import type { Store } from '../store/store.ts'
import { type Attributes, needsForPod } from './authorization.ts'
import { isOwnRequest, seesOwnRequestsOnly } from './certificate-requests.ts'

/** `boundPods`: the pods bound to the identity's node. For what `authorize` has allowed already. */
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
  if (verb === 'watch') return assigned && !isContested(found)
  return mayHave(node, found, { assigned })
}
