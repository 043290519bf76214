/**
 * What the certificate of a node may write into the objects that authorization lets it write: why it may not, or undefined
 * (plugin/pkg/admission/noderestriction/admission.go).
 */
import { isDeepStrictEqual } from 'node:util'
import type { TokenRequest } from '../../../api/access/token-request.ts'
import { type CertificateSigningRequest, nodeClientSigner } from '../../../api/certificate-signing-request.ts'
import type { Event } from '../../../api/event.ts'
import { nodeIdentity } from '../../../api/identity.ts'
import { type Lease, nodeLeaseNamespace } from '../../../api/lease.ts'
import type { ObjectMeta, OwnerReference, Stored } from '../../../api/meta.ts'
import { parseProbePort, probePortAnnotation } from '../../../api/network/address-probe.ts'
import { relayAnnotation } from '../../../api/network/wireguard.ts'
import { agentReleaseAnnotation } from '../../../api/node/agent-update.ts'
import {
  expectedBackAnnotation,
  goodbyeReasonAnnotation,
  suspectedLinkAnnotation,
} from '../../../api/node/lifecycle-annotations.ts'
import { learntByAnnotation } from '../../../api/node/node-checkpoint.ts'
import { isReservedNodeLabel } from '../../../api/node/node-labels.ts'
import { cordonedByAnnotation, maintenanceAnnotation } from '../../../api/node/node-maintenance.ts'
import { rebootStatusAnnotation } from '../../../api/node/reboot-annotations.ts'
import type { Node } from '../../../api/node.ts'
import { claimsOf, configMapsOf, secretsOf, tokenAudiencesOf } from '../../../api/pod/pod-references.ts'
import { mirrorAnnotation, type Pod } from '../../../api/pod.ts'
import type { CSINode } from '../../../api/storage/csi-node.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import { isAssigned } from '../../store/checkpoints/checkpoint-data.ts'
import type { NodeRestrictionFacts } from '../handlers/strategy.ts'
import { jsonBytes } from '../wire/object-size.ts'

/** The Node of a node. */
export function restrictNode(node: string, object: Node, previous: Node | undefined): string | undefined {
  if (object.metadata.name !== node) return `node "${node}" is not allowed to modify node "${object.metadata.name}"`
  const labels = forbiddenLabels(object.metadata, previous?.metadata)
  if (labels.length > 0) return `node "${node}" is not allowed to modify labels: ${labels.join(', ')}`
  const annotations = changedKeys(object.metadata.annotations, previous?.metadata.annotations).filter(isControllers)
  if (annotations.length > 0) return `node "${node}" is not allowed to modify annotations: ${annotations.join(', ')}`
  // An agent of an earlier version proves no address: no node becomes one again.
  const [portBefore, port] = [previous, object].map((one) =>
    parseProbePort(one?.metadata.annotations?.[probePortAnnotation]),
  )
  if (portBefore !== undefined && port === undefined) {
    return `node "${node}" is not allowed to remove annotation ${probePortAnnotation}`
  }
  // With its own finalizer the Node would outlive its deletion and keep its access.
  if (!isDeepStrictEqual(object.metadata.finalizers ?? [], previous?.metadata.finalizers ?? [])) {
    return `node "${node}" is not allowed to modify finalizers`
  }
  const configSource = object.spec?.configSource
  if (configSource !== undefined && !isDeepStrictEqual(configSource, previous?.spec?.configSource)) {
    return `node "${node}" is not allowed to set configSource`
  }
  // With the range of another node it would get that one's traffic.
  const ranges = [object, previous].map((one) => [one?.spec?.podCIDR || undefined, one?.spec?.podCIDRs ?? []])
  if (!isDeepStrictEqual(ranges[0], ranges[1])) return `node "${node}" is not allowed to set podCIDRs`
  if (previous === undefined) return undefined
  if (!isDeepStrictEqual(object.spec?.taints, previous.spec?.taints)) {
    return `node "${node}" is not allowed to modify taints`
  }
  if (!isDeepStrictEqual(object.metadata.ownerReferences, previous.metadata.ownerReferences)) {
    return `node "${node}" is not allowed to modify ownerReferences`
  }
  return undefined
}

/** The source of a new event is set to the node by admission. */
export function restrictEvent(node: string, _: Event, previous: Event | undefined): string | undefined {
  const host = previous?.source?.host
  if (previous === undefined || host === node) return undefined
  return `node "${node}" is only allowed to modify its own events, not one of source.host "${host ?? ''}"`
}

/** The lease that a node renews. */
export function restrictLease(node: string, { metadata: { name, namespace } }: Lease): string | undefined {
  if (namespace === nodeLeaseNamespace && name === node) return undefined
  return `node "${node}" is only allowed to write its own lease in ${nodeLeaseNamespace}, not "${namespace}/${name}"`
}

/** The drivers of a node (plugin/pkg/auth/authorizer/node/node_authorizer.go). */
export function restrictCSINode(node: string, { metadata: { name } }: CSINode): string | undefined {
  if (name === node) return undefined
  return `node "${node}" can only access CSINode with the same name as the requesting node, not "${name}"`
}

/** What a node writes of a claim when the driver has expanded the volume on it. */
export function restrictClaim(
  node: string,
  object: PersistentVolumeClaim,
  previous: PersistentVolumeClaim | undefined,
): string | undefined {
  if (previous !== undefined && isDeepStrictEqual(withoutExpansion(object), withoutExpansion(previous)))
    return undefined
  return `node "${node}" is not allowed to update fields other than status.quantity and status.conditions`
}

function withoutExpansion({ metadata, status = {}, ...claim }: PersistentVolumeClaim) {
  const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata
  const { capacity: _capacity, conditions: _conditions, ...others } = status
  const { allocatedResources: _allocated, allocatedResourceStatuses: _statuses, ...rest } = others
  return { ...claim, metadata: kept, status: rest }
}

/**
 * A node gets tokens of its pods: bound to a pod that is assigned to it, for an audience that the pod's volumes name or their
 * CSI drivers request. `pod`: the one that the request names. `driverAudiences`: see `driver-audiences.ts`.
 */
export function nodeTokenProblem(
  user: string,
  node: string,
  { audiences = [], boundObjectRef = {} }: TokenRequest['spec'],
  pod: (Pod & Stored<Pod>) | undefined,
  driverAudiences: ReadonlySet<string> = new Set(),
): string | undefined {
  const { apiVersion, kind, uid = '' } = boundObjectRef
  if (apiVersion !== 'v1' || kind !== 'Pod' || pod === undefined) return 'node requested token not bound to a pod'
  if (uid === '') return 'node requested token with a pod binding without a uid'
  if (uid !== pod.metadata.uid) {
    return `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`
  }
  if (pod.spec.nodeName !== node) return 'node requested token bound to a pod scheduled on a different node'
  if (!isAssigned(pod)) return 'node requested token bound to a pod of its own checkpoint'
  const [audience = '', ...others] = audiences
  if (others.length > 0) return 'node may only request 0 or 1 audiences'
  if (tokenAudiencesOf(pod).has(audience) || driverAudiences.has(audience)) return undefined
  return `audience ${JSON.stringify(audience)} not found in pod spec volume, ${user} is not authorized to request tokens for this audience`
}

/** A new pod must mirror a static pod of the node; of an existing one it may write the status. */
export function restrictPod(
  node: string,
  object: Pod,
  previous: Pod | undefined,
  facts: NodeRestrictionFacts,
): string | undefined {
  return previous === undefined ? mirrorPod(node, object, facts) : podReport(node, object, previous)
}

/** No pod that a person writes is as large; each is sent back to the node with every change of its pods. */
const mostMirrorBytes = 64 * 1024

/** A node creates mirror pods of its static pods. They give it no access to data that only scheduled pods may read. */
function mirrorPod(node: string, pod: Pod, { nodeUid, mirrors }: NodeRestrictionFacts): string | undefined {
  const { metadata, spec } = pod
  if (metadata.annotations?.[mirrorAnnotation] === undefined) {
    return `pod does not have "${mirrorAnnotation}" annotation, node "${node}" can only create mirror pods`
  }
  if (spec.nodeName !== node) return `node "${node}" can only create pods with spec.nodeName set to itself`
  if (mirrors !== undefined && mirrors.count >= mirrors.most) {
    return `node "${node}" can not create more than ${mirrors.most} mirror pods`
  }
  if (jsonBytes(pod) > mostMirrorBytes) return `node "${node}" can not create mirror pods over ${mostMirrorBytes} bytes`
  const owner = ownerProblem(node, metadata.ownerReferences ?? [], nodeUid)
  if (owner !== undefined) return owner
  const named = [
    ...(spec.serviceAccountName ? ['a service account'] : []),
    ...(secretsOf({ spec }).size > 0 ? ['secrets'] : []),
    ...(configMapsOf({ spec }).size > 0 ? ['configmaps'] : []),
    ...claimsOf({ spec }),
  ]
  return named.length === 0 ? undefined : `node "${node}" can not create pods that reference ${named.join(', ')}`
}

function ownerProblem(
  node: string,
  [owner, ...others]: readonly OwnerReference[],
  nodeUid: string | undefined,
): string | undefined {
  const can = `node "${node}" can only create pods with`
  if (others.length > 0) return `${can} a single owner reference set to itself`
  if (owner?.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== node) {
    return `${can} an owner reference set to itself`
  }
  if (owner.uid !== nodeUid)
    return `node ${node} UID mismatch: expected ${nodeUid ?? 'that of a Node'} got ${owner.uid}`
  if (owner.controller !== true) return `${can} a controller owner reference set to itself`
  if (owner.blockOwnerDeletion === true) return `node "${node}" must not set blockOwnerDeletion on an owner reference`
  return undefined
}

const kubeletSigners = [nodeClientSigner, 'kubernetes.io/kubelet-serving']

/** A new request for a kubelet certificate must be for the node itself. */
export function restrictCertificateRequest(
  node: string,
  { spec }: CertificateSigningRequest,
  previous: CertificateSigningRequest | undefined,
  { commonName }: NodeRestrictionFacts,
): string | undefined {
  if (previous !== undefined) return undefined
  if (!kubeletSigners.includes(spec.signerName)) return undefined
  const own = nodeIdentity(node).user
  if (commonName === own) return undefined
  return `can only create a node CSR with CN=${own}, not ${JSON.stringify(commonName ?? '')}`
}

function podReport(node: string, object: Pod, previous: Pod): string | undefined {
  if (previous.spec.nodeName !== node) return `node "${node}" can only write pods that are bound to it`
  const annotations = changedKeys(object.metadata.annotations, previous.metadata.annotations).filter(isOurs)
  if (annotations.length > 0) return `node "${node}" is not allowed to modify annotations: ${annotations.join(', ')}`
  if (!isDeepStrictEqual(object.metadata.finalizers ?? [], previous.metadata.finalizers ?? [])) {
    return `node "${node}" is not allowed to modify finalizers`
  }
  if (isDeepStrictEqual(object.metadata.labels, previous.metadata.labels)) return undefined
  return `node "${node}" cannot update labels through pod status`
}

/** Labels that state the place of a node are the administrator's to set, so that a stolen certificate cannot attract pods. */
function forbiddenLabels(now: ObjectMeta, before: ObjectMeta | undefined): readonly string[] {
  return changedKeys(now.labels, before?.labels).filter(isReservedNodeLabel)
}

type Texts = { readonly [key: string]: string } | undefined

function changedKeys(now: Texts = {}, before: Texts = {}): readonly string[] {
  return [...new Set([...Object.keys(now), ...Object.keys(before)])].filter((key) => now[key] !== before[key]).sort()
}

/** What controllers keep on a Node, and go by after a restart; and what an administrator trusts a node with. */
const controllersAnnotations = [
  learntByAnnotation,
  expectedBackAnnotation,
  goodbyeReasonAnnotation,
  suspectedLinkAnnotation,
  rebootStatusAnnotation,
  agentReleaseAnnotation,
  maintenanceAnnotation,
  cordonedByAnnotation,
  relayAnnotation,
]

function isControllers(key: string): boolean {
  return controllersAnnotations.includes(key)
}

/** Annotations of this prefix are the controller's word on a pod: which node claimed it, above all. */
function isOurs(key: string): boolean {
  return key.startsWith('bramble.dev/')
}
