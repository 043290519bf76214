/**
 * What is wrong with the keywords of a schema, each schema in it by itself (ValidateCustomResourceDefinitionOpenAPISchema in
 * staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go). Patterns and rules of CEL are compiled
 * elsewhere.
 */
import { forbidden, invalid, mostProblems, notSupported, type Problem, required } from '../problem.ts'
import type { JSONSchemaProps, ValidationRule } from './json-schema-props.ts'

/** At most `mostProblems`. `at`: the path of the schema of a whole object. */
export function keywordProblems(at: string, schema: JSONSchemaProps): readonly Problem[] {
  const found: Problem[] = []
  walk(found, at, schema, { isRoot: true })
  return found.slice(0, mostProblems)
}

type Place = {
  readonly isRoot?: true
  /** In the metadata, kind or apiVersion of an object. */
  readonly isInMeta?: true
  /** Why no default may stand here. */
  readonly noDefaults?: string
}

const metaFields: readonly string[] = ['metadata', 'kind', 'apiVersion']

function walk(found: Problem[], at: string, schema: JSONSchemaProps, place: Place): void {
  if (found.length >= mostProblems) return
  found.push(...unsupportedKeywords(at, schema, place), ...listProblems(at, schema), ...mapTypeProblems(at, schema))
  for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    found.push(...ruleProblems(`${at}.x-kubernetes-validations[${index}]`, rule))
  }
  for (const [path, inner, innerPlace] of innerSchemas(schema, place)) walk(found, `${at}${path}`, inner, innerPlace)
}

type Inner = readonly [path: string, schema: JSONSchemaProps, place: Place]

function* innerSchemas(schema: JSONSchemaProps, place: Place): Generator<Inner> {
  const { isRoot, ...below } = place
  const { additionalProperties, items, not } = schema
  if (isSchema(additionalProperties)) {
    const noDefaults = 'inside additionalProperties applying to object metadata'
    yield ['.additionalProperties', additionalProperties, below.isInMeta ? { ...below, noDefaults } : below]
  }
  yield* propertySchemas(schema, below, isRoot === true)
  if (not !== undefined) yield ['.not', not, below]
  for (const [path, one] of listedSchemas(schema)) yield [path, one, below]
  if (isSchema(items)) yield ['.items', items, below]
  for (const [name, one] of Object.entries(schema.dependencies ?? {}))
    if (isSchema(one)) yield [`.dependencies[${name}]`, one, below]
}

function* propertySchemas(schema: JSONSchemaProps, below: Place, isRoot: boolean): Generator<Inner> {
  const isObjectWithMeta = isRoot || schema['x-kubernetes-embedded-resource']
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    const isMeta = isObjectWithMeta && metaFields.includes(name)
    const noDefaults = isMeta && isRoot ? { noDefaults: `in top-level ${name}` } : {}
    yield [`.properties[${name}]`, one, isMeta ? { ...below, isInMeta: true, ...noDefaults } : below]
  }
}

function* listedSchemas(schema: JSONSchemaProps): Generator<readonly [path: string, schema: JSONSchemaProps]> {
  for (const keyword of ['allOf', 'oneOf', 'anyOf'] as const) {
    for (const [index, one] of (schema[keyword] ?? []).entries()) yield [`.${keyword}[${index}]`, one]
  }
  for (const [name, one] of Object.entries(schema.definitions ?? {})) yield [`.definitions[${name}]`, one]
}

function isSchema(value: JSONSchemaProps | readonly unknown[] | boolean | undefined): value is JSONSchemaProps {
  return typeof value === 'object' && !Array.isArray(value)
}

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string']
const unsupported = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'] as const

function unsupportedKeywords(at: string, schema: JSONSchemaProps, { isInMeta, noDefaults }: Place): readonly Problem[] {
  const { type = '', items, properties = {}, additionalProperties } = schema
  const isMixed =
    Object.keys(properties).length > 0 && additionalProperties !== undefined && additionalProperties !== true
  const preserves = schema['x-kubernetes-preserve-unknown-fields']
  return [
    ...(type === '' || types.includes(type) ? [] : [notSupported(`${at}.type`, type, types)]),
    ...(schema.default === undefined || noDefaults === undefined
      ? []
      : [forbidden(`${at}.default`, `must not be set ${noDefaults}`)]),
    ...unsupported
      .filter((keyword) => isGiven(schema[keyword]))
      .map((keyword) => forbidden(`${at}.${keyword}`, `${keyword} is not supported`)),
    ...(type === 'null' ? [forbidden(`${at}.type`, 'type cannot be set to null, use nullable as an alternative')] : []),
    ...(Array.isArray(items) ? [forbidden(`${at}.items`, 'items must be a schema object and not an array')] : []),
    ...(isInMeta && schema['x-kubernetes-embedded-resource']
      ? [forbidden(`${at}.x-kubernetes-embedded-resource`, 'must not be used inside of resource meta')]
      : []),
    ...(schema.uniqueItems
      ? [
          forbidden(
            `${at}.uniqueItems`,
            'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
          ),
        ]
      : []),
    ...(isMixed
      ? [forbidden(`${at}.additionalProperties`, 'additionalProperties and properties are mutual exclusive')]
      : []),
    ...(preserves === false
      ? [invalid(`${at}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined')]
      : []),
  ]
}

function isGiven(value: unknown): boolean {
  if (value === undefined || value === '') return false
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0
}

const mapTypes = ['atomic', 'granular']
const listTypes = ['atomic', 'set', 'map']

function mapTypeProblems(at: string, { type, 'x-kubernetes-map-type': mapType }: JSONSchemaProps): readonly Problem[] {
  if (mapType === undefined) return []
  return [
    ...typeFor(at, type, 'object', 'x-kubernetes-map-type'),
    ...(mapTypes.includes(mapType) ? [] : [notSupported(`${at}.x-kubernetes-map-type`, mapType, mapTypes)]),
  ]
}

function typeFor(at: string, type = '', wanted: string, keyword: string): readonly Problem[] {
  if (type === wanted) return []
  const message = `must be ${wanted} if ${keyword} is specified`
  return [type === '' ? required(`${at}.type`, message) : invalid(`${at}.type`, type, message)]
}

function listProblems(at: string, schema: JSONSchemaProps): readonly Problem[] {
  const { 'x-kubernetes-list-type': listType, 'x-kubernetes-list-map-keys': keys = [] } = schema
  const field = `${at}.x-kubernetes-list-type`
  const onlyMaps = 'must be map if x-kubernetes-list-map-keys is non-empty'
  if (listType === undefined) return keys.length === 0 ? [] : [required(field, onlyMaps)]
  const ofList = typeFor(at, schema.type, 'array', 'x-kubernetes-list-type')
  return [
    ...ofList,
    ...(ofList.length === 0 && listType === 'set' ? setItemProblems(`${at}.items`, schema) : []),
    ...(listTypes.includes(listType) ? [] : [notSupported(field, listType, listTypes)]),
    ...(keys.length > 0 && listType !== 'map' ? [invalid(field, listType, onlyMaps)] : []),
    ...(listType === 'map' ? mapListProblems(at, schema, keys) : []),
    ...((listType === 'map' || listType === 'set') && isSchema(schema.items) && schema.items.nullable
      ? [forbidden(`${at}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${listType}`)]
      : []),
  ]
}

/** Items of a set are compared whole. */
function setItemProblems(at: string, { items }: JSONSchemaProps): readonly Problem[] {
  if (!isSchema(items)) return []
  const [keyword, implied] =
    items.type === 'array'
      ? (['x-kubernetes-list-type', 'atomic'] as const)
      : (['x-kubernetes-map-type', 'granular'] as const)
  const isAtomic = (items.type !== 'array' && items.type !== 'object') || (items[keyword] ?? implied) === 'atomic'
  const message = 'must be atomic as item of a list with x-kubernetes-list-type=set'
  return isAtomic ? [] : [invalid(`${at}.${keyword}`, items[keyword] ?? null, message)]
}

/** Items of a map are identified by the values of their keys. */
function mapListProblems(at: string, { items }: JSONSchemaProps, keys: readonly string[]): readonly Problem[] {
  const field = `${at}.x-kubernetes-list-map-keys`
  const noKeys = keys.length === 0 ? [required(field, 'must not be empty if x-kubernetes-list-type is map')] : []
  if (!isSchema(items)) {
    const isMissing = items === undefined
    return [
      ...noKeys,
      ...(isMissing ? [required(`${at}.items`, 'must have a schema if x-kubernetes-list-type is map')] : []),
    ]
  }
  if (items.type !== 'object') {
    const message = "must be object if parent array's x-kubernetes-list-type is map"
    return [...noKeys, invalid(`${at}.items.type`, items.type ?? '', message)]
  }
  return [
    ...noKeys,
    ...keys.flatMap((key) => keyProblems(at, items, key, keys)),
    ...(new Set(keys).size === keys.length ? [] : [invalid(field, keys, 'must not contain duplicate entries')]),
  ]
}

function keyProblems(at: string, items: JSONSchemaProps, key: string, keys: readonly string[]): readonly Problem[] {
  const { properties = {}, required: mandatory = [] } = items
  const property = Object.hasOwn(properties, key) ? properties[key] : undefined
  if (property === undefined) {
    return [invalid(`${at}.x-kubernetes-list-map-keys`, keys, 'entries must all be names of item properties')]
  }
  const field = `${at}.items.properties[${key}]`
  const isKey = 'this property is in x-kubernetes-list-map-keys, so it'
  return [
    ...(property.type === 'array' || property.type === 'object'
      ? [
          invalid(
            `${field}.type`,
            property.type,
            "must be a scalar type if parent array's x-kubernetes-list-type is map",
          ),
        ]
      : []),
    ...(mandatory.includes(key) || property.default !== undefined
      ? []
      : [required(`${field}.default`, `${isKey} must have a default or be a required property`)]),
    ...(property.nullable ? [forbidden(`${field}.nullable`, `${isKey} cannot be nullable`)] : []),
  ]
}

const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']
const hasNewline = (text: string) => /[\r\n]/.test(text)

function ruleProblems(at: string, one: ValidationRule): readonly Problem[] {
  const { reason, messageExpression = '', fieldPath = '' } = one
  return [
    ...messageProblems(at, one),
    ...(messageExpression !== '' && messageExpression.trim() === ''
      ? [required(`${at}.messageExpression`, 'messageExpression must be non-empty if specified')]
      : []),
    ...(reason === undefined || reasons.includes(reason) ? [] : [notSupported(`${at}.reason`, reason, reasons)]),
    ...(fieldPath !== '' && fieldPath.trim() === ''
      ? [invalid(`${at}.fieldPath`, fieldPath, 'fieldPath must be non-empty if specified')]
      : []),
    ...(hasNewline(fieldPath) ? [invalid(`${at}.fieldPath`, fieldPath, 'fieldPath must not contain line breaks')] : []),
  ]
}

function messageProblems(at: string, { rule, message = '' }: ValidationRule): readonly Problem[] {
  const [plainRule, plain, field] = [rule.trim(), message.trim(), `${at}.message`]
  if (plainRule === '') return [required(`${at}.rule`, 'rule is not specified')]
  if (message !== '' && plain === '') return [invalid(field, message, 'message must be non-empty if specified')]
  if (hasNewline(plain)) return [invalid(field, message, 'message must not contain line breaks')]
  if (!hasNewline(plainRule) || plain !== '') return []
  return [required(field, 'message must be specified if rule contains line breaks')]
}
