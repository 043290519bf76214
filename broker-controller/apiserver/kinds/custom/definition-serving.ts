/** Why a definition cannot be served here: its group, its selectable fields. */

import { duplicate, invalid, type Problem, required } from '../../../../api/problem.ts'
import {
  type CustomResourceDefinition,
  type DefinedVersion,
  schemaOfVersion,
} from '../../../../api/structural/custom-resource-definition.ts'
import { approvalProblems } from '../../../../api/structural/definition-conditions.ts'
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import { tooMany } from '../../../../api/validation/endpoints-validation.ts'
import { propertyOf } from '../../structural/pruning.ts'
import { namesOfPath, parseObjectPath } from '../../structural/simple-path.ts'
import { ownGroupProblems } from '../registration/own-groups.ts'

export function servingProblems({ metadata, spec }: CustomResourceDefinition): readonly Problem[] {
  return [
    ...ownGroupProblems('spec.group', spec.group),
    ...approvalProblems(metadata, spec.group),
    ...spec.versions.flatMap((version, index) =>
      selectableProblems(`spec.versions[${index}].selectableFields`, version),
    ),
  ]
}

const mostSelectable = 8
const scalars: readonly string[] = ['string', 'boolean', 'integer']

function selectableProblems(at: string, version: DefinedVersion): readonly Problem[] {
  const { selectableFields = [] } = version
  const schema = schemaOfVersion(version)
  if (schema === undefined) return []
  const paths = selectableFields.map(({ jsonPath }) => jsonPath)
  return [
    ...paths.flatMap((path, index) => [
      ...selectableProblem(`${at}[${index}].jsonPath`, path, schema),
      ...(paths.indexOf(path) < index ? [duplicate(`${at}[${index}].jsonPath`, path)] : []),
    ]),
    ...tooMany(at, new Set(paths).size, mostSelectable),
  ]
}

function selectableProblem(field: string, path: string, schema: JSONSchemaProps): readonly Problem[] {
  if (path === '') return [required(field)]
  const isPath = path.startsWith('.') && !/[[\]]/.test(path) && parseObjectPath(path) !== undefined
  if (!isPath) return [invalid(field, path, 'is an invalid path: it must be names with a dot before each')]
  const names = namesOfPath(path)
  if (names[0] === 'metadata') return [invalid(field, path, 'must not point to fields in metadata')]
  let at: JSONSchemaProps | undefined = schema
  for (const name of names) at = at && propertyOf(at, name)
  if (at === undefined) return [invalid(field, path, 'is an invalid path: does not refer to a valid field')]
  if (scalars.includes(at.type ?? '')) return []
  const allowed =
    'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
  return [invalid(field, path, allowed)]
}
