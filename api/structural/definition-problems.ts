/**
 * What is wrong with the definition of a kind (ValidateCustomResourceDefinition in
 * staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go). Kubernetes moves what all versions have
 * alike to the top before it validates; here the path of a problem is the one that its author wrote.
 */
import { dns1035LabelProblem, dnsSubdomainProblem } from '../names.ts'
import { forbidden, invalid, mostProblems, notSupported, type Problem, required } from '../problem.ts'
import { problemsWith } from '../validation/metadata-validation.ts'
import {
  type CustomResourceDefinition,
  type DefinedColumn,
  type DefinedSubresources,
  type DefinedVersion,
  type DefinitionNames,
  type DefinitionSpec,
  schemaOfVersion,
} from './custom-resource-definition.ts'
import type { JSONSchemaProps } from './json-schema-props.ts'
import { keywordProblems } from './keyword-problems.ts'
import { structuralProblems } from './structural-problems.ts'

/** Problems of a definition with its defaults, at most `mostProblems`. Patterns, rules and conversions are checked elsewhere. */
export function definitionProblems({ metadata, spec, status }: CustomResourceDefinition): readonly Problem[] {
  const name = `${spec.names.plural}.${spec.group}`
  return [
    ...(metadata.name === name
      ? []
      : [invalid('metadata.name', metadata.name ?? '', 'must be spec.names.plural+"."+spec.group')]),
    ...specProblems(spec),
    ...storedVersionProblems(status?.storedVersions ?? [], spec.versions),
    ...(spec.preserveUnknownFields
      ? [
          invalid(
            'spec.preserveUnknownFields',
            true,
            'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
          ),
        ]
      : []),
  ].slice(0, mostProblems)
}

/** Where objects are stored, and what their kind is, stays. `isEstablished`: objects of the kind may exist. */
export function definitionChangeProblems(
  old: DefinitionSpec,
  now: DefinitionSpec,
  isEstablished: boolean,
): readonly Problem[] {
  const fixed = (field: string, before: string, after: string) =>
    before === after ? [] : [invalid(field, after, 'field is immutable')]
  return [
    ...(isEstablished
      ? [...fixed('spec.scope', old.scope, now.scope), ...fixed('spec.names.kind', old.names.kind, now.names.kind)]
      : []),
    ...fixed('spec.group', old.group, now.group),
    ...fixed('spec.names.plural', old.names.plural, now.names.plural),
  ]
}

const scopes = ['Cluster', 'Namespaced']

function specProblems({ group, scope, names, versions }: DefinitionSpec): readonly Problem[] {
  const distinct = new Set(versions.map(({ name }) => name))
  const text = `${versions.length} versions`
  return [
    ...groupProblems(group),
    ...(scope === ''
      ? [required('spec.scope')]
      : scopes.includes(scope)
        ? []
        : [notSupported('spec.scope', scope, scopes)]),
    ...versions.flatMap((version, index) => versionProblems(`spec.versions[${index}]`, version)),
    ...(distinct.size === versions.length ? [] : [invalid('spec.versions', text, 'must contain unique version names')]),
    ...(versions.filter(({ storage }) => storage).length === 1
      ? []
      : [invalid('spec.versions', text, 'must have exactly one version marked as storage version')]),
    ...(['plural', 'singular', 'kind', 'listKind'] as const)
      .filter((field) => !names[field])
      .map((field) => required(`spec.names.${field}`)),
    ...namesProblems('spec.names', names),
  ]
}

function groupProblems(group: string): readonly Problem[] {
  if (group === '') return [required('spec.group')]
  const wrong = problemsWith('spec.group', group, dnsSubdomainProblem)
  if (wrong.length > 0 || group.includes('.')) return wrong
  return [invalid('spec.group', group, 'should be a domain with at least one dot')]
}

/** Also of `status.acceptedNames`, which may be empty. */
export function namesProblems(at: string, names: Partial<DefinitionNames>): readonly Problem[] {
  const { plural = '', singular = '', kind = '', listKind = '', shortNames = [], categories = [] } = names
  const label = (field: string, name: string) => problemsWith(`${at}.${field}`, name, dns1035LabelProblem)
  const mixed = (field: string, name: string) => {
    const problem = name === '' ? undefined : dns1035LabelProblem(name.toLowerCase())
    const message = `may have mixed case, but should otherwise match: ${problem}`
    return problem === undefined ? [] : [invalid(`${at}.${field}`, name, message)]
  }
  return [
    ...(plural === '' ? [] : label('plural', plural)),
    ...(singular === '' ? [] : label('singular', singular)),
    ...mixed('kind', kind),
    ...mixed('listKind', listKind),
    ...shortNames.flatMap((name, index) => label(`shortNames[${index}]`, name)),
    ...(kind !== '' && kind === listKind
      ? [invalid(`${at}.listKind`, listKind, 'kind and listKind may not be the same')]
      : []),
    ...categories.flatMap((name, index) => label(`categories[${index}]`, name)),
  ]
}

const longestWarning = 256

function versionProblems(at: string, version: DefinedVersion): readonly Problem[] {
  const { name, deprecated, deprecationWarning: warning, subresources = {}, additionalPrinterColumns = [] } = version
  const schema = schemaOfVersion(version)
  const field = `${at}.deprecationWarning`
  const schemaAt = `${at}.schema.openAPIV3Schema`
  return [
    ...problemsWith(`${at}.name`, name, dns1035LabelProblem),
    ...(warning !== undefined && !deprecated
      ? [invalid(field, warning, 'can only be set for deprecated versions')]
      : warning === ''
        ? [invalid(field, warning, 'must not be an empty string')]
        : (warning?.length ?? 0) > longestWarning
          ? [invalid(field, warning, `must be <= ${longestWarning} characters long`)]
          : []),
    ...(schema === undefined
      ? [required(schemaAt, 'schemas are required')]
      : schemaProblems(schemaAt, schema, subresources.status !== undefined)),
    ...scaleProblems(`${at}.subresources.scale`, subresources.scale),
    ...additionalPrinterColumns.flatMap((one, index) =>
      columnProblems(`${at}.additionalPrinterColumns[${index}]`, one),
    ),
  ]
}

/** What would restrict the status from outside of `properties.status` is lost where the status is written alone. */
const besideStatus: ReadonlySet<string> = new Set([
  ...['description', 'type', 'format', 'title', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum'],
  ...['maxLength', 'minLength', 'pattern', 'maxItems', 'minItems', 'uniqueItems', 'multipleOf', 'required', 'items'],
  ...['properties', 'externalDocs', 'example', 'x-kubernetes-preserve-unknown-fields', 'x-kubernetes-validations'],
])

function schemaProblems(at: string, schema: JSONSchemaProps, hasStatus: boolean): readonly Problem[] {
  const other = Object.keys(schema).find((keyword) => !besideStatus.has(keyword))
  const allowed = `only ${[...besideStatus].join(' ')} fields are allowed at the root of the schema if the status subresource is enabled`
  return [
    ...(hasStatus && other !== undefined ? [invalid(at, other, allowed)] : []),
    ...(schema.nullable ? [forbidden(`${at}.nullable`, 'nullable cannot be true at the root')] : []),
    ...structuralProblems(at, schema),
    ...keywordProblems(at, schema),
  ]
}

function scaleProblems(at: string, scale: DefinedSubresources['scale']): readonly Problem[] {
  if (scale === undefined) return []
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = scale
  const below = (field: string, path: string, roots: readonly string[], where: string) => {
    const wrong = simplePathProblems(`${at}.${field}`, path)
    if (wrong.length > 0 || roots.some((root) => path.startsWith(root))) return wrong
    return [invalid(`${at}.${field}`, path, `should be a json path under ${where}`)]
  }
  return [
    ...below('specReplicasPath', specReplicasPath, ['.spec.'], '.spec'),
    ...below('statusReplicasPath', statusReplicasPath, ['.status.'], '.status'),
    ...(labelSelectorPath === ''
      ? []
      : below('labelSelectorPath', labelSelectorPath, ['.spec.', '.status.'], 'either .spec or .status')),
  ]
}

function simplePathProblems(field: string, path: string): readonly Problem[] {
  if (path === '') return [required(field)]
  return path.startsWith('.') ? [] : [invalid(field, path, 'must be a simple json path starting with .')]
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string']
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password']

function columnProblems(at: string, { name, type, format = '', jsonPath }: DefinedColumn): readonly Problem[] {
  const oneOfTypes = `must be one of ${columnTypes.join()}`
  return [
    ...(name === '' ? [required(`${at}.name`)] : []),
    ...(type === ''
      ? [required(`${at}.type`, oneOfTypes)]
      : columnTypes.includes(type)
        ? []
        : [invalid(`${at}.type`, type, oneOfTypes)]),
    ...(format === '' || columnFormats.includes(format)
      ? []
      : [invalid(`${at}.format`, format, `must be one of ${columnFormats.join()}`)]),
    ...simplePathProblems(`${at}.jsonPath`, jsonPath),
  ]
}

function storedVersionProblems(stored: readonly string[], versions: readonly DefinedVersion[]): readonly Problem[] {
  const field = 'status.storedVersions'
  if (stored.length === 0) return [invalid(field, stored, 'must have at least one stored version')]
  return [
    ...versions
      .filter(({ name, storage }) => storage && !stored.includes(name))
      .map(({ name }) => invalid(field, stored, `must have the storage version ${name}`)),
    ...stored.flatMap((name, index) =>
      versions.some((version) => version.name === name)
        ? []
        : [invalid(`${field}[${index}]`, name, 'must appear in spec.versions')],
    ),
  ]
}
