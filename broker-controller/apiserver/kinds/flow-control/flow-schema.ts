/** flowcontrol.apiserver.k8s.io/v1 FlowSchema (pkg/registry/flowcontrol/flowschema/strategy.go). */
import type { FlowSchema } from '../../../../api/flow-control/flow-schema.ts'
import { standardFlowSchemas } from '../../../../api/flow-control/standard-objects.ts'
import { invalid, type Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { flowControlStatusProblems, flowSchemaProblems } from '../../../../api/validation/flow-control-validation.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'

const flowSchemaTable: TableOf<FlowSchema> = {
  columns: tableColumns('Name', 'PriorityLevel', 'MatchingPrecedence', 'DistinguisherMethod', 'Age', 'MissingPL'),
  cells: ({ metadata, spec = {}, status }, nowMs) => [
    metadata.name ?? '',
    spec.priorityLevelConfiguration?.name ?? '',
    spec.matchingPrecedence ?? 0,
    spec.distinguisherMethod?.type ?? '<none>',
    ageOf(metadata.creationTimestamp, nowMs),
    status?.conditions?.find(({ type }) => type === 'Dangling')?.status ?? '?',
  ],
}

export const flowSchemaStrategy: KindStrategy<FlowSchema> = {
  ...resources.flowschemas,
  table: flowSchemaTable,
  resetFields: { '': ['status'], status: ['metadata', 'spec'] },
  selectableFields: [],
  subresources: {
    status: { ...statusSubresource, validateUpdate: (_, now) => flowControlStatusProblems(now.status) },
  },
  withDefaults: (schema) => {
    const { spec = {} } = schema
    return { ...schema, spec: { ...spec, matchingPrecedence: spec.matchingPrecedence || 1000 } }
  },
  emptyStatus: {},
  prepareForCreate: ({ status: _, ...schema }) => schema,
  validateCreate: schemaProblems,
  validateUpdate: (_, now) => schemaProblems(now),
}

function schemaProblems(schema: FlowSchema): readonly Problem[] {
  const { name } = schema.metadata
  const fixed = standardFlowSchemas.find((one) => one.metadata.name === name)?.spec
  const isMandatory = name === 'exempt' || name === 'catch-all'
  const isChanged = isMandatory && !equalJSON(schema.spec ?? null, fixed ?? null)
  return [
    ...flowSchemaProblems(schema),
    ...(isChanged ? [invalid('spec', schema.spec, `spec of '${name}' must equal the fixed value`)] : []),
  ]
}
