/**
 * apiextensions.k8s.io/v1 CustomResourceDefinition (staging/src/k8s.io/apiextensions-apiserver/pkg/registry/
 * customresourcedefinition/strategy.go, pkg/apis/apiextensions/validation/validation.go).
 */
import { ApiError } from '../../../../api/api-error.ts'
import type { Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import {
  type CustomResourceDefinition,
  type DefinedConversion,
  type DefinitionSpec,
  schemaOfVersion,
} from '../../../../api/structural/custom-resource-definition.ts'
import type { DefinitionStatus } from '../../../../api/structural/definition-conditions.ts'
import { definitionChangeProblems, definitionProblems } from '../../../../api/structural/definition-problems.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import type { TableOf } from '../../handlers/cells.ts'
import { tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, type ResourceNeeds, statusSubresource } from '../../handlers/strategy.ts'
import { ruleProblems } from '../../structural/rules/rule-problems.ts'
import { schemaProblems } from '../../structural/schema-problems.ts'
import { parseObjectPath } from '../../structural/simple-path.ts'
import { addProblems } from '../../structural/validation-run.ts'
import { conversionProblems } from './definition-conversion.ts'
import { servingProblems } from './definition-serving.ts'

const definitionTable: TableOf<CustomResourceDefinition> = {
  columns: tableColumns('Name', 'Created At'),
  cells: ({ metadata }) => [metadata.name ?? '', metadata.creationTimestamp ?? ''],
}

/** As many as a fleet of small machines has the memory for; of all CustomResourceDefinitions together. */
const mostDefinitions = 1_000
const mostSchemaBytes = 64 * 1024 * 1024

export const customResourceDefinitionStrategy: KindStrategy<CustomResourceDefinition> = {
  ...resources.customresourcedefinitions,
  takesAnyFinalizer: true,
  needsVersion: true,
  table: definitionTable,
  selectableFields: [],
  // AlertmanagerConfig in the bundle of prometheus-operator has 16,613.
  mostValues: 65_536,
  subresources: { status: { ...statusSubresource, validateUpdate: (_, now) => storedVersionProblems(now) } },
  resetFields: { '': ['status'], status: ['metadata', 'spec'] },
  emptyStatus: { conditions: [], acceptedNames: { plural: '', kind: '' }, storedVersions: [] },
  withDefaults: ({ spec, status, ...definition }) => ({
    ...definition,
    spec: withSpecDefaults(spec),
    ...(status !== undefined && { status: withWholeConditions(status) }),
  }),
  prepareForCreate: ({ status: _, ...definition }) => withStoredVersion(definition),
  prepareForUpdate: (_, now) => withStoredVersion(now),
  validateCreate: (definition) => [
    ...definitionProblems(definition),
    ...conversionProblems(definition, undefined),
    ...contentProblems(definition),
  ],
  validateUpdate(old, now) {
    const isEstablished = old.status?.conditions?.some(
      ({ type, status }) => type === 'Established' && status === 'True',
    )
    // Its status and metadata are written often, and its schemas may be large.
    if (equalJSON(old.spec, now.spec)) return storedVersionProblems(now)
    return [
      ...definitionProblems(now),
      ...conversionProblems(now, old),
      ...definitionChangeProblems(old.spec, now.spec, isEstablished ?? false),
      ...contentProblems(now),
    ]
  },
  lengthyProblems: definedRuleProblems,
  warningsOnCreate: columnWarnings,
  warningsOnUpdate: (_, now) => columnWarnings(now),
  async admitCreate(definition, _, needs) {
    await refuseMore(needs, definition)
    return {}
  },
  async admitUpdate(definition, needs, { old, subresource }) {
    if (subresource === '' && definitionBytes(definition) > definitionBytes(old))
      await refuseMore(needs, definition, old)
  },
}

function withSpecDefaults({ names, conversion, ...spec }: DefinitionSpec): DefinitionSpec {
  const { kind, singular, listKind } = names
  return {
    ...spec,
    names: {
      ...names,
      singular: singular || kind.toLowerCase(),
      listKind: listKind || (kind === '' ? '' : `${kind}List`),
    },
    conversion: withConversionDefaults(conversion),
  }
}

/** Clients may leave out the type and the status of a condition, which are then empty. */
function withWholeConditions(status: DefinitionStatus): DefinitionStatus {
  const { conditions } = status
  if (conditions === undefined) return status
  return {
    ...status,
    conditions: conditions.map((one) => ({ ...one, type: one.type ?? '', status: one.status ?? '' })),
  }
}

function withConversionDefaults(conversion: DefinedConversion = { strategy: '' }): DefinedConversion {
  const { strategy, webhook } = conversion
  const service = webhook?.clientConfig?.service
  const complete = { ...conversion, strategy: strategy === '' ? 'None' : strategy }
  if (service === undefined) return complete
  const clientConfig = { ...webhook?.clientConfig, service: { ...service, port: service.port ?? 443 } }
  return { ...complete, webhook: { ...webhook, clientConfig } }
}

/** The version that objects are stored in is among those that were stored. */
function withStoredVersion(definition: CustomResourceDefinition): CustomResourceDefinition {
  const { storedVersions = [] } = definition.status ?? {}
  const version = definition.spec.versions.find(({ storage }) => storage)?.name
  if (version === undefined || storedVersions.includes(version)) return definition
  return { ...definition, status: { ...definition.status, storedVersions: [...storedVersions, version] } }
}

function storedVersionProblems(definition: CustomResourceDefinition): readonly Problem[] {
  return definitionProblems(definition).filter(({ field }) => field.startsWith('status.'))
}

function contentProblems(definition: CustomResourceDefinition): readonly Problem[] {
  return [
    ...servingProblems(definition),
    ...definition.spec.versions.flatMap((version, index) => {
      const schema = schemaOfVersion(version)
      return schema === undefined ? [] : schemaProblems(`spec.versions[${index}].schema.openAPIV3Schema`, schema)
    }),
  ]
}

/** Rules are compiled where their schema is new: hundreds of them take longer than a turn of the event loop may. */
function* definedRuleProblems(
  now: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
): Generator<undefined, readonly Problem[]> {
  const found: Problem[] = []
  for (const [index, version] of now.spec.versions.entries()) {
    const schema = schemaOfVersion(version)
    const before = old?.spec.versions.find(({ name }) => name === version.name)
    if (schema === undefined || (before !== undefined && equalJSON(schemaOfVersion(before), schema))) continue
    addProblems(found, yield* ruleProblems(`spec.versions[${index}].schema.openAPIV3Schema`, schema))
  }
  return found
}

/** Kubernetes accepts all of JSONPath; the cells of other columns stay empty here. */
function columnWarnings({ spec }: CustomResourceDefinition): readonly string[] {
  return spec.versions.flatMap(({ additionalPrinterColumns = [] }, version) =>
    additionalPrinterColumns.flatMap(({ jsonPath }, column) => {
      const at = `spec.versions[${version}].additionalPrinterColumns[${column}].jsonPath`
      return parseObjectPath(jsonPath) === undefined
        ? [`${at}: this form of JSONPath is not supported: the column stays empty`]
        : []
    }),
  )
}

/** `old`: what the definition replaces; undefined: it is one more. */
async function refuseMore(
  { store }: Pick<ResourceNeeds, 'store'>,
  definition: CustomResourceDefinition,
  old?: CustomResourceDefinition,
): Promise<void> {
  const { items } = await store.list('customresourcedefinitions')
  const why = 'customresourcedefinitions.apiextensions.k8s.io is forbidden'
  if (old === undefined && items.length >= mostDefinitions) {
    throw new ApiError('Forbidden', `${why}: the fleet has ${mostDefinitions} definitions, the most it may have`)
  }
  const others = items.filter(({ metadata }) => metadata.name !== old?.metadata.name)
  const bytes = [definition, ...others].reduce((sum, item) => sum + definitionBytes(item), 0)
  if (bytes <= mostSchemaBytes) return
  throw new ApiError(
    'Forbidden',
    `${why}: the definitions of the fleet would have more than ${mostSchemaBytes} bytes of JSON`,
  )
}

const sizes = new WeakMap<object, number>()

/** The bytes of a definition, which does not change. */
function definitionBytes(definition: { readonly spec: DefinitionSpec }): number {
  const { spec } = definition
  const known = sizes.get(spec)
  if (known !== undefined) return known
  const bytes = JSON.stringify(spec).length
  sizes.set(spec, bytes)
  return bytes
}
