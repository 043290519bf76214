/** flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration (pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go). */
import type { PriorityLevelConfiguration } from '../../../../api/flow-control/priority-level-configuration.ts'
import { standardPriorityLevels } from '../../../../api/flow-control/standard-objects.ts'
import { invalid, type Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { flowControlStatusProblems, priorityLevelProblems } from '../../../../api/validation/flow-control-validation.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'

const priorityLevelTable: TableOf<PriorityLevelConfiguration> = {
  columns: tableColumns('Name', 'Type', 'NominalConcurrencyShares', 'Queues', 'HandSize', 'QueueLengthLimit', 'Age'),
  cells: ({ metadata, spec }, nowMs) => {
    const queuing = spec?.limited?.limitResponse?.queuing
    return [
      metadata.name ?? '',
      spec?.type ?? '',
      spec?.limited?.nominalConcurrencyShares ?? '<none>',
      queuing?.queues ?? '<none>',
      queuing?.handSize ?? '<none>',
      queuing?.queueLengthLimit ?? '<none>',
      ageOf(metadata.creationTimestamp, nowMs),
    ]
  },
}

export const priorityLevelConfigurationStrategy: KindStrategy<PriorityLevelConfiguration> = {
  ...resources.prioritylevelconfigurations,
  table: priorityLevelTable,
  selectableFields: [],
  subresources: {
    status: { ...statusSubresource, validateUpdate: (_, now) => flowControlStatusProblems(now.status) },
  },
  withDefaults,
  emptyStatus: {},
  prepareForCreate: ({ status: _, ...level }) => level,
  validateCreate: levelProblems,
  validateUpdate: (_, now) => levelProblems(now),
}

function levelProblems(level: PriorityLevelConfiguration): readonly Problem[] {
  return [...priorityLevelProblems(level), ...fixedProblems(level)]
}

/** The two levels without which no request could be classified stay as they are; the shares of `exempt` may change. */
function fixedProblems({ metadata: { name }, spec }: PriorityLevelConfiguration): readonly Problem[] {
  const fixed = standardPriorityLevels.find((one) => one.metadata.name === name)?.spec
  if (name === 'catch-all' && !equalJSON(spec ?? null, fixed ?? null)) {
    return [invalid('spec', spec, `spec of '${name}' must equal the fixed value`)]
  }
  if (name !== 'exempt' || equalJSON({ ...spec, exempt: fixed?.exempt }, fixed ?? null)) return []
  return [invalid('spec', spec, `spec of '${name}' except the 'spec.exempt' field must equal the fixed value`)]
}

/** pkg/apis/flowcontrol/v1/defaults.go. */
function withDefaults(level: PriorityLevelConfiguration): PriorityLevelConfiguration {
  const { spec } = level
  if (spec === undefined) return level
  const { limited, exempt } = spec
  const response = limited?.limitResponse
  const queuing = response?.queuing && withQueues(response.queuing)
  return {
    ...level,
    spec: {
      ...spec,
      ...(limited && {
        limited: {
          nominalConcurrencyShares: 30,
          lendablePercent: 0,
          ...limited,
          ...(response && { limitResponse: { ...response, ...(queuing && { queuing }) } }),
        },
      }),
      ...(exempt && { exempt: { nominalConcurrencyShares: 0, lendablePercent: 0, ...exempt } }),
    },
  }
}

type Limited = NonNullable<NonNullable<PriorityLevelConfiguration['spec']>['limited']>
type Queuing = NonNullable<NonNullable<Limited['limitResponse']>['queuing']>

/** Not set is zero, which Go clients send. */
function withQueues({ queues, handSize, queueLengthLimit }: Queuing): Queuing {
  return { queues: queues || 64, handSize: handSize || 8, queueLengthLimit: queueLengthLimit || 50 }
}
