/** core/v1 ReplicationController (pkg/registry/core/replicationcontroller/strategy.go). */
import { type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'
import { countProblems, lastingTemplateProblems } from '../../../../api/validation/workload-validation.ts'
import type { ReplicationController } from '../../../../api/workloads/replication-controller.ts'
import { ageOf, orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { replicaStatusProblems } from './replica-set.ts'
import { scaleView } from './scale.ts'
import { namedTemplateWarnings, templateSecurity } from './template-warnings.ts'
import { containerCells, selectorText } from './workload-cells.ts'

const textOf = ({ spec }: ReplicationController) => selectorText({ matchLabels: spec.selector ?? {} })

const replicationControllerTable: TableOf<ReplicationController> = {
  columns: tableColumns('Name', 'Desired#', 'Current#', 'Ready#', 'Age', 'Containers*', 'Images*', 'Selector*'),
  cells: (one, nowMs) => [
    one.metadata.name ?? '',
    one.spec.replicas ?? 0,
    one.status?.replicas ?? 0,
    one.status?.readyReplicas ?? 0,
    ageOf(one.metadata.creationTimestamp, nowMs),
    ...containerCells(one.spec.template),
    orNone(textOf(one)),
  ],
}

export const replicationControllerStrategy: KindStrategy<ReplicationController> = {
  ...resources.replicationcontrollers,
  table: replicationControllerTable,
  selectableFields: ['status.replicas'],
  orphansByDefault: true,
  subresources: {
    status: { ...statusSubresource, validateUpdate: (_, now) => replicaStatusProblems(now) },
    scale: scaleView(textOf),
  },
  withDefaults: withReplicationDefaults,
  emptyStatus: { replicas: 0 },
  prepareForCreate: ({ status: _, ...one }) => one,
  validateCreate: replicationControllerProblems,
  ...namedTemplateWarnings,
  podSecurity: templateSecurity,
  validateUpdate: (_, now) => replicationControllerProblems(now),
}

/** SetDefaults_ReplicationController: the labels of the template are those of the selector and of the object. */
function withReplicationDefaults({ metadata, spec, ...one }: ReplicationController): ReplicationController {
  const { template, selector = {} } = spec
  const labels = template?.metadata?.labels
  const isUnlabelled = Object.keys(metadata.labels ?? {}).length === 0
  return {
    ...one,
    metadata: { ...metadata, ...(labels && isUnlabelled && { labels }) },
    spec: {
      ...spec,
      replicas: spec.replicas ?? 1,
      ...(labels && Object.keys(selector).length === 0 && { selector: labels }),
      ...(template && { template: withTemplateDefaults(template) }),
    },
  }
}

function replicationControllerProblems({ spec }: ReplicationController): readonly Problem[] {
  const { selector = {}, template } = spec
  const isEmpty = Object.keys(selector).length === 0
  const place = { field: 'spec.template', selectorField: 'spec.selector', kind: 'ReplicationController' }
  return [
    ...countProblems('spec.minReadySeconds', spec.minReadySeconds),
    ...(isEmpty ? [required('spec.selector')] : []),
    ...countProblems('spec.replicas', spec.replicas),
    ...(template === undefined
      ? [required('spec.template')]
      : lastingTemplateProblems(place, template, { matchLabels: selector })),
  ]
}
