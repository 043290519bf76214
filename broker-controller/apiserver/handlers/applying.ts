/** Server-side apply: the fields that an applier wants, all of them, merged into what is there (KEP-555). */
import { ApiError, conflict } from '../../../api/api-error.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { clipped, nameText } from '../../../api/problem.ts'
import { apiVersionOf, type Resource } from '../../../api/resources.ts'
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'
import { type Manager, managedFieldsOf, managersOf } from '../managed-fields/managed-entries.ts'
import { type Applied, afterApply, applied, type ManagedWrite } from '../managed-fields/managers.ts'
import { problemLines, typedProblems } from '../managed-fields/typed-problems.ts'
import { isSwitchedOn } from '../wire/query.ts'
import { fieldValidation, parseApplyBody, type Read, readObject } from '../wire/request-body.ts'
import type { FieldManagers } from './admission.ts'
import { managedWrite } from './field-managers.ts'
import { forbid } from './resource-request.ts'
import {
  type KindStrategy,
  type ResourceNeeds,
  type ResourceRequest,
  type SubresourceView,
  viewOf,
} from './strategy.ts'

/** The object that a client requests, computed from the present one, and the managers that its write leaves. */
export type Wanted = Read<AnyObject> & {
  readonly managers: FieldManagers
  /** Where the object is created, once it has passed admission; undefined: `managers`. */
  readonly managersOf?: (named: AnyObject) => FieldManagers
}

/** Throws Invalid without a field manager, BadRequest for a body that is not an object of the kind. */
export async function readApply(
  request: ResourceRequest,
  needs: ResourceNeeds,
): Promise<(present: AnyObject | undefined) => Wanted> {
  const { route, query, identity } = request
  const { resource: kind } = route
  const write = managedWrite(request, 'Apply', needs.clock.wallMs())
  const force = isSwitchedOn(query, 'force')
  const validation = fieldValidation(query, 'PatchOptions')
  const body = await request.readBody()
  const { input, repeated } = parseApplyBody(body, identity, needs.parseYaml, kind.mostValues)
  const view = viewOf(kind, route.subresource)
  const usable = refuseUnusable(request, input, view ?? kind)
  // What is applied to a view are fields of the object (managedfields.NewScaleHandler, apimachinery).
  const given = view === undefined ? usable : partOfObject(kind, view, usable)
  return (present) => {
    const result = applied(present, given, managersOf(present?.metadata.managedFields) ?? [], write)
    const { value, warnings } = readObject(kind, result.object, validation, repeated)
    const managers = appliedManagers(present, result, write, force)
    if (view === undefined) return { value, warnings, managers }
    const { uid, resourceVersion } = isObject(usable['metadata']) ? usable['metadata'] : {}
    const shown = view.show(value)
    const asked = { ...shown.metadata, ...textsOf({ uid, resourceVersion }) }
    return { value: { ...shown, metadata: asked }, warnings, managers }
  }
}

function textsOf(fields: JsonObject): { readonly [field: string]: string } {
  return Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

function partOfObject(kind: KindStrategy, view: SubresourceView<AnyObject>, usable: JsonObject): JsonObject {
  const { name, namespace } = isObject(usable['metadata']) ? usable['metadata'] : {}
  const metadata = textsOf({ name, namespace })
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...view.fields(usable) }
}

function appliedManagers(
  present: AnyObject | undefined,
  result: Applied,
  write: ManagedWrite,
  force: boolean,
): FieldManagers {
  return {
    managedFields(prepared, versions) {
      const managers: readonly Manager[] = afterApply(present, prepared, result, write, force, versions)
      return managedFieldsOf(managers)
    },
  }
}

/** Refuses a body that is not an object of the kind before anything is merged with it. */
function refuseUnusable(
  { route }: ResourceRequest,
  input: unknown,
  resource: Pick<Resource, 'kind' | 'group' | 'version' | 'schema'>,
): JsonObject {
  if (!isObject(input)) throw new ApiError('BadRequest', 'the body of an apply must be an object')
  const { apiVersion, kind } = input
  if ((apiVersion ?? apiVersionOf(resource)) !== apiVersionOf(resource) || (kind ?? resource.kind) !== resource.kind) {
    throw new ApiError('BadRequest', `invalid object type: ${clipped(typeText(apiVersion, kind))}`)
  }
  const metadata = isObject(input['metadata']) ? input['metadata'] : {}
  if (fieldOf(metadata, 'managedFields') !== undefined && metadata['managedFields'] !== null) {
    throw new ApiError('BadRequest', 'metadata.managedFields must be nil')
  }
  const problems = typedProblems(resource.schema, input)
  if (problems.length > 0) {
    const { namespace = '', name = '' } = metadata
    const which = `${nameText(namespace)}/${nameText(name)}; ${typeText(apiVersionOf(resource), resource.kind)}`
    throw new ApiError('BadRequest', `failed to create typed patch object (${which}): ${problemLines(problems)}`)
  }
  return { ...input, metadata: { ...metadata, name: metadata['name'] ?? route.name } }
}

/** `/v1, Kind=Pod`, as Go prints a GroupVersionKind. */
function typeText(apiVersion: unknown, kind: unknown): string {
  const version = apiVersion === undefined ? '' : nameText(apiVersion)
  return `${version.includes('/') ? version : `/${version}`}, Kind=${kind === undefined ? '' : nameText(kind)}`
}

/** A client that creates by an apply or an update needs the permission to create, too (withAuthorization in endpoints/handlers/update.go). */
export async function permitCreation(
  { route, identity }: ResourceRequest,
  { access }: ResourceNeeds,
  { metadata }: AnyObject,
): Promise<void> {
  const { resource: kind, namespace, name, verb } = route
  if (metadata.uid) {
    const because =
      verb === 'update'
        ? `Precondition failed: UID in precondition: ${clipped(metadata.uid)}, UID in object meta: `
        : `uid mismatch: the provided object specified uid ${clipped(metadata.uid)}, and no existing object was found`
    throw conflict(kind, name, because)
  }
  const { group, name: resource } = kind
  const attributes = { kind: 'resource', verb: 'create', group, resource, subresource: '', namespace, name } as const
  const { allowed } = await access.decide(identity, { ...attributes, fields: new Map() })
  if (allowed) return
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  const because = `User "${identity.user}" cannot create resource "${resource}" in API group "${group}" ${where}`
  throw forbid(kind, name, because)
}
