/** create, of objects and of what is done with them. */
import { ApiError, alreadyExists, isApiError, notFound } from '../../../api/api-error.ts'
import { nodeOf } from '../../../api/identity.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import type { ManagedWrite } from '../managed-fields/managers.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { fieldValidation, inNamespace, isDryRun, parseBody, readObject, repeatedFields } from '../wire/request-body.ts'
import { type FieldManagers, prepareForCreate, refuseLengthyProblems, withDefaults } from './admission.ts'
import { managedWrite, updatedManagers } from './field-managers.ts'
import { generatedName } from './generated-name.ts'
import { podSecurityWarnings } from './pod-security-gate.ts'
import { represent } from './representation.ts'
import { forbid, representationOptions } from './resource-request.ts'
import {
  type KindStrategy,
  type Put,
  type ResourceNeeds,
  type ResourceRequest,
  shownForm,
  storedForm,
  subresourceOf,
  writeBy,
} from './strategy.ts'
import { pauses } from './turns.ts'
import { judgedAction } from './webhook-actions.ts'
import { type RequestWebhooks, webhooksOf } from './webhook-gate.ts'

export async function createObject(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, query } = request
  const { resource: kind } = route
  const subresource = subresourceOf(kind, route.subresource)
  if (subresource?.access === 'create') {
    return subresource.create(await judgedAction(request, subresource, needs), needs)
  }
  const options = representationOptions(request, needs)
  const write = managedWrite(request, 'Update', needs.clock.wallMs())
  const body = await request.readBody()
  const pause = pauses(needs.clock)
  const input = parseBody(body, request, kind, needs.parseYaml)
  const validation = fieldValidation(query)
  const repeated = repeatedFields(body, request.contentType, validation, needs.parseYaml)
  await pause()
  const { value, warnings } = readObject(kind, input, validation, repeated)
  await pause()
  const made = await makeObject(request, needs, value, managersOfNew(kind, value, write))
  return objectAnswer(represent(kind, made.object, options), 201, [...warnings, ...made.warnings])
}

/** The managers of an object that a client creates, once it has its name. What admission and the server add has no manager. */
export function managersOfNew(
  kind: KindStrategy,
  { metadata }: AnyObject,
  write: ManagedWrite,
): (named: AnyObject) => FieldManagers {
  const { managedFields, areDispensable } = updatedManagers(undefined, metadata.managedFields, write)
  return (named) => ({
    managedFields: () => managedFields(shownForm(kind, withDefaults(kind, named))),
    ...(areDispensable && { areDispensable }),
  })
}

/**
 * Creates the object, or only computes it in a dry run, with the warnings of admission. `managersOf`: the managers of the object, once it
 * has its name.
 */
export async function makeObject(
  request: ResourceRequest,
  needs: ResourceNeeds,
  value: AnyObject,
  managersOf: (named: AnyObject) => FieldManagers,
): Promise<{ readonly object: AnyObject; readonly warnings: readonly string[] }> {
  const { route, identity } = request
  const { resource: kind } = route
  const dryRun = isDryRun(request.query)
  const given = inNamespace(storedForm(kind, value), route.namespace)
  await refuseClosedNamespace(request, given, needs)
  const webhooks = await webhooksOf(request, needs.webhooks, 'CREATE', dryRun)
  const placed = webhooks === undefined ? given : await mutated(webhooks, given, request)
  const admission = (await kind.admitCreate?.(placed, identity, needs)) ?? {}
  const node = nodeOf(identity)
  const restriction = (node !== undefined && (await kind.nodeRestriction?.facts?.(node, placed, needs))) || {}
  const prepare = () => {
    const named = withName(placed, needs.random)
    const mutated = admission.mutate?.(named) ?? named
    const facts = { nowMs: needs.clock.wallMs(), requester: identity, newUID: needs.newUID }
    const prepared = prepareForCreate(kind, mutated, facts, managersOf(named))
    const problem = node !== undefined && kind.nodeRestriction?.problem(node, prepared, undefined, restriction)
    if (problem) throw forbid(kind, named.metadata.name ?? '', problem)
    return admission.decorate?.(prepared) ?? prepared
  }
  const put: Put<AnyObject> = dryRun
    ? (one) => rehearsed(one, request, needs)
    : (one) => needs.store.create(kind.id, one)
  let warnings: readonly string[] = []
  const pause = pauses(needs.clock)
  const write = async () => {
    const prepared = prepare()
    await refuseLengthyProblems(kind, prepared, undefined, needs)
    await pause()
    const secured = await podSecurityWarnings(request, prepared, undefined, needs)
    warnings = [...(kind.warningsOnCreate?.(prepared) ?? []), ...secured]
    await webhooks?.validate(shownForm(kind, prepared), undefined, prepared.metadata.name)
    return writeBy(kind, prepared, undefined, needs, put)
  }
  const object = await created(write, placed)
  return { object, warnings: [...warnings, ...(webhooks?.warnings ?? [])] }
}

/** The object with its defaults after the webhooks that change it. */
async function mutated(webhooks: RequestWebhooks, given: AnyObject, { route }: ResourceRequest): Promise<AnyObject> {
  const { resource: kind, namespace } = route
  const asked = shownForm(kind, kind.withDefaults?.(given) ?? given)
  const result = await webhooks.mutate(asked, undefined, given.metadata.name ?? '')
  return result === asked ? given : inNamespace(storedForm(kind, readObject(kind, result, 'Ignore').value), namespace)
}

const attempts = 8

/** A generated name may exist already: then another one is tried. */
async function created(create: () => Promise<AnyObject>, { metadata }: AnyObject): Promise<AnyObject> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await create()
    } catch (error) {
      const isOurName = (metadata.name ?? '') === ''
      if (!isOurName || !isApiError(error, 'AlreadyExists') || attempt === attempts) throw error
    }
  }
}

async function rehearsed(prepared: AnyObject, { route }: ResourceRequest, { store, clock }: ResourceNeeds) {
  const { name = '', namespace = '' } = prepared.metadata
  const present = await store.get(route.resource.id, { namespace, name })
  if (present !== undefined) throw alreadyExists(route.resource, name)
  const metadata = { ...prepared.metadata, creationTimestamp: rfc3339(clock.wallMs()) }
  return { ...prepared, metadata }
}

function withName(given: AnyObject, random: () => number): AnyObject {
  const { name = '', generateName = '' } = given.metadata
  if (name !== '' || generateName === '') return given
  return { ...given, metadata: { ...given.metadata, name: generatedName(generateName, random) } }
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
  const { message, details } = forbid(resource, metadata.name ?? '', because)
  // Controllers stop trying for this cause (core/v1 NamespaceTerminatingCause).
  const gone = `namespace ${namespace} is being terminated`
  const causes = [{ reason: 'NamespaceTerminating', message: gone, field: 'metadata.namespace' }]
  throw new ApiError('Forbidden', message, { ...details, causes })
}
