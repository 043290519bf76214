/**
 * Which identity may do what: the fixed rules of administrators, joining machines and nodes. They stand in front of the roles
 * (`rbac/`), as the node authorizer of Kubernetes does.
 */
import { bootstrappersGroup, type Identity, lapsedNodesGroup, mastersGroup, nodeOf } from '../../../api/identity.ts'
import { nodeLeaseNamespace } from '../../../api/lease.ts'
import { controlPlaneGroup } from '../../../api/node/bootstrap-token.ts'
import { releaseFileOf } from '../../../api/node/release-paths.ts'
import { configMapsOf, secretsOf } from '../../../api/pod/pod-references.ts'
import type { Pod } from '../../../api/pod.ts'
import { builtInResources } from '../../../api/resources.ts'
import { sessionOfPath } from '../../../api/sessions.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import { isAssigned } from '../../store/checkpoints/checkpoint-data.ts'
import type { Attributes } from '../handlers/authorizer.ts'

type ResourceAttributes = Attributes & { readonly kind: 'resource' }

/** Paths that anonymous users may read: liveness and version. */
const publicPaths = ['/healthz', '/livez', '/readyz', '/version']

/** Whether `authorize` needs the pods bound to this identity's node. They decide what it may read. */
export function dependsOnPods(identity: Identity, attributes: Attributes): boolean {
  const kinds = ['pods', 'secrets', 'configmaps', 'serviceaccounts', 'persistentvolumeclaims']
  return attributes.kind === 'resource' && kinds.includes(attributes.resource) && nodeOf(identity) !== undefined
}

/** The message of a 403, as Kubernetes writes it. */
export function forbiddenMessage({ user }: Identity, attributes: Attributes): string {
  if (attributes.kind === 'path') return `forbidden: User "${user}" cannot ${attributes.verb} path "${attributes.path}"`
  const { group, resource, subresource, namespace, name, verb } = attributes
  const what = group === '' ? resource : `${resource}.${group}`
  const subject = name === '' ? what : `${what} "${name}"`
  const full = subresource === '' ? resource : `${resource}/${subresource}`
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  return `${subject} is forbidden: User "${user}" cannot ${verb} resource "${full}" in API group "${group}" ${where}`
}

/** `boundPods`: the pods bound to the identity's node that matter for the request; needed where `dependsOnPods`. */
export function isAllowedToSystem(identity: Identity, attributes: Attributes, boundPods: readonly Pod[] = []): boolean {
  if (identity.groups.includes(mastersGroup)) return true
  if (attributes.kind === 'path') return pathAllowed(identity, attributes.verb, attributes.path)
  // The rules below name resources of the built-in groups: `pods` of another group is another kind.
  if (builtInResources.get(attributes.resource)?.group !== attributes.group) return false
  if (isClusterInfo(attributes)) return true
  const { groups } = identity
  // A token for a controller makes no machine a node. What it may do is in its role.
  if (groups.includes(controlPlaneGroup)) return false
  if (groups.includes(bootstrappersGroup) || groups.includes(lapsedNodesGroup)) return mayRequestCertificate(attributes)
  const node = nodeOf(identity)
  return node !== undefined && nodeAllowed(node, attributes, boundPods)
}

/** Authenticated users may also read discovery; metrics are for administrators. */
function pathAllowed(identity: Identity, verb: string, path: string): boolean {
  if (verb !== 'get') return false
  if (sessionOfPath(path) !== undefined || releaseFileOf(path) !== undefined) return nodeOf(identity) !== undefined
  const [, root = ''] = path.split('/')
  if (publicPaths.includes(`/${root}`)) return true
  const isKnown = identity.groups.includes(bootstrappersGroup) || nodeOf(identity) !== undefined
  return isKnown && ['', 'api', 'apis', 'openapi'].includes(root)
}

/** How to reach this fleet and whom to trust: readable before one has an identity. */
function isClusterInfo({ verb, resource, namespace, name, subresource }: ResourceAttributes): boolean {
  const isIt = resource === 'configmaps' && namespace === 'kube-public' && name === 'cluster-info'
  return isIt && verb === 'get' && subresource === ''
}

function mayRequestCertificate({ verb, resource, subresource }: ResourceAttributes): boolean {
  if (resource !== 'certificatesigningrequests' || subresource !== '') return false
  return verb === 'create' || verb === 'get'
}

type NodeRule = (node: string, attributes: ResourceAttributes, boundPods: readonly Pod[]) => boolean

/** What a node may do with the objects of a resource. */
const nodeRules: ReadonlyMap<string, NodeRule> = new Map<string, NodeRule>([
  ['nodes', nodeObjectAllowed],
  ['leases', leaseAllowed],
  ['csinodes', csiNodeAllowed],
  ['pods', podAllowed],
  ['secrets', referencedAllowed],
  ['configmaps', referencedAllowed],
  ['persistentvolumeclaims', (_, attributes, boundPods) => claimAllowed(attributes, boundPods)],
  ['serviceaccounts', tokenAllowed],
  ['events', (_, { verb }) => verb === 'create' || verb === 'update' || verb === 'patch'],
  ['certificatesigningrequests', (_, attributes) => mayRequestCertificate(attributes)],
])

function nodeAllowed(node: string, attributes: ResourceAttributes, boundPods: readonly Pod[]): boolean {
  // What a node reads of itself it reads on the machine.
  if (['proxy', 'metrics', 'stats'].includes(attributes.subresource)) return false
  return nodeRules.get(attributes.resource)?.(node, attributes, boundPods) ?? false
}

function nodeObjectAllowed(node: string, { verb, subresource, name }: ResourceAttributes): boolean {
  const isOwn = name === node
  if (subresource === 'status') return isOwn && isWrite(verb)
  if (subresource === 'checkpoint') return isOwn && verb === 'create'
  if (verb === 'create') return true // that it creates itself is decided when the object is read
  return isOwn && (isRead(verb) || isWrite(verb))
}

function leaseAllowed(node: string, { verb, namespace, name }: ResourceAttributes): boolean {
  if (namespace !== nodeLeaseNamespace) return false
  return verb === 'create' || (name === node && (verb === 'get' || isWrite(verb) || verb === 'delete'))
}

function csiNodeAllowed(node: string, { verb, subresource, name }: ResourceAttributes): boolean {
  if (subresource !== '') return false
  if (verb === 'create') return true // as for nodes
  return name === node && (verb === 'get' || isWrite(verb) || verb === 'delete')
}

/** What a pod of the node refers to. */
function referencedAllowed(_: string, attributes: ResourceAttributes, boundPods: readonly Pod[]): boolean {
  const { verb, resource, namespace, name } = attributes
  const kind = resource === 'secrets' ? 'secrets' : 'configmaps'
  return isRead(verb) && boundPods.some((pod) => pod.metadata.namespace === namespace && needsForPod(pod, kind, name))
}

function tokenAllowed(_: string, attributes: ResourceAttributes, boundPods: readonly Pod[]): boolean {
  const { verb, subresource, namespace, name } = attributes
  return verb === 'create' && subresource === 'token' && boundPods.some((pod) => runsAs(pod, namespace, name))
}

function podAllowed(node: string, attributes: ResourceAttributes, boundPods: readonly Pod[]): boolean {
  const { verb, subresource, namespace, name, fields } = attributes
  if (verb === 'list' || verb === 'watch') return fields.get('spec.nodeName') === node
  const isBound = boundPods.some((pod) => pod.metadata.namespace === namespace && pod.metadata.name === name)
  // What it creates is decided when the object is read: mirrors of its own static pods, and nothing else.
  if (verb === 'create' && subresource === '') return true
  if (!isBound) return false
  if (subresource === 'status') return verb === 'get' || isWrite(verb)
  if (subresource === 'eviction') return verb === 'create'
  return subresource === '' && (verb === 'get' || verb === 'delete')
}

/**
 * A node writes the status of a claim whose volume it has expanded. One of the pods that were assigned to it uses the claim: a pod that it
 * claims opens none.
 */
function claimAllowed({ verb, subresource, namespace, name }: ResourceAttributes, boundPods: readonly Pod[]): boolean {
  const mayDo = subresource === 'status' ? verb === 'get' || isWrite(verb) : subresource === '' && verb === 'get'
  if (!mayDo) return false
  const uses = (pod: Pod) => pod.metadata.namespace === namespace && claimsOfPod(pod).some((one) => one.name === name)
  return boundPods.some((pod) => isAssigned(pod) && uses(pod))
}

function isRead(verb: string): boolean {
  return verb === 'get' || verb === 'list' || verb === 'watch'
}

function isWrite(verb: string): boolean {
  return verb === 'update' || verb === 'patch'
}

/** Whether the controller assigned the pod to its node and it has this service account. A pod that a node claims opens no account. */
function runsAs(pod: Pod, namespace: string, account: string): boolean {
  const { metadata, spec } = pod
  return account !== '' && isAssigned(pod) && metadata.namespace === namespace && spec.serviceAccountName === account
}

/** Whether the pod needs this Secret or ConfigMap in order to run. */
export function needsForPod(pod: Pod, resource: 'secrets' | 'configmaps', name: string): boolean {
  if (name === '') return false
  return (resource === 'secrets' ? secretsOf(pod) : configMapsOf(pod)).has(name)
}
