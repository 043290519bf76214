/** Who writes, and the managedFields that a creation or an update leaves. */
import type { AnyObject, ManagedFieldsEntry } from '../../../api/meta.ts'
import { forbidden, invalidObject, type Problem, required } from '../../../api/problem.ts'
import { apiVersionOf } from '../../../api/resources.ts'
import { managerNameProblems } from '../../../api/validation/metadata-validation.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { type FieldSet, noFields, setOfPaths } from '../managed-fields/field-set.ts'
import { type Manager, managedFieldsOf, managersOf, type Writer } from '../managed-fields/managed-entries.ts'
import { afterUpdate, type ManagedWrite } from '../managed-fields/managers.ts'
import type { FieldManagers } from './admission.ts'
import { type KindStrategy, type ResourceRequest, subresourceOf } from './strategy.ts'

/** Characters, as prefixFromUserAgent (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go) takes bytes. */
const longestManager = 128

/** Who writes what, and when. Throws ApiError Invalid for a bad `fieldManager` or `force`, and where an applier has no name. */
export function managedWrite(request: ResourceRequest, operation: Writer['operation'], nowMs: number): ManagedWrite {
  const { query, route, userAgent } = request
  const asked = query.get('fieldManager') ?? ''
  const problems = optionProblems(query, operation, route.verb)
  if (problems.length > 0) {
    throw invalidObject({ kind: optionKinds[route.verb] ?? 'PatchOptions', group: 'meta.k8s.io' }, '', problems)
  }
  const { resource: kind, subresource } = route
  const manager = asked || userAgentName(userAgent)
  const writer: Writer = { manager, operation, apiVersion: apiVersionOf(kind), subresource }
  return { schema: kind.schema, writer, now: rfc3339(nowMs), reset: resetFieldsOf(kind, subresource) }
}

const optionKinds: { readonly [verb: string]: string } = { create: 'CreateOptions', update: 'UpdateOptions' }

/** As ValidatePatchOptions (apimachinery, meta/v1/validation). */
function optionProblems(query: URLSearchParams, operation: Writer['operation'], verb: string): readonly Problem[] {
  const asked = query.get('fieldManager') ?? ''
  const isNameless = operation === 'Apply' && asked === ''
  const isForced = operation !== 'Apply' && verb === 'patch' && query.has('force')
  return [
    ...(isNameless ? [required('fieldManager', 'is required for apply patch')] : []),
    ...(isForced ? [forbidden('force', 'may not be specified for non-apply patch')] : []),
    ...managerNameProblems('fieldManager', asked),
  ]
}

/** The User-Agent up to its first slash. */
function userAgentName(userAgent = ''): string {
  const name = (userAgent.split('/')[0] ?? '').replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '')
  return name.slice(0, longestManager) || 'unknown'
}

const status = setOfPaths(['status'])
const spec = setOfPaths(['spec'])

function resetFieldsOf(kind: KindStrategy, subresource: string): FieldSet {
  const paths = kind.resetFields?.[subresource]
  if (paths !== undefined) return setOfPaths(paths)
  const part = subresourceOf(kind, subresource)
  if (part?.access === 'update') return part.writes === 'status' ? spec : status
  return subresourceOf(kind, 'status') === undefined ? noFields : status
}

/**
 * The managers after the writer changed `before`, as `FieldManagers`. `given`: what the client sent as managedFields. It
 * may change them, and an empty list, or a list with one empty entry, removes them.
 */
export function updatedManagers(
  before: AnyObject | undefined,
  given: readonly ManagedFieldsEntry[] | undefined,
  write: ManagedWrite,
): FieldManagers {
  return {
    areDispensable: true,
    managedFields: (after, versions) =>
      managedFieldsOf(afterUpdate(before, after, managersBefore(before, given, write), write, versions)),
  }
}

/** As decodeLiveOrNew (apimachinery, managedfields/internal/fieldmanager.go): what cannot be read changes nothing. */
function managersBefore(
  before: AnyObject | undefined,
  given: readonly ManagedFieldsEntry[] | undefined,
  { writer }: ManagedWrite,
): readonly Manager[] {
  const stored = () => managersOf(before?.metadata.managedFields) ?? []
  if (given === undefined || writer.subresource !== '') return stored()
  if (given.length === 0 || (given.length === 1 && Object.keys(given[0] ?? {}).length === 0)) return []
  const asked = managersOf(given)
  return asked === undefined || asked.length === 0 ? stored() : asked
}
