/**
 * Whether a schema is structural: each value that it names has a type outside of logical branches, which only restrict
 * (ValidateStructural in staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go and complete.go).
 */
import { forbidden, invalid, mostProblems, type Problem, required } from '../problem.ts'
import type { JSONSchemaProps } from './json-schema-props.ts'

type Level = 'root' | 'item' | 'field'

/** What is wrong with the schema at the path `at`, at most `mostProblems`. Its keywords must have been checked. */
export function structuralProblems(at: string, schema: JSONSchemaProps): readonly Problem[] {
  const found: Problem[] = []
  checkSpecified({ found }, at, schema, 'root')
  // As Kubernetes: only branches at the root are compared with what stands outside of them.
  checkBranchesComplete({ found }, schema, schema, at, at)
  return found.slice(0, mostProblems)
}

type Walk = { readonly found: Problem[] }

const unspecified: { readonly [L in Level]: string } = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
}

function checkSpecified(walk: Walk, at: string, schema: JSONSchemaProps, level: Level): void {
  const { found } = walk
  if (found.length >= mostProblems) return
  const { type = '', items, additionalProperties, properties = {} } = schema
  if (type === 'array' && items === undefined) found.push(required(`${at}.items`, 'must be specified'))
  if (isSchema(items)) checkSpecified(walk, `${at}.items`, items, 'item')
  for (const [name, one] of Object.entries(properties)) checkSpecified(walk, `${at}.properties[${name}]`, one, 'field')
  if (additionalProperties !== undefined && level === 'root') {
    found.push(forbidden(`${at}.additionalProperties`, 'must not be used at the root'))
  }
  if (isSchema(additionalProperties)) checkSpecified(walk, `${at}.additionalProperties`, additionalProperties, 'field')
  found.push(...extensionProblems(at, schema), ...typeProblems(at, schema, level))
  checkBranches(walk, at, schema, isIntOrString(schema.anyOf), isIntOrString(schema.allOf?.[0]?.anyOf))
  found.push(...objectMetaProblems(at, schema, level))
}

function extensionProblems(at: string, schema: JSONSchemaProps): readonly Problem[] {
  if (!schema['x-kubernetes-int-or-string']) return []
  return (['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const)
    .filter((name) => schema[name])
    .map((name) => invalid(`${at}.${name}`, true, 'must be false if x-kubernetes-int-or-string is true'))
}

function typeProblems(at: string, schema: JSONSchemaProps, level: Level): readonly Problem[] {
  const { type = '', additionalProperties } = schema
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true
  const isAny = schema['x-kubernetes-int-or-string'] || schema['x-kubernetes-preserve-unknown-fields']
  const embedded = 'must be object if x-kubernetes-embedded-resource is true'
  const field = `${at}.type`
  return [
    ...(isEmbedded && type !== 'object'
      ? [type === '' ? required(field, embedded) : invalid(field, type, embedded)]
      : type === '' && !isAny
        ? [required(field, unspecified[level])]
        : []),
    ...(isEmbedded && additionalProperties !== undefined
      ? [forbidden(`${at}.additionalProperties`, 'must not be used if x-kubernetes-embedded-resource is set')]
      : []),
    ...(level === 'root' && type !== '' && type !== 'object'
      ? [invalid(field, type, 'must be object at the root')]
      : []),
  ]
}

/** What the server sets of every object is not restricted, but for its name. */
function objectMetaProblems(at: string, schema: JSONSchemaProps, level: Level): readonly Problem[] {
  const properties = new Map(Object.entries(schema.properties ?? {}))
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true
  const isObjectWithMeta = level === 'root' || isEmbedded
  const mustBe = (name: string, type: string) => {
    const own = properties.get(name)
    if (!isObjectWithMeta || own === undefined || own.type === type) return []
    const what = type === 'object' ? 'must be object' : 'must be string'
    return [invalid(`${at}.properties[${name}].type`, own.type ?? '', what)]
  }
  const metadata = properties.get('metadata')
  const implied = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
  const isEmpty = isEmbedded && !schema['x-kubernetes-preserve-unknown-fields'] && properties.size === 0
  return [
    ...mustBe('kind', 'string'),
    ...mustBe('apiVersion', 'string'),
    ...mustBe('metadata', 'object'),
    ...(level === 'root' && metadata !== undefined && restrictsMore(metadata)
      ? [forbidden(`${at}.properties[metadata]`, implied)]
      : []),
    ...(isEmpty
      ? [
          required(
            `${at}.properties`,
            'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
          ),
        ]
      : []),
  ]
}

function restrictsMore({ type: _, default: __, properties = {}, ...others }: JSONSchemaProps): boolean {
  const names = Object.keys(properties)
  return names.some((name) => name !== 'name' && name !== 'generateName') || Object.keys(others).length > 0
}

/** `anyOf: [{type: integer}, {type: string}]`: the only types that a branch may have. */
function isIntOrString(anyOf: JSONSchemaProps['anyOf']): boolean {
  return JSON.stringify(anyOf) === '[{"type":"integer"},{"type":"string"}]'
}

function checkBranches(walk: Walk, at: string, schema: JSONSchemaProps, skipAnyOf: boolean, skipFirst: boolean): void {
  const { anyOf = [], allOf = [], oneOf = [], not } = schema
  if (!skipAnyOf) for (const [index, one] of anyOf.entries()) checkBranch(walk, `${at}.anyOf[${index}]`, one)
  for (const [index, one] of allOf.entries()) checkBranch(walk, `${at}.allOf[${index}]`, one, skipFirst && index === 0)
  for (const [index, one] of oneOf.entries()) checkBranch(walk, `${at}.oneOf[${index}]`, one)
  if (not !== undefined) checkBranch(walk, `${at}.not`, not)
}

const mustBeEmpty = 'must be empty to be structural'
const mustBeUndefined = 'must be undefined to be structural'
const mustBeFalse = 'must be false to be structural'

/** What describes a value, which a branch may only restrict. */
const forbiddenInBranches = [
  ['type', mustBeEmpty],
  ['additionalProperties', mustBeUndefined],
  ['default', mustBeUndefined],
  ['title', mustBeEmpty],
  ['description', mustBeEmpty],
  ['nullable', mustBeFalse],
  ['x-kubernetes-preserve-unknown-fields', mustBeFalse],
  ['x-kubernetes-embedded-resource', mustBeFalse],
  ['x-kubernetes-int-or-string', mustBeFalse],
  ['x-kubernetes-list-map-keys', mustBeEmpty],
  ['x-kubernetes-list-type', mustBeUndefined],
  ['x-kubernetes-map-type', mustBeUndefined],
  ['x-kubernetes-validations', mustBeEmpty],
] as const

function checkBranch(walk: Walk, at: string, branch: JSONSchemaProps, skipAnyOf = false): void {
  const { found } = walk
  if (found.length >= mostProblems) return
  checkBranches(walk, at, branch, skipAnyOf, false)
  const { items, properties = {} } = branch
  if (isSchema(items)) checkBranch(walk, `${at}.items`, items)
  for (const [name, one] of Object.entries(properties)) checkBranch(walk, `${at}.properties[${name}]`, one)
  for (const [keyword, message] of forbiddenInBranches) {
    if (isSet(branch[keyword], message)) found.push(forbidden(`${at}.${keyword}`, message))
  }
  if (Object.hasOwn(properties, 'metadata')) {
    found.push(forbidden(`${at}.properties[metadata]`, 'must not be specified in a nested context'))
  }
}

function isSet(value: unknown, message: string): boolean {
  if (value === undefined || value === false) return false
  return message === mustBeUndefined || (value !== '' && !(Array.isArray(value) && value.length === 0))
}

/** Whatever a branch restricts is specified outside of it. `from`: the path of the branch. */
function checkBranchesComplete(
  walk: Walk,
  { not, allOf = [], anyOf = [], oneOf = [] }: JSONSchemaProps,
  specified: JSONSchemaProps,
  at: string,
  from: string,
): void {
  if (not !== undefined) checkBranchComplete(walk, not, specified, at, `${from}.not`)
  for (const [name, branches] of Object.entries({ allOf, anyOf, oneOf })) {
    for (const [index, one] of branches.entries())
      checkBranchComplete(walk, one, specified, at, `${from}.${name}[${index}]`)
  }
}

function checkBranchComplete(
  walk: Walk,
  branch: JSONSchemaProps,
  specified: JSONSchemaProps | undefined,
  at: string,
  from: string,
): void {
  const { found } = walk
  if (found.length >= mostProblems) return
  if (specified === undefined) {
    found.push(required(at, `because it is defined in ${from}`))
    return
  }
  checkBranchesComplete(walk, branch, specified, at, from)
  const { items, properties = {} } = specified
  if (isSchema(branch.items)) {
    checkBranchComplete(walk, branch.items, isSchema(items) ? items : undefined, `${at}.items`, `${from}.items`)
  }
  for (const [name, one] of Object.entries(branch.properties ?? {})) {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined
    checkBranchComplete(walk, one, own, `${at}.properties[${name}]`, `${from}.properties[${name}]`)
  }
}

function isSchema(value: JSONSchemaProps['items'] | JSONSchemaProps['additionalProperties']): value is JSONSchemaProps {
  return typeof value === 'object' && !Array.isArray(value)
}
