/** apps/v1 ReplicaSet (pkg/registry/apps/replicaset/strategy.go). */
import type { Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'
import {
  countProblems,
  lastingTemplateProblems,
  statusCountProblems,
  workloadSelectorProblems,
} from '../../../../api/validation/workload-validation.ts'
import type { ReplicaSet } from '../../../../api/workloads/replica-set.ts'
import { ageOf, orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { scaleView } from './scale.ts'
import { namedTemplateWarnings, templateSecurity } from './template-warnings.ts'
import { containerCells, selectorText } from './workload-cells.ts'
import { selectorChangeProblems } from './workload-rules.ts'

const replicaSetTable: TableOf<ReplicaSet> = {
  columns: tableColumns('Name', 'Desired#', 'Current#', 'Ready#', 'Age', 'Containers*', 'Images*', 'Selector*'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    spec.replicas ?? 0,
    status?.replicas ?? 0,
    status?.readyReplicas ?? 0,
    ageOf(metadata.creationTimestamp, nowMs),
    ...containerCells(spec.template),
    orNone(selectorText(spec.selector ?? {})),
  ],
}

export const replicaSetStrategy: KindStrategy<ReplicaSet> = {
  ...resources.replicasets,
  table: replicaSetTable,
  selectableFields: ['status.replicas'],
  subresources: {
    status: { ...statusSubresource, validateUpdate: (_, now) => replicaStatusProblems(now) },
    scale: scaleView(({ spec }) => selectorText(spec.selector ?? {})),
  },
  withDefaults: ({ spec, ...set }) => ({
    ...set,
    spec: {
      ...spec,
      replicas: spec.replicas ?? 1,
      template: withTemplateDefaults(spec.template),
    },
  }),
  emptyStatus: { replicas: 0 },
  prepareForCreate: ({ status: _, ...set }) => set,
  validateCreate: replicaSetProblems,
  ...namedTemplateWarnings,
  podSecurity: templateSecurity,
  validateUpdate: (old, now) => [...replicaSetProblems(now), ...selectorChangeProblems(old, now)],
}

function replicaSetProblems({ spec }: ReplicaSet): readonly Problem[] {
  const place = { field: 'spec.template', selectorField: 'spec.selector', kind: 'ReplicaSet' }
  return [
    ...countProblems('spec.replicas', spec.replicas),
    ...countProblems('spec.minReadySeconds', spec.minReadySeconds),
    // Kubernetes has this sentence for ReplicaSets, too.
    ...workloadSelectorProblems('spec.selector', spec.selector, 'deployment'),
    ...lastingTemplateProblems(place, spec.template, spec.selector),
  ]
}

/** Problems of the status of a ReplicaSet or a ReplicationController. */
export function replicaStatusProblems({ status }: Pick<ReplicaSet, 'status'>): readonly Problem[] {
  const { fullyLabeledReplicas, observedGeneration } = status ?? {}
  const more = { fullyLabeledReplicas, observedGeneration }
  return statusCountProblems(status ?? {}, more, ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'])
}
