/** apps/v1 DaemonSet (pkg/registry/apps/daemonset/strategy.go). */
import { invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { requirementsOf } from '../../../../api/selectors.ts'
import { withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'
import { selectorProblems } from '../../../../api/validation/scheduling-validation.ts'
import { shareProblems, shareValue } from '../../../../api/validation/share-validation.ts'
import {
  countProblems,
  lastingTemplateProblems,
  workloadSelectorProblems,
} from '../../../../api/validation/workload-validation.ts'
import {
  type DaemonSet,
  type DaemonSetSpec,
  templateGenerationAnnotation,
} from '../../../../api/workloads/daemon-set.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { templateSecurity, templateWarnings } from './template-warnings.ts'
import { containerCells, selectorText } from './workload-cells.ts'
import { selectorChangeProblems, withUpdateDefaults } from './workload-rules.ts'

const daemonSetTable: TableOf<DaemonSet> = {
  columns: tableColumns(
    ...['Name', 'Desired#', 'Current#', 'Ready#', 'Up-to-date#', 'Available#', 'Node Selector', 'Age'],
    ...['Containers*', 'Images*', 'Selector*'],
  ),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    status?.desiredNumberScheduled ?? 0,
    status?.currentNumberScheduled ?? 0,
    status?.numberReady ?? 0,
    status?.updatedNumberScheduled ?? 0,
    status?.numberAvailable ?? 0,
    orNone(selectorText({ matchLabels: spec.template.spec.nodeSelector ?? {} })),
    ageOf(metadata.creationTimestamp, nowMs),
    ...containerCells(spec.template),
    orNone(selectorText(spec.selector ?? {})),
  ],
}

export const daemonSetStrategy: KindStrategy<DaemonSet> = {
  ...resources.daemonsets,
  table: daemonSetTable,
  selectableFields: [],
  subresources: { status: { ...statusSubresource, validateUpdate: daemonStatusProblems } },
  withDefaults: withDaemonSetDefaults,
  emptyStatus: { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 },
  prepareForCreate: ({ status: _, ...set }) => withTemplateGeneration(set, Math.max(1, templateGenerationOf(set) ?? 1)),
  prepareForUpdate(old, now) {
    const generation = templateGenerationOf(old) ?? 1
    const isSame = equalJSON(withDaemonSetDefaults(old).spec.template, withDaemonSetDefaults(now).spec.template)
    return withTemplateGeneration(now, isSame ? generation : generation + 1)
  },
  validateCreate: daemonSetProblems,
  warningsOnCreate: templateWarnings,
  warningsOnUpdate: (old, now) => (equalJSON(old.spec.template, now.spec.template) ? [] : templateWarnings(now)),
  podSecurity: templateSecurity,
  validateUpdate: (old, now) => [...daemonSetProblems(now), ...selectorChangeProblems(old, now)],
}

/** The number in its annotation; undefined: it has none (Convert_v1_DaemonSet_To_apps_DaemonSet in pkg/apis/apps/v1/conversion.go). */
function templateGenerationOf({ metadata }: DaemonSet): number | undefined {
  const text = metadata.annotations?.[templateGenerationAnnotation] ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function withTemplateGeneration({ metadata, ...set }: DaemonSet, generation: number): DaemonSet {
  const annotations = { ...metadata.annotations, [templateGenerationAnnotation]: String(generation) }
  return { ...set, metadata: { ...metadata, annotations } }
}

/** SetDefaults_DaemonSet (pkg/apis/apps/v1/defaults.go). */
function withDaemonSetDefaults({ spec, ...set }: DaemonSet): DaemonSet {
  return {
    ...set,
    spec: {
      ...spec,
      template: withTemplateDefaults(spec.template),
      updateStrategy: withUpdateDefaults(spec.updateStrategy, { maxUnavailable: 1, maxSurge: 0 }),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
    },
  }
}

function daemonSetProblems({ spec }: DaemonSet): readonly Problem[] {
  const place = { field: 'spec.template', selectorField: 'spec.selector', kind: 'DaemonSet' }
  const { selector, template } = spec
  const isReadable = requirementsOf(selector)?.ok !== false
  // Without a selector nothing is selected, not even the template.
  const unselected = invalid(
    'spec.template.metadata.labels',
    template.metadata?.labels ?? null,
    '`selector` does not match template `labels`',
  )
  return [
    ...(selector === undefined ? [unselected] : []),
    ...(isReadable && selector !== undefined
      ? workloadSelectorProblems('spec.selector', selector, 'daemonset')
      : selectorProblems('spec.selector', selector ?? {})),
    ...lastingTemplateProblems(place, template, isReadable ? selector : undefined),
    ...countProblems('spec.minReadySeconds', spec.minReadySeconds),
    ...updateProblems('spec.updateStrategy', spec.updateStrategy ?? {}),
    ...countProblems('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
  ]
}

const strategyTypes = ['RollingUpdate', 'OnDelete']

function updateProblems(field: string, strategy: NonNullable<DaemonSetSpec['updateStrategy']>): readonly Problem[] {
  const { type = '', rollingUpdate } = strategy
  const at = `${field}.rollingUpdate`
  if (!strategyTypes.includes(type)) return [notSupported(field, strategy, strategyTypes)]
  if (type === 'OnDelete') return []
  if (rollingUpdate === undefined) return [required(at)]
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate
  const [hasUnavailable, hasSurge] = [shareValue(maxUnavailable) !== 0, shareValue(maxSurge) !== 0]
  return [
    ...shareProblems(`${at}.maxUnavailable`, maxUnavailable),
    ...shareProblems(`${at}.maxSurge`, maxSurge),
    ...(hasUnavailable && hasSurge
      ? [invalid(`${at}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero')]
      : []),
    ...(hasUnavailable || hasSurge ? [] : [required(`${at}.maxUnavailable`, 'cannot be 0 when maxSurge is 0')]),
  ]
}

/** Checks the numbers of a status, but not its `conditions`, as Kubernetes. */
function daemonStatusProblems(old: DaemonSet, { status = {} }: DaemonSet): readonly Problem[] {
  const { conditions: _, ...counts } = status
  const isLess = (counts.collisionCount ?? 0) < (old.status?.collisionCount ?? 0)
  return [
    ...Object.entries(counts).flatMap(([name, count]) => countProblems(`status.${name}`, count)),
    ...(isLess ? [invalid('status.collisionCount', counts.collisionCount ?? 0, 'cannot be decremented')] : []),
  ]
}
