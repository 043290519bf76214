/** create, and what is created inside a pod: its binding, its eviction. */
import { ApiError, alreadyExists, conflict, isApiError, notFound } from '../../../api/api-error.ts'
import { nodeOf } from '../../../api/identity.ts'
import { ObjectMetaSchema, ObjectReferenceSchema } from '../../../api/meta.ts'
import type { Node } from '../../../api/node.ts'
import { mirrorAnnotation, type Pod } from '../../../api/pod.ts'
import { boundPod } from '../../../api/pod-conditions.ts'
import type { PriorityClass } from '../../../api/priority-class.ts'
import type { Resource } from '../../../api/resources.ts'
import { object, optional, text } from '../../../api/schema.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { rewrite } from '../../store/rewrite.ts'
import { type NodeFacts, nodeRestriction } from '../access/node-restriction.ts'
import { refuseTooManyRequests } from '../kinds/certificate-requests.ts'
import { evictPod } from '../kinds/evicting.ts'
import { learnCheckpoint, withoutCheckpoint } from '../kinds/learning.ts'
import { type Admitted, admitPriorityClass, withPriority } from '../kinds/priority.ts'
import { type Answer, objectAnswer } from '../wire/answers.ts'
import {
  type AnyObject,
  fieldValidation,
  inNamespace,
  isDryRun,
  parseBody,
  readAs,
  readObject,
} from '../wire/request-body.ts'
import { successStatus } from '../wire/status-errors.ts'
import { prepareForCreate } from './admission.ts'
import { represent } from './representation.ts'
import { forbid, keyOf, type ResourceNeeds, type ResourceRequest, wishOf } from './resource-request.ts'

export async function createObject(request: ResourceRequest, needs: ResourceNeeds): Promise<Answer> {
  if (request.route.subresource === 'binding') return bindPod(request, needs)
  if (request.route.subresource === 'eviction') return evictPod(request, needs)
  if (request.route.subresource === 'checkpoint') return learnCheckpoint(request, needs)
  const { route, identity, query } = request
  const { resource } = route
  const wish = wishOf(request, needs)
  const dryRun = isDryRun(query)
  const input = parseBody(await request.readBody(), request, needs.parseYaml)
  const { value, warnings } = readObject(resource, input, fieldValidation(query))
  const placed = inNamespace(value, route.namespace)
  await refuseClosedNamespace(request, placed, needs)
  if (resource.name === 'certificatesigningrequests') {
    refuseTooManyRequests(identity, (await needs.store.list(resource.name)).items)
  }
  const classes = await priorityClassesFor(resource, needs)
  const node = nodeOf(identity)
  const facts = node === undefined ? {} : await factsFor(node, placed, needs)
  const prepare = () => {
    const named = withName(placed, needs.random)
    const admitted = withRank(resource, named, classes)
    const prepared = prepareForCreate(resource, admitted, { nowMs: needs.clock.wallMs(), requester: identity })
    const problem = node && nodeRestriction(node, resource.name, prepared, undefined, facts)
    if (problem) throw forbid(resource, named.metadata.name ?? '', problem)
    return withoutCheckpoint(prepared, identity, needs)
  }
  const made = dryRun ? await rehearsed(prepare(), request, needs) : await created(prepare, placed, request, needs)
  return objectAnswer(represent(resource, made, wish), 201, warnings)
}

async function factsFor(node: string, object: AnyObject, { store, commonNameOf }: ResourceNeeds): Promise<NodeFacts> {
  switch (object.kind) {
    case 'Pod': {
      const author = await store.get('nodes', { namespace: '', name: node })
      const pods = (await store.list('pods')).items.filter(({ spec }) => spec.nodeName === node)
      const count = pods.filter(({ metadata }) => metadata.annotations?.[mirrorAnnotation] !== undefined).length
      return { nodeUid: author?.metadata.uid, mirrors: { count, most: mostMirrors(author) } }
    }
    case 'CertificateSigningRequest':
      return { commonName: commonNameOf(Buffer.from(object.spec.request, 'base64').toString('utf8')) }
    default:
      return {}
  }
}

/** As many as its pods may be; a node says itself how many that is, so it is bounded. */
function mostMirrors(node: Node | undefined): number {
  const pods = Number(node?.status?.capacity?.['pods'] ?? 0)
  return Math.min(Math.max(pods || 0, 110), 500)
}

/** The classes that decide about such an object; none when they do not matter. */
async function priorityClassesFor({ name }: Resource, { store }: ResourceNeeds): Promise<readonly PriorityClass[]> {
  return name === 'pods' || name === 'priorityclasses' ? (await store.list('priorityclasses')).items : []
}

/** Throws Forbidden when what the object says of its importance contradicts the classes. */
function withRank(resource: Resource, object: AnyObject, classes: readonly PriorityClass[]): AnyObject {
  const admitted = rankOf(object, classes)
  if (!admitted.ok) throw forbid(resource, object.metadata.name ?? '', admitted.because)
  return admitted.object
}

function rankOf(object: AnyObject, classes: readonly PriorityClass[]): Admitted<AnyObject> {
  switch (object.kind) {
    case 'Pod':
      return withPriority(object, classes)
    case 'PriorityClass':
      return admitPriorityClass(object, classes)
    default:
      return { ok: true, object }
  }
}

const attempts = 8

/** A name made up by us may be taken: then another one is tried. */
async function created(
  prepare: () => AnyObject,
  { metadata }: AnyObject,
  { route }: ResourceRequest,
  { store }: ResourceNeeds,
): Promise<AnyObject> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await store.create(route.resource.name, prepare())
    } catch (error) {
      const isOurName = (metadata.name ?? '') === ''
      if (!isOurName || !isApiError(error, 'AlreadyExists') || attempt === attempts) throw error
    }
  }
}

async function rehearsed(prepared: AnyObject, { route }: ResourceRequest, { store, clock }: ResourceNeeds) {
  const { name = '', namespace = '' } = prepared.metadata
  const present = await store.get(route.resource.name, { namespace, name })
  if (present !== undefined) throw alreadyExists(route.resource, name)
  const metadata = { ...prepared.metadata, creationTimestamp: rfc3339(clock.wallMs()) }
  return { ...prepared, metadata }
}

/** Letters and digits that make no words and are not mistaken for one another, as Kubernetes chooses them. */
const suffixCharacters = 'bcdfghjklmnpqrstvwxz2456789'

function withName(given: AnyObject, random: () => number): AnyObject {
  const { name = '', generateName = '' } = given.metadata
  if (name !== '' || generateName === '') return given
  const suffix = Array.from({ length: 5 }, () => suffixCharacters[Math.floor(random() * suffixCharacters.length)])
  return { ...given, metadata: { ...given.metadata, name: `${generateName}${suffix.join('')}` } }
}

async function refuseClosedNamespace(
  { route }: ResourceRequest,
  { metadata }: AnyObject,
  { store }: ResourceNeeds,
): Promise<void> {
  const { resource, namespace } = route
  if (!resource.namespaced) return
  const found = await store.get('namespaces', { namespace: '', name: namespace })
  if (found === undefined) throw notFound({ name: 'namespaces', group: '' }, namespace)
  if (found.metadata.deletionTimestamp === undefined) return
  const because = `unable to create new content in namespace ${namespace} because it is being terminated`
  throw forbid(resource, metadata.name ?? '', because)
}

const BindingSchema = object({
  apiVersion: optional(text),
  kind: optional(text),
  metadata: ObjectMetaSchema,
  target: ObjectReferenceSchema,
})

/** What a scheduler of somebody else sends. A pod is bound once and for good. */
async function bindPod(request: ResourceRequest, needs: ResourceNeeds): Promise<Answer> {
  const { route, query } = request
  const dryRun = isDryRun(query)
  const input = parseBody(await request.readBody(), request, needs.parseYaml)
  const { metadata, target } = readAs(BindingSchema, 'Binding', input)
  const node = target.name ?? ''
  if (node === '' || (target.kind ?? 'Node') !== 'Node') {
    throw new ApiError('BadRequest', 'the target of a binding must be a node, by its name')
  }
  const change = (pod: Pod) => {
    const problem = bindingProblem(pod)
    const isOther = metadata.uid !== undefined && metadata.uid !== pod.metadata.uid
    if (isOther) throw conflict({ name: 'pods/binding', group: '' }, route.name, 'this is another pod of that name')
    if (problem !== undefined) throw conflict({ name: 'pods/binding', group: '' }, route.name, problem)
    return dryRun ? undefined : boundPod(pod, node, rfc3339(needs.clock.wallMs()))
  }
  const written = await rewrite(needs, 'pods', { key: keyOf(route), change })
  if (written === undefined && !dryRun) throw notFound(route.resource, route.name)
  return objectAnswer(successStatus(), 201)
}

function bindingProblem({ metadata, spec }: Pod): string | undefined {
  if (metadata.deletionTimestamp !== undefined) {
    return `pod ${metadata.name} is being deleted, cannot be assigned to a host`
  }
  if ((spec.schedulingGates ?? []).length > 0) return `pod ${metadata.name} has non-empty .spec.schedulingGates`
  if (spec.nodeName) return `pod ${metadata.name} is already assigned to node "${spec.nodeName}"`
  return undefined
}
