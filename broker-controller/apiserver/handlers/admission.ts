/**
 * An object on its way into the store: what its author left out is filled in, what is the server's to say is said, and
 * what is wrong is refused with every field at fault. Pure; permissions are asked elsewhere.
 */
import { ApiError } from '../../../api/api-error.ts'
import { type Event, eventMessage, eventReason } from '../../../api/event.ts'
import { authenticatedGroup, type Identity, nodeOf } from '../../../api/identity.ts'
import type { ObjectMeta } from '../../../api/meta.ts'
import type { Node } from '../../../api/node.ts'
import { invalidObject, type Problem } from '../../../api/problem.ts'
import type { Resource, ResourceName, ResourceTypes } from '../../../api/resources.ts'
import type { Secret } from '../../../api/secret.ts'
import { earlyProblems } from '../../../api/validation/ephemeral-validation.ts'
import { metadataChangeProblems, metadataProblems } from '../../../api/validation/metadata-validation.ts'
import { withPodDefaults } from '../../../api/validation/pod-defaults.ts'
import { podProblems } from '../../../api/validation/pod-validation.ts'
import { unsupportedFields } from '../../../api/validation/unsupported-fields.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import {
  budgetProblems,
  configMapChangeProblems,
  configMapProblems,
  leaseProblems,
  nodeChangeProblems,
  nodeProblems,
  requestChangeProblems,
  requestProblems,
  secretChangeProblems,
  secretContentProblems,
  secretProblems,
} from '../kinds/kind-validation.ts'
import { changedPod, newPod } from '../kinds/new-pod.ts'
import { ephemeralChangeProblems, podChangeProblems } from '../kinds/pod-change.ts'
import { priorityClassChangeProblems, priorityClassProblems } from '../kinds/priority.ts'
import { refuseLarge } from '../wire/object-size.ts'

type AnyObject = ResourceTypes[ResourceName]

export type CreateFacts = {
  readonly nowMs: number
  readonly requester: Identity
  /** It was there before, in another store: what came to it while it lived comes with it. */
  readonly learnt?: true
}

/** The object as it shall be stored. It has its name and namespace already. Throws ApiError Invalid or BadRequest. */
export function prepareForCreate(resource: Resource, object: AnyObject, facts: CreateFacts): AnyObject {
  if (object.metadata.resourceVersion) {
    throw new ApiError('BadRequest', 'resourceVersion should not be set on objects to be created')
  }
  const named = withMetadata(object, clientsMetadata(object.metadata))
  const prepared = withDefaults(asNew(named, facts))
  refuseLarge(prepared)
  const unsupported = prepared.kind === 'Pod' ? unsupportedFields('spec', prepared.spec) : []
  refuse(resource, prepared, [
    ...metadataProblems(resource, prepared.metadata),
    ...problemsOf(prepared),
    ...(facts.learnt ? [] : firstProblems(prepared)),
    ...unsupported,
  ])
  return prepared
}

/** What is asked of one that was not there before: a node that tells what it runs does not know all of it. */
function firstProblems(object: AnyObject): readonly Problem[] {
  if (object.kind === 'Secret') return secretContentProblems(object)
  return object.kind === 'Pod' ? earlyProblems('spec', object.spec) : []
}

/** `now` as it shall be stored in place of `old`. Throws ApiError Invalid. */
export function prepareForUpdate(resource: Resource, old: AnyObject, now: AnyObject, subresource = ''): AnyObject {
  const kept = keptFrom(old, now)
  const prepared = withDefaults(withMetadata(kept, serversMetadata(old.metadata, kept.metadata)))
  refuseLarge(prepared)
  refuse(resource, prepared, [
    ...metadataProblems(resource, prepared.metadata),
    ...metadataChangeProblems(old.metadata, prepared.metadata),
    ...changeProblems(withDefaults(old), prepared, subresource),
  ])
  return prepared
}

/** What the server once said of an object stays when a client leaves it out. */
function keptFrom(old: AnyObject, now: AnyObject): AnyObject {
  return old.kind === 'Pod' && now.kind === 'Pod' ? changedPod(old, now) : now
}

function refuse(resource: Resource, { metadata }: AnyObject, problems: readonly Problem[]): void {
  if (problems.length > 0) throw invalidObject(resource, metadata.name ?? '', problems)
}

/** What a client may say of a new object; the rest is the server's. */
function clientsMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, generateName, namespace, labels, annotations, ownerReferences, finalizers } = metadata
  return given({ name, generateName, namespace, labels, annotations, ownerReferences, finalizers })
}

/** Deletion is asked for elsewhere, and once asked for it cannot be taken back. */
function serversMetadata(old: ObjectMeta, now: ObjectMeta): ObjectMeta {
  const { deletionTimestamp: _, deletionGracePeriodSeconds: __, selfLink: ___, managedFields: ____, ...rest } = now
  const { uid, creationTimestamp, generation, deletionTimestamp, deletionGracePeriodSeconds } = old
  return { ...rest, ...given({ uid, creationTimestamp, generation, deletionTimestamp, deletionGracePeriodSeconds }) }
}

/** The object before anything has happened to it, whatever its author says of that. */
function asNew(object: AnyObject, { requester, nowMs, learnt }: CreateFacts): AnyObject {
  switch (object.kind) {
    case 'Pod':
      return newPod(object, rfc3339(nowMs), learnt)
    case 'Node':
      return withNotReadyTaint(object)
    case 'Namespace':
      return { ...object, status: { phase: 'Active' } }
    case 'CertificateSigningRequest': {
      const { status: _, ...rest } = object
      const { username: __, uid: ___, groups: ____, extra: _____, ...asked } = object.spec
      const groups = [...new Set([...requester.groups, authenticatedGroup])]
      const { extra } = requester
      return { ...rest, spec: { ...asked, username: requester.user, groups, ...(extra && { extra }) } }
    }
    case 'PodDisruptionBudget': {
      const { status: _, ...rest } = object
      return rest
    }
    case 'Event': {
      // Events of one source are bounded together: a node cannot write them in the name of another.
      const host = nodeOf(requester)
      return host === undefined ? object : { ...object, source: { ...object.source, host } }
    }
    default:
      return object
  }
}

const notReadyKey = 'node.kubernetes.io/not-ready'

/** Nothing is placed on a new node before a controller has seen it Ready and takes the taint off again. */
function withNotReadyTaint(node: Node): Node {
  const taints = node.spec?.taints ?? []
  if (taints.some(({ key, effect }) => key === notReadyKey && effect === 'NoSchedule')) return node
  return { ...node, spec: { ...node.spec, taints: [...taints, { key: notReadyKey, effect: 'NoSchedule' }] } }
}

function withDefaults(object: AnyObject): AnyObject {
  switch (object.kind) {
    case 'Pod':
      return { ...object, spec: withPodDefaults(object.spec) }
    case 'Secret':
      return withSecretDefaults(object)
    case 'Event':
      return withShortTexts(object)
    case 'Node':
      return withBothCidrs(object)
    case 'PriorityClass':
      return { ...object, preemptionPolicy: object.preemptionPolicy || 'PreemptLowerPriority' }
    case 'Namespace': {
      const named = { 'kubernetes.io/metadata.name': object.metadata.name ?? '' }
      const metadata = { ...object.metadata, labels: { ...object.metadata.labels, ...named } }
      return { ...object, metadata, spec: { finalizers: ['kubernetes'] } }
    }
    default:
      return object
  }
}

function withShortTexts(event: Event): Event {
  const { message, reason } = event
  return {
    ...event,
    ...(message !== undefined && { message: eventMessage(message) }),
    ...(reason !== undefined && { reason: eventReason(reason) }),
  }
}

/** `podCIDR` and the first of `podCIDRs` are the same thing, whichever was written. */
function withBothCidrs(node: Node): Node {
  const { podCIDR, podCIDRs = [] } = node.spec ?? {}
  const first = podCIDR || podCIDRs[0]
  if (first === undefined || (podCIDR && podCIDRs.length > 0)) return node
  return { ...node, spec: { ...node.spec, podCIDR: first, podCIDRs: podCIDRs.length > 0 ? podCIDRs : [first] } }
}

/** `stringData` is for writing only: it is kept as `data`. */
function withSecretDefaults(secret: Secret): Secret {
  const { stringData = {}, ...rest } = secret
  const folded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')])
  const data = { ...rest.data, ...Object.fromEntries(folded) }
  return { ...rest, type: rest.type || 'Opaque', ...(Object.keys(data).length > 0 && { data }) }
}

function problemsOf(object: AnyObject): readonly Problem[] {
  switch (object.kind) {
    case 'Pod':
      return podProblems(object)
    case 'Node':
      return nodeProblems(object)
    case 'ConfigMap':
      return configMapProblems(object)
    case 'Secret':
      return secretProblems(object)
    case 'Lease':
      return leaseProblems(object)
    case 'CertificateSigningRequest':
      return requestProblems(object)
    case 'PriorityClass':
      return priorityClassProblems(object)
    case 'PodDisruptionBudget':
      return budgetProblems(object)
    case 'Namespace':
    case 'Event':
      return []
  }
}

/** What is wrong with the new object, and with the way from the old one to it. */
function changeProblems(old: AnyObject, now: AnyObject, subresource: string): readonly Problem[] {
  if (old.kind === 'Pod' && now.kind === 'Pod') {
    return subresource === 'ephemeralcontainers' ? ephemeralChangeProblems(old, now) : podChangeProblems(old, now)
  }
  if (old.kind === 'Node' && now.kind === 'Node') return [...nodeProblems(now), ...nodeChangeProblems(old, now)]
  if (old.kind === 'ConfigMap' && now.kind === 'ConfigMap') {
    return [...configMapProblems(now), ...configMapChangeProblems(old, now)]
  }
  if (old.kind === 'Secret' && now.kind === 'Secret') {
    return [...secretProblems(now), ...secretContentProblems(now), ...secretChangeProblems(old, now)]
  }
  if (old.kind === 'CertificateSigningRequest' && now.kind === 'CertificateSigningRequest') {
    return requestChangeProblems(old, now)
  }
  if (old.kind === 'PriorityClass' && now.kind === 'PriorityClass') return priorityClassChangeProblems(old, now)
  return problemsOf(now)
}

function withMetadata(object: AnyObject, metadata: ObjectMeta): AnyObject {
  return { ...object, metadata }
}

function given(fields: ObjectMeta): ObjectMeta {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
