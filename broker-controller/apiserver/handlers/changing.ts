/** update and patch, of objects and of their subresources: read, change, write, and retry on a conflicting write. */
import { ApiError, conflict, isApiError, notFound } from '../../../api/api-error.ts'
import { isReleased } from '../../../api/deletion/object-deletion.ts'
import { nodeOf } from '../../../api/identity.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { invalidObject } from '../../../api/problem.ts'
import type { Resource } from '../../../api/resources.ts'
import { isObject } from '../../../api/text/json.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { AnyStored } from '../../store/store.ts'
import type { ManagedWrite } from '../managed-fields/managers.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { mostPatchValues } from '../wire/body-limits.ts'
import { patchForm, structuralPatchForms, unsupportedBody } from '../wire/content-negotiation.ts'
import { duplicateFields } from '../wire/duplicate-fields.ts'
import { jsonPatch } from '../wire/json-patch.ts'
import { mergePatch } from '../wire/patch.ts'
import {
  fieldValidation,
  inNamespace,
  isDryRun,
  parseBody,
  parseJsonBody,
  type Read,
  readObject,
  repeatedFields,
} from '../wire/request-body.ts'
import { strategicMergePatch } from '../wire/strategic-merge-patch.ts'
import { type FieldManagers, prepareForUpdate, refuseLengthyProblems } from './admission.ts'
import { permitCreation, readApply, type Wanted } from './applying.ts'
import { versionsOfManagers } from './conversion/managed-versions.ts'
import { makeObject, managersOfNew } from './creating.ts'
import { managedWrite, updatedManagers } from './field-managers.ts'
import { podSecurityWarnings } from './pod-security-gate.ts'
import { represent, representPart } from './representation.ts'
import { forbid, keyOfRoute, representationOptions } from './resource-request.ts'
import {
  type ResourceNeeds,
  type ResourceRequest,
  type ResourceRoute,
  replaceStatus,
  shownForm,
  storedForm,
  subresourceOf,
  viewOf,
  writeBy,
} from './strategy.ts'
import { pauses } from './turns.ts'
import { type RequestWebhooks, webhooksOf } from './webhook-gate.ts'

/** Readers see a write only once it is kept, so trying again at once would meet the same conflict. */
const waitsMs = [10, 20, 40, 80, 160]

export async function changeObject(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route } = request
  const change = await changeOf(request, needs)
  for (let failures = 0; ; failures++) {
    await change.pause()
    const present = await needs.store.get(route.resource.id, keyOfRoute(route))
    if (present === undefined && !change.mayCreate) throw notFound(route.resource, route.name)
    const wanted = change.wantedFrom(present && shownForm(route.resource, present))
    const write = await (present === undefined ? creation(change, wanted) : update(change, present, wanted))
    try {
      return await write()
    } catch (error) {
      // A client that named the version is refused on the next reading; for any other the change is repeated.
      const waitMs = isOvertaken(error, present) ? waitsMs[failures] : undefined
      if (waitMs === undefined) throw error
      await needs.clock.sleep(waitMs, request.signal)
    }
  }
}

/** Another writer was faster. */
function isOvertaken(error: unknown, present: AnyStored | undefined): boolean {
  return isApiError(error, present === undefined ? 'AlreadyExists' : 'Conflict')
}

/** What is the same each time the change is tried. */
type Attempts = {
  readonly request: ResourceRequest
  readonly needs: ResourceNeeds
  /** An apply creates the object that is not there, and so does an update of some kinds. */
  readonly mayCreate: boolean
  readonly wantedFrom: (present: AnyObject | undefined) => Wanted
  readonly webhooks: RequestWebhooks | undefined
  readonly options: ReturnType<typeof representationOptions>
  readonly dryRun: boolean
  readonly pause: () => Promise<void>
}

async function changeOf(request: ResourceRequest, needs: ResourceNeeds): Promise<Attempts> {
  const { route, query } = request
  const pause = pauses(needs.clock)
  const options = representationOptions(request, needs)
  const dryRun = isDryRun(query, route.verb === 'patch' ? 'PatchOptions' : 'UpdateOptions')
  const isApply = route.verb === 'patch' && patchForm(request.contentType) === 'apply'
  const wantedFrom = isApply ? await readApply(request, needs) : await readChange(request, needs)
  const webhooks = await webhooksOf(request, needs.webhooks, 'UPDATE', dryRun)
  const isCreating = isApply || (route.verb === 'update' && route.resource.createdByUpdate === true)
  const mayCreate = isCreating && route.subresource === ''
  return { request, needs, mayCreate, wantedFrom, webhooks, options, dryRun, pause }
}

type Write = () => Promise<ApiResponse>

async function creation({ request, needs, options, pause }: Attempts, wanted: Wanted): Promise<Write> {
  const { value, warnings, managers, managersOf = () => managers } = wanted
  const { resource } = request.route
  await permitCreation(request, needs, value)
  await pause()
  return async () => {
    refuseOtherName(request, value)
    const made = await makeObject(request, needs, value, managersOf)
    return objectAnswer(represent(resource, made.object, options), 201, [...warnings, ...made.warnings])
  }
}

async function update(change: Attempts, present: AnyStored, wanted: Wanted): Promise<Write> {
  const { request, needs, webhooks, pause } = change
  const { value: given, warnings, managers } = wanted
  refuseOther(request, given, present)
  const value = webhooks ? await mutated(webhooks, request, given, present) : given
  await pause()
  const next = await changed(request, present, storedPart(request.route, present, value), managers, needs)
  return () => writeChange(change, present, next, warnings)
}

async function writeChange(
  { request, needs, webhooks, options, dryRun, pause }: Attempts,
  present: AnyStored,
  next: AnyObject,
  warnings: readonly string[],
): Promise<ApiResponse> {
  const { route } = request
  const { resource, subresource } = route
  await refuseLengthyProblems(resource, next, present, needs)
  await resource.admitUpdate?.(next, needs, { old: present, requester: request.identity, subresource })
  const secured = await podSecurityWarnings(request, next, present, needs)
  await webhooks?.validate(shownPart(route, next), shownPart(route, present))
  await pause() // Others may change the object meanwhile: it is written only onto what was read.
  const put = async (one: AnyObject) => (dryRun ? ofVersion(one, present) : written(request, present, one, needs))
  const result = await (subresource === '' ? writeBy(resource, next, present, needs, put) : put(next))
  const own = subresource === '' ? resource.warningsOnUpdate?.(present, next) : undefined
  const all = [...warnings, ...(own ?? []), ...secured, ...(webhooks?.warnings ?? [])]
  return objectAnswer(representPart(route, result, options), 200, all)
}

/** An update, or a patch of what is there. */
async function readChange(
  request: ResourceRequest,
  needs: ResourceNeeds,
): Promise<(present: AnyObject | undefined) => Wanted> {
  const write = managedWrite(request, 'Update', needs.clock.wallMs())
  const read = request.route.verb === 'patch' ? await patched(request) : await replaced(request, needs)
  const { resource, subresource } = request.route
  const view = viewOf(resource, subresource)
  return (present) => {
    if (present === undefined) return createdBy(request, write, read)
    const { value, warnings } = read(view === undefined ? present : view.show(present))
    return { value, warnings, managers: updatedManagers(present, value.metadata.managedFields, write) }
  }
}

/** What an update creates, whichever version it states. Throws NotFound for a patch. */
function createdBy({ route }: ResourceRequest, write: ManagedWrite, read: Change): Wanted {
  const { resource, name } = route
  if (route.verb !== 'update') throw notFound(resource, name)
  const { value, warnings } = read({ apiVersion: '', kind: '', metadata: {} }) // an update is read without what is there
  const { resourceVersion: _, ...metadata } = value.metadata
  const managers = updatedManagers(undefined, metadata.managedFields, write)
  return { value: { ...value, metadata }, warnings, managers, managersOf: managersOfNew(resource, value, write) }
}

/** The wanted object, with its defaults, after the webhooks that change it. */
async function mutated(
  webhooks: RequestWebhooks,
  request: ResourceRequest,
  given: AnyObject,
  present: AnyStored,
): Promise<AnyObject> {
  const { resource: kind } = request.route
  const stored = storedForm(kind, given)
  const isView = viewOf(kind, request.route.subresource) !== undefined
  const asked = isView ? given : shownForm(kind, kind.withDefaults?.(stored) ?? stored)
  const result = await webhooks.mutate(asked, shownPart(request.route, present))
  if (result === asked) return given
  const { value } = readObject(bodyKind(request.route), result, 'Ignore')
  refuseOther(request, value, present)
  return value
}

/** What the body of a change is: the kind, or the view of it that the path names. */
function bodyKind({ resource, subresource }: ResourceRoute): Resource {
  const { kind, group, version, schema, reader } = viewOf(resource, subresource) ?? resource
  return { ...resource, kind, group, version, schema, reader }
}

/** The object, or the view of it, as clients see it. */
function shownPart({ resource, subresource }: ResourceRoute, object: AnyObject): AnyObject {
  return viewOf(resource, subresource)?.show(object) ?? shownForm(resource, object)
}

/** The stored object with what the client wants. Throws ApiError Invalid for a view that is wrong. */
function storedPart({ resource, subresource, namespace, name }: ResourceRoute, present: AnyStored, value: AnyObject) {
  const view = viewOf(resource, subresource)
  if (view === undefined) return inNamespace(storedForm(resource, value), namespace)
  const problems = view.problems(inNamespace(value, namespace))
  if (problems.length > 0) throw invalidObject(view, name, problems)
  if (view.change !== undefined) return view.change(present, value)
  const spec = { ...(isObject(present.spec) ? present.spec : {}), ...view.fields(value).spec }
  return { ...present, spec }
}

type Change = (present: AnyObject) => Read<AnyObject>

async function replaced(request: ResourceRequest, { parseYaml }: ResourceNeeds): Promise<Change> {
  const { route, query } = request
  const kind = bodyKind(route)
  const body = await request.readBody()
  const input = parseBody(body, request, { ...kind, mostValues: route.resource.mostValues }, parseYaml)
  const validation = fieldValidation(query, 'UpdateOptions')
  const repeated = repeatedFields(body, request.contentType, validation, parseYaml)
  const read = readObject(kind, input, validation, repeated)
  return () => read
}

/** Whether a write of this path leaves the specification as it is. */
function writesStatus({ resource, subresource }: ResourceRoute): boolean {
  const part = subresourceOf(resource, subresource)
  return part?.access === 'update' && part.writes === 'status'
}

async function patched(request: ResourceRequest): Promise<Change> {
  const { route, query, contentType } = request
  const kind = bodyKind(route)
  const form = patchForm(contentType, route.resource.defined ? structuralPatchForms : undefined)
  const validation = fieldValidation(query, 'PatchOptions')
  const body = await request.readBody()
  const patch = parseJsonBody(body, form === 'json' ? mostPatchValues : route.resource.mostValues)
  const repeated = { fields: validation === 'Ignore' || form === 'json' ? [] : duplicateFields(body), keys: [] }
  const apply = (present: AnyObject) => {
    switch (form) {
      case 'json':
        return jsonPatch(present, patch)
      case 'merge':
        return mergePatch(present, patch)
      case 'strategic':
        return strategicMergePatch(kind.schema, present, patch)
      case 'apply':
        throw unsupportedBody() // read by readApply
    }
  }
  const isOfStatus = writesStatus(route)
  return (present) => {
    const result = apply(present)
    // Go clients send a whole object of which they have set the status only: the rest must not be judged.
    const wanted = isOfStatus && isObject(result) && 'spec' in present ? { ...result, spec: present.spec } : result
    return readObject(kind, wanted, validation, repeated)
  }
}

/** Refuses a body about another object, or another version of it, than the one stored. Neither need be named. */
function refuseOther(request: ResourceRequest, object: AnyObject, present: AnyStored): void {
  refuseOtherName(request, object)
  const { route } = request
  const { name = '', uid, resourceVersion: stated = '' } = object.metadata
  // Versions are numbers, and 0 does not count (Update in apiserver, registry/generic/registry/store.go).
  const resourceVersion = /^0+$/.test(stated) ? '' : stated
  if (
    route.resource.needsVersion &&
    resourceVersion === '' &&
    viewOf(route.resource, route.subresource) === undefined
  ) {
    const message = 'Invalid value: 0x0: must be specified for an update'
    const { name: kind, group } = route.resource
    throw invalidObject({ kind, group }, name, [
      { field: 'metadata.resourceVersion', reason: 'FieldValueInvalid', message },
    ])
  }
  if (uid && uid !== present.metadata.uid) {
    const because = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${present.metadata.uid}`
    throw conflict(route.resource, name, because)
  }
  if (resourceVersion && resourceVersion !== present.metadata.resourceVersion) throw conflict(route.resource, name)
}

function refuseOtherName({ route }: ResourceRequest, { metadata: { name = '' } }: AnyObject): void {
  if (name === route.name) return
  const message = `the name of the object (${name}) does not match the name on the URL (${route.name})`
  throw new ApiError('BadRequest', message)
}

async function changed(
  request: ResourceRequest,
  present: AnyStored,
  wanted: AnyObject,
  managers: FieldManagers,
  { clock, conversions }: ResourceNeeds,
): Promise<AnyObject> {
  const { route, identity } = request
  const { resource: kind } = route
  const part = changedPart(request, present, wanted, clock.wallMs())
  const prepare = (own?: FieldManagers) => prepareForUpdate(kind, present, part, route.subresource, own)
  const versions = await versionsOfManagers(kind, present, prepare, conversions)
  const next = prepare(
    versions === undefined ? managers : { ...managers, managedFields: (one) => managers.managedFields(one, versions) },
  )
  const node = nodeOf(identity)
  const problem = node !== undefined && kind.nodeRestriction?.problem(node, next, present, {})
  if (problem) throw forbid(kind, route.name, problem)
  return next
}

/** A write to a subresource changes that part only; a write to the object leaves the status of a kind that has one. */
function changedPart({ route }: ResourceRequest, present: AnyStored, wanted: AnyObject, nowMs: number): AnyObject {
  const { resource: kind } = route
  const part = subresourceOf(kind, route.subresource)
  if (part?.access === 'update') return part.change(present, wanted, rfc3339(nowMs))
  if (part?.access === 'view') return wanted
  return subresourceOf(kind, 'status') === undefined ? wanted : replaceStatus(wanted, present.status)
}

/** What a dry run answers with: nothing is written, so the version is that of the stored object. */
function ofVersion(object: AnyObject, { metadata: { resourceVersion } }: AnyStored): AnyObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion } }
}

/** Written only onto what was read. An object that only its finalizers kept goes with the last of them. */
async function written(
  { route }: ResourceRequest,
  present: AnyStored,
  next: AnyObject,
  { store, clock }: ResourceNeeds,
): Promise<AnyObject> {
  const { uid, resourceVersion } = present.metadata
  const { resource: kind } = route
  if (isReleased(next)) {
    await kind.beforeRemoval?.(route.name, { store, clock })
    return store.delete(kind.id, keyOfRoute(route), { uid, resourceVersion })
  }
  const exact: AnyObject = { ...next, metadata: { ...next.metadata, uid, resourceVersion } }
  const part = subresourceOf(kind, route.subresource)
  const changesStatus = part?.access === 'update' && part.writes === 'status'
  const statusOnly = changesStatus && equalJSON(next.metadata, present.metadata)
  return statusOnly ? store.updateStatus(kind.id, exact) : store.update(kind.id, exact)
}
