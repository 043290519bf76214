/** The refusal of an apply that changes fields of other managers (managedfields/internal/conflict.go). */
import { ApiError } from '../../../api/api-error.ts'
import { clipped, mostProblems } from '../../../api/problem.ts'
import { countMembers, type FieldSet, pathsOfMembers } from './field-set.ts'
import type { Manager } from './managed-entries.ts'

export type ContestedFields = { readonly manager: Manager; readonly fields: FieldSet }

/** A path has names that clients chose. */
const longestPath = 1024

/** 409 with a cause for each field, up to as many as other errors name. */
export function applyConflict(contested: readonly ContestedFields[]): ApiError {
  const count = contested.reduce((sum, { fields }) => sum + countMembers(fields), 0)
  let left = mostProblems
  const groups = contested.map(({ manager, fields }) => {
    const paths = pathsOfMembers(fields, left).map((path) => clipped(path, longestPath))
    left -= paths.length
    return { who: printed(manager), paths }
  })
  const causes = groups.flatMap(({ who, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${who}`, field })),
  )
  const [only] = causes
  if (count === 1 && only !== undefined) {
    return new ApiError('Conflict', `Apply failed with 1 conflict: ${only.message}: ${only.field}`, { causes })
  }
  const lines = groups
    .filter(({ paths }) => paths.length > 0)
    .toSorted((a, b) => (a.who < b.who ? -1 : 1))
    .flatMap(({ who, paths }) => [`conflicts with ${who}:`, ...paths.map((path) => `- ${path}`)])
  const more = count > causes.length ? [`and ${count - causes.length} more`] : []
  return new ApiError('Conflict', `Apply failed with ${count} conflicts: ${[...lines, ...more].join('\n')}`, { causes })
}

/** `"kubectl"`; of an update with its version, and its time where it is known. */
function printed({ manager, operation, apiVersion, subresource, time }: Manager): string {
  const name = JSON.stringify(manager)
  const who = subresource === '' ? name : `${name} with subresource ${JSON.stringify(subresource)}`
  if (operation === 'Apply') return who
  return time === undefined ? `${who} using ${apiVersion}` : `${who} using ${apiVersion} at ${time}`
}
