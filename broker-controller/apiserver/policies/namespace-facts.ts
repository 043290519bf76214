/** `namespaceObject`: what expressions see of the namespace of a write (CreateNamespaceObject in apiserver/pkg/admission/plugin/cel). */
import type { JsonObject } from '../../../api/text/json.ts'
import type { Store } from '../../store/store.ts'
import type { ReviewedWrite } from '../handlers/webhook-gate.ts'

const fields = [
  ...['name', 'generateName', 'namespace', 'labels', 'annotations', 'uid', 'creationTimestamp', 'deletionTimestamp'],
  ...['deletionGracePeriodSeconds', 'generation', 'resourceVersion', 'finalizers'],
]

/** undefined: the object is of the cluster, or a Namespace itself. */
export async function namespaceFacts(
  { route }: ReviewedWrite,
  store: Pick<Store, 'get'>,
): Promise<JsonObject | undefined> {
  if (!route.resource.namespaced) return undefined
  const namespace = await store.get('namespaces', { namespace: '', name: route.namespace })
  if (namespace === undefined) return undefined
  const { metadata, spec = {}, status = {} } = namespace
  const shown = Object.entries(metadata).filter(([name]) => fields.includes(name))
  return { metadata: Object.fromEntries(shown), spec, status }
}
