/** The strategy of a kind that a CustomResourceDefinition defines, in one of its versions (registry/customresource/strategy.go). */
import { ApiError } from '../../../../api/api-error.ts'
import type { ReadNotes } from '../../../../api/decode.ts'
import type { AnyObject } from '../../../../api/meta.ts'
import { invalid, mostProblems, type Problem } from '../../../../api/problem.ts'
import { customResource } from '../../../../api/resources.ts'
import {
  type CustomResourceDefinition,
  type DefinedVersion,
  schemaOfVersion,
} from '../../../../api/structural/custom-resource-definition.ts'
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import { isObject, type JsonObject } from '../../../../api/text/json.ts'
import type { KindConversion } from '../../handlers/conversion/conversion-gate.ts'
import { type KindStrategy, replaceStatus, type Subresource } from '../../handlers/strategy.ts'
import { applySchema } from '../../structural/apply-schema.ts'
import { defaultedObject } from '../../structural/defaulting.ts'
import {
  embeddedProblems,
  readMetadata,
  repeatedItemProblems,
  withEmbeddedMetadata,
} from '../../structural/object-problems.ts'
import { hasPrototypeKey } from '../../structural/prototype-keys.ts'
import { propertyOf, prunedObject } from '../../structural/pruning.ts'
import { objectRuleProblems, withUncheckedRules } from '../../structural/rules/object-rules.ts'
import { namesOfPath, valueAtNames } from '../../structural/simple-path.ts'
import { valueProblems } from '../../structural/value-problems.ts'
import { customTable } from './custom-columns.ts'
import { customScale, scaleProblems } from './custom-scale.ts'

/** What of a definition makes its kinds. */
export type Definition = Pick<CustomResourceDefinition, 'metadata' | 'spec' | 'status'>

/** The kind in this version. `ended`: see `DefinedKind`. */
export function customKind(definition: Definition, version: DefinedVersion, ended: AbortSignal): KindStrategy {
  const { spec, status, metadata } = definition
  const { plural, kind } = spec.names
  // Names that conflict are not served; plural and kind do not change once the kind is established.
  const accepted = status?.acceptedNames ?? spec.names
  const { singular = kind.toLowerCase(), listKind, shortNames = [], categories = [] } = accepted
  const schema = schemaOrAny(version)
  const apiVersion = `${spec.group}/${version.name}`
  const conversion = conversionOf(definition)
  const storedVersion = storedVersionOf(spec)
  // A webhook converts what is read and written before it comes here.
  const formVersion = conversion === undefined ? storedVersion : apiVersion
  const hasStatus = version.subresources?.status !== undefined
  const isTerminating = metadata.deletionTimestamp !== undefined
  const content = contentOf(schema, apiVersion)
  const problems = (object: AnyObject) => [
    ...scaleProblems(version.subresources?.scale, object),
    ...embeddedProblems(schema, object),
  ]
  return {
    ...customResource(plural, kind, spec.group, applySchema(schema), {
      version: version.name,
      namespaced: spec.scope === 'Namespaced',
      counted: true,
      ...{ singular, shortNames, categories },
      ...(listKind !== undefined && { listKind }),
      ...(!hasStatus && { countsStatus: true as const }),
      reader: { read: (body, notes) => readCustom(schema, body, notes) },
    }),
    defined: {
      schema,
      stamp: `${metadata.uid} ${metadata.generation} ${version.name}`,
      ended,
      isTerminating,
      ...(conversion && { conversion }),
      ...(version.deprecated && { warning: deprecationOf(version, apiVersion, kind) }),
    },
    needsVersion: true,
    takesAnyFinalizer: true,
    table: customTable(version.additionalPrinterColumns, content.shown),
    selectableFields: (version.selectableFields ?? []).map(({ jsonPath }) => namesOfPath(jsonPath).join('.')),
    subresources: subresourcesOf(version, schema),
    resetFields: hasStatus ? { '': ['status'], status: ['metadata', 'spec'] } : { '': [] },
    form: {
      read: (object) => withApiVersion(object, formVersion),
      show: content.shown,
      fields: {},
    },
    withDefaults: (object) => (defaultedObject(schema, object) ?? refuseDefaults(object)) as AnyObject,
    prepareForCreate: (object) => (hasStatus ? replaceStatus(object, undefined) : object),
    validateCreate: (object) =>
      withUncheckedRules(schema, [
        ...valueProblems(schema, withApiVersion(object, apiVersion), ''),
        ...problems(object),
        ...repeatedItemProblems(schema, object),
      ]),
    validateUpdate(old, now) {
      const before = content.shown(old)
      return withUncheckedRules(schema, [
        ...valueProblems(schema, withApiVersion(now, apiVersion), '', { old: before }),
        ...problems(now),
        ...(repeatedItemProblems(schema, before).length > 0 ? [] : repeatedItemProblems(schema, now)),
      ])
    },
    lengthyProblems: (now, old) =>
      objectRuleProblems(schema, withApiVersion(now, apiVersion), '', old && content.shown(old)),
    warningsOnCreate: ({ metadata: { finalizers } }) => finalizerWarnings(finalizers),
    warningsOnUpdate: (old, { metadata: { finalizers = [] } }) =>
      finalizerWarnings(finalizers.filter((name) => !old.metadata.finalizers?.includes(name))),
    async admitCreate() {
      if (!isTerminating) return {}
      throw new ApiError('MethodNotAllowed', 'create not allowed while custom resource definition is terminating')
    },
  }
}

function storedVersionOf({ group, versions }: Definition['spec']): string {
  return `${group}/${versions.find(({ storage }) => storage)?.name ?? versions[0]?.name}`
}

/** undefined: `apiVersion` is all that differs between versions, or there is one version. */
function conversionOf({ spec }: Definition): KindConversion | undefined {
  const { strategy, webhook } = spec.conversion ?? { strategy: 'None' }
  if (strategy !== 'Webhook' || webhook?.clientConfig === undefined || spec.versions.length < 2) return undefined
  const { caBundle, ...client } = webhook.clientConfig
  const isTrusting = caBundle !== undefined && Buffer.from(caBundle, 'base64').toString('utf8').trim() !== ''
  const schemas = spec.versions.map((version) => [`${spec.group}/${version.name}`, schemaOrAny(version)] as const)
  return {
    definition: `${spec.names.plural}.${spec.group}`,
    client: { ...client, ...(isTrusting && { caBundle }) },
    reviewVersions: webhook.conversionReviewVersions ?? [],
    schemas: new Map(schemas),
    storedVersion: storedVersionOf(spec),
  }
}

function schemaOrAny(version: DefinedVersion): JSONSchemaProps {
  return schemaOfVersion(version) ?? { 'x-kubernetes-preserve-unknown-fields': true }
}

function refuseDefaults({ kind, metadata }: AnyObject): never {
  const because = `${kind} "${metadata.name ?? ''}" would be larger with the defaults of its definition than an object may be`
  throw new ApiError('RequestEntityTooLarge', `Request entity too large: ${because}`)
}

function withApiVersion(object: AnyObject, apiVersion: string): AnyObject {
  return object['apiVersion'] === apiVersion ? object : { ...object, apiVersion }
}

/** Objects as clients see them: of this version, with the defaults of now, without what is no longer specified. */
function contentOf(schema: JSONSchemaProps, apiVersion: string) {
  const known = new WeakMap<AnyObject, AnyObject>()
  return {
    shown(stored: AnyObject): AnyObject {
      const made = known.get(stored)
      if (made !== undefined) return made
      const typed = withApiVersion(stored, apiVersion)
      const pruned = prunedObject(schema, typed)
      // The definition may have got such defaults after the object was stored.
      const result = (defaultedObject(schema, pruned) ?? pruned) as AnyObject
      known.set(stored, result)
      return result
    },
  }
}

/** What a client sends: without unspecified fields, with metadata as all objects have it, and otherwise as it is. */
function readCustom(schema: JSONSchemaProps, body: unknown, notes: ReadNotes): unknown {
  if (!isObject(body)) return undefined
  if (hasPrototypeKey(body)) {
    notes.problems.push(invalid('', '__proto__', 'this key is not allowed'))
    return undefined
  }
  const unknownField = (path: string) => {
    if (notes.unknownFields.length < mostProblems) notes.unknownFields.push(path)
  }
  const pruned = prunedObject(schema, body, { unknownField })
  const { metadata = {}, ...content } = pruned
  const read = readMetadata(metadata ?? {}, 'metadata', notes)
  const object = withEmbeddedMetadata(schema, content, '', notes)
  return notes.problems.length > 0 || !isObject(object) ? undefined : { ...object, metadata: read }
}

function subresourcesOf(
  { subresources }: DefinedVersion,
  schema: JSONSchemaProps,
): { readonly [name: string]: Subresource<AnyObject> } {
  const status: Subresource<AnyObject> = {
    access: 'update',
    writes: 'status',
    change: (stored, wanted) => replaceStatus(stored, wanted.status),
    validateUpdate(old, now) {
      const own = propertyOf(schema, 'status')
      const problems = own === undefined || now.status === undefined ? [] : statusProblems(own, old, now)
      return withUncheckedRules(schema, [...problems, ...scaleProblems(subresources?.scale, now)])
    },
  }
  return {
    ...(subresources?.status !== undefined && { status }),
    ...(subresources?.scale !== undefined && { scale: customScale(subresources.scale) }),
  }
}

function statusProblems(schema: JSONSchemaProps, old: JsonObject, now: JsonObject): readonly Problem[] {
  const earlier = valueAtNames(old, ['status'])
  return valueProblems(schema, now['status'], 'status', earlier === undefined ? undefined : { old: earlier })
}

function deprecationOf({ deprecationWarning }: DefinedVersion, apiVersion: string, kind: string): string {
  return deprecationWarning ?? `${apiVersion} ${kind} is deprecated`
}

const standardFinalizers: readonly string[] = ['orphan', 'foregroundDeletion', 'kubernetes']

function finalizerWarnings(finalizers: readonly string[] = []): readonly string[] {
  return finalizers
    .filter((name) => !name.includes('/') && !standardFinalizers.includes(name))
    .map((name) => {
      const path = name.includes('.') ? ' including a path (/)' : ''
      const why = `prefer a domain-qualified finalizer name${path} to avoid accidental conflicts with other finalizer writers`
      return `metadata.finalizers: "${name}": ${why}`
    })
}
