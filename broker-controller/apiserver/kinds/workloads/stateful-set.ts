/** apps/v1 StatefulSet (pkg/registry/apps/statefulset/strategy.go). */
import { dnsLabelProblem } from '../../../../api/names.ts'
import type { PodTemplateSpec } from '../../../../api/pod.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { requirementsOf } from '../../../../api/selectors.ts'
import type { StatefulClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'
import {
  countProblems,
  lastingTemplateProblems,
  statusCountProblems,
  workloadSelectorProblems,
} from '../../../../api/validation/workload-validation.ts'
import {
  type StatefulSet,
  type StatefulSetSpec,
  StatefulSetSpecSchema,
} from '../../../../api/workloads/stateful-set.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { isSameInGo } from '../go-equality.ts'
import { scaleView } from './scale.ts'
import { namedTemplateWarnings, templateSecurity, templateWarnings } from './template-warnings.ts'
import { containerCells, selectorText } from './workload-cells.ts'

const statefulSetTable: TableOf<StatefulSet> = {
  columns: tableColumns('Name', 'Ready', 'Age', 'Containers*', 'Images*'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}`,
    ageOf(metadata.creationTimestamp, nowMs),
    ...containerCells(spec.template),
  ],
}

export const statefulSetStrategy: KindStrategy<StatefulSet> = {
  ...resources.statefulsets,
  table: statefulSetTable,
  selectableFields: [],
  // A part of the names of its pods, which are host names.
  nameProblem: dnsLabelProblem,
  subresources: {
    status: { ...statusSubresource, validateUpdate: statefulStatusProblems },
    scale: scaleView(({ spec }) => selectorText(spec.selector ?? {})),
  },
  withDefaults: withStatefulSetDefaults,
  emptyStatus: { replicas: 0, availableReplicas: 0 },
  prepareForCreate: ({ status: _, ...set }) => withoutGatedFields(set),
  prepareForUpdate: (_, now) => withoutGatedFields(now),
  validateCreate: statefulSetProblems,
  warningsOnCreate: templateWarnings,
  warningsOnUpdate: namedTemplateWarnings.warningsOnUpdate,
  podSecurity: templateSecurity,
  validateUpdate: (old, now) => [...statefulSetProblems(now), ...changeProblems(old.spec, now.spec)],
}

/** What the feature gates of 1.32 disable by default is dropped: MaxUnavailableStatefulSet (dropStatefulSetDisabledFields). */
function withoutGatedFields({ spec, ...set }: StatefulSet): StatefulSet {
  const { updateStrategy } = spec
  if (updateStrategy?.rollingUpdate?.maxUnavailable === undefined) return { ...set, spec }
  const { maxUnavailable: _, ...rollingUpdate } = updateStrategy.rollingUpdate
  return { ...set, spec: { ...spec, updateStrategy: { ...updateStrategy, rollingUpdate } } }
}

/** SetDefaults_StatefulSet (pkg/apis/apps/v1/defaults.go). */
function withStatefulSetDefaults({ spec, ...set }: StatefulSet): StatefulSet {
  const { whenDeleted, whenScaled } = spec.persistentVolumeClaimRetentionPolicy ?? {}
  return {
    ...set,
    spec: {
      ...spec,
      ...(spec.volumeClaimTemplates && { volumeClaimTemplates: spec.volumeClaimTemplates.map(withClaimDefaults) }),
      replicas: spec.replicas ?? 1,
      template: withTemplateDefaults(spec.template),
      serviceName: spec.serviceName ?? '',
      podManagementPolicy: spec.podManagementPolicy || 'OrderedReady',
      updateStrategy: withStrategyDefaults(spec.updateStrategy),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
      persistentVolumeClaimRetentionPolicy: {
        whenDeleted: whenDeleted || 'Retain',
        whenScaled: whenScaled || 'Retain',
      },
    },
  }
}

/** The kind of a claim inside a set is written out (Convert_apps_StatefulSetSpec_To_v1_StatefulSetSpec). */
function withClaimDefaults({ apiVersion: _, kind: __, spec = {}, status, ...claim }: StatefulClaim): StatefulClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    ...claim,
    spec: { ...spec, volumeMode: spec.volumeMode ?? 'Filesystem' },
    status: { ...status, phase: status?.phase || 'Pending' },
  }
}

type Strategy = NonNullable<StatefulSetSpec['updateStrategy']>

/** A strategy that is named without `rollingUpdate` stays without. */
function withStrategyDefaults({ type, rollingUpdate }: Strategy = {}): Strategy {
  const given = type ? rollingUpdate : (rollingUpdate ?? {})
  const isRolling = !type || type === 'RollingUpdate'
  const filled = isRolling && given ? { ...given, partition: given.partition ?? 0 } : given
  return { type: type || 'RollingUpdate', ...(filled && { rollingUpdate: filled }) }
}

function statefulSetProblems({ spec }: StatefulSet): readonly Problem[] {
  const place = { field: 'spec.template', selectorField: 'spec.selector', kind: 'StatefulSet' }
  const { podManagementPolicy, selector } = spec
  const isKnown = ['OrderedReady', 'Parallel'].includes(podManagementPolicy ?? '')
  const isReadable = requirementsOf(selector)?.ok !== false
  return [
    ...(isKnown
      ? []
      : [invalid('spec.podManagementPolicy', podManagementPolicy, "must be 'OrderedReady' or 'Parallel'")]),
    ...strategyProblems('spec.updateStrategy', spec.updateStrategy ?? {}),
    ...retentionProblems('spec.persistentVolumeClaimRetentionPolicy', spec.persistentVolumeClaimRetentionPolicy),
    ...countProblems('spec.replicas', spec.replicas),
    ...countProblems('spec.minReadySeconds', spec.minReadySeconds),
    ...countProblems('spec.ordinals.start', spec.ordinals?.start),
    ...workloadSelectorProblems('spec.selector', selector, 'statefulset'),
    ...lastingTemplateProblems(place, withClaimVolumes(spec), isReadable ? selector : undefined),
  ]
}

/** Its containers may mount the claims. Kubernetes does not look at the claims here: what is wrong with one is seen when it is made. */
function withClaimVolumes({ template, volumeClaimTemplates = [] }: StatefulSetSpec): PodTemplateSpec {
  const names = new Set(volumeClaimTemplates.map(({ metadata }) => metadata?.name ?? ''))
  const others = (template.spec.volumes ?? []).filter(({ name }) => !names.has(name))
  const volumes = [...others, ...[...names].map((name) => ({ name, emptyDir: {} }))]
  return names.size === 0 ? template : { ...template, spec: { ...template.spec, volumes } }
}

function strategyProblems(field: string, strategy: Strategy): readonly Problem[] {
  const { type, rollingUpdate } = strategy
  switch (type) {
    case 'OnDelete': {
      const because = "only allowed for updateStrategy 'RollingUpdate'"
      return rollingUpdate === undefined ? [] : [invalid(`${field}.rollingUpdate`, rollingUpdate, because)]
    }
    case 'RollingUpdate':
      return countProblems(`${field}.rollingUpdate.partition`, rollingUpdate?.partition)
    default:
      return [type ? invalid(field, strategy, "must be 'RollingUpdate' or 'OnDelete'") : required(field)]
  }
}

function retentionProblems(
  field: string,
  policy: StatefulSetSpec['persistentVolumeClaimRetentionPolicy'],
): readonly Problem[] {
  return Object.entries(policy ?? {}).flatMap(([name, value]) =>
    value === 'Retain' || value === 'Delete' ? [] : [notSupported(`${field}.${name}`, value, ['Retain', 'Delete'])],
  )
}

/** ValidateStatefulSetUpdate: the rest of the specification is what the pods and their volumes are known by. */
function changeProblems(old: StatefulSetSpec, now: StatefulSetSpec): readonly Problem[] {
  const fixed = ({
    replicas: _,
    template: __,
    updateStrategy: ___,
    minReadySeconds: ____,
    ordinals: _____,
    persistentVolumeClaimRetentionPolicy: ______,
    ...others
  }: StatefulSetSpec) => others
  if (isSameInGo(StatefulSetSpecSchema, fixed(old), fixed(now))) return []
  const because =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', " +
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
  return [forbidden('spec', because)]
}

function statefulStatusProblems(old: StatefulSet, { status = {} }: StatefulSet): readonly Problem[] {
  const { currentReplicas, updatedReplicas, observedGeneration, collisionCount } = status
  const more = { currentReplicas, updatedReplicas, observedGeneration, collisionCount }
  const inReplicas = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas']
  const isLess = (collisionCount ?? 0) < (old.status?.collisionCount ?? 0)
  return [
    ...statusCountProblems(status, more, inReplicas),
    ...(isLess ? [invalid('status.collisionCount', collisionCount ?? 0, 'cannot be decremented')] : []),
  ]
}
