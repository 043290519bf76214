/** node.k8s.io/v1 RuntimeClass (pkg/registry/node/runtimeclass/strategy.go, pkg/apis/node/validation/validation.go). */
import { containerResourceProblems } from '../../../../api/limits/resource-names.ts'
import { dnsLabelProblem } from '../../../../api/names.ts'
import type { RuntimeClass } from '../../../../api/node/runtime-class.ts'
import type { Toleration } from '../../../../api/pod.ts'
import { duplicate, invalid, type Problem } from '../../../../api/problem.ts'
import { compareQuantities, zeroQuantity } from '../../../../api/quantity.ts'
import { resources } from '../../../../api/resources.ts'
import { labelProblems, problemsWith } from '../../../../api/validation/metadata-validation.ts'
import { tolerationProblems } from '../../../../api/validation/pod-validation.ts'
import { repeatedPlaces } from '../../../../api/validation/repeated.ts'
import { deprecatedNodeLabel } from '../../../../api/warnings/node-label-warnings.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

const runtimeClassTable: TableOf<RuntimeClass> = {
  columns: tableColumns('Name', 'Handler', 'Age'),
  cells: ({ metadata, handler }, nowMs) => [metadata.name ?? '', handler, ageOf(metadata.creationTimestamp, nowMs)],
}

export const runtimeClassStrategy: KindStrategy<RuntimeClass> = {
  ...resources.runtimeclasses,
  createdByUpdate: true,
  needsVersion: true,
  table: runtimeClassTable,
  selectableFields: [],
  subresources: {},
  validateCreate: ({ handler, overhead = {}, scheduling = {} }) => [
    ...problemsWith('handler', handler, dnsLabelProblem),
    ...overheadProblems('overhead.limits', overhead.podFixed),
    ...labelProblems('scheduling.nodeSelector', scheduling.nodeSelector),
    ...allTolerationProblems('scheduling.tolerations', scheduling.tolerations ?? []),
  ],
  warningsOnCreate: selectorWarnings,
  warningsOnUpdate: (_, now) => selectorWarnings(now),
  validateUpdate: (old, { handler }) =>
    handler === old.handler ? [] : [invalid('handler', handler, 'field is immutable')],
}

/** Deprecated labels of nodes (GetWarningsForRuntimeClass in pkg/api/node/util.go). */
function selectorWarnings({ scheduling = {} }: RuntimeClass): readonly string[] {
  return Object.keys(scheduling.nodeSelector ?? {}).flatMap((label) => {
    const message = deprecatedNodeLabel(label)
    return message === undefined ? [] : [`scheduling.nodeSelector: ${message}`]
  })
}

function overheadProblems(field: string, amounts: { readonly [resource: string]: string | number } = {}) {
  return Object.entries(amounts).flatMap(([name, amount]) => [
    ...containerResourceProblems(`${field}.${name}`, name),
    ...(compareQuantities(amount, zeroQuantity) < 0
      ? [invalid(`${field}.${name}`, amount, 'must be greater than or equal to 0')]
      : []),
  ])
}

function allTolerationProblems(field: string, tolerations: readonly Toleration[]): readonly Problem[] {
  const keys = tolerations.map(({ key = '', operator = '', value = '', effect = '' }) =>
    JSON.stringify([key, operator, value, effect]),
  )
  const repeated = repeatedPlaces(keys)
  return tolerations.flatMap((toleration, index) => [
    ...tolerationProblems(`${field}[${index}]`, toleration),
    ...(repeated.has(index) ? [duplicate(`${field}[${index}]`, toleration)] : []),
  ])
}
