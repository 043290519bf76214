/** apps/v1 Deployment (pkg/registry/apps/deployment/strategy.go). */
import type { AnyObject } from '../../../../api/meta.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'
import { shareProblems, shareValue } from '../../../../api/validation/share-validation.ts'
import {
  countProblems,
  lastingTemplateProblems,
  statusCountProblems,
  workloadSelectorProblems,
} from '../../../../api/validation/workload-validation.ts'
import type { Deployment, DeploymentSpec } from '../../../../api/workloads/deployment.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, replaceStatus, withWrittenMetadata } from '../../handlers/strategy.ts'
import { scaleView } from './scale.ts'
import { namedTemplateWarnings, templateSecurity } from './template-warnings.ts'
import { containerCells, selectorText } from './workload-cells.ts'
import { selectorChangeProblems, withUpdateDefaults } from './workload-rules.ts'

const deploymentTable: TableOf<Deployment> = {
  columns: tableColumns('Name', 'Ready', 'Up-to-date#', 'Available#', 'Age', 'Containers*', 'Images*', 'Selector*'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}`,
    status?.updatedReplicas ?? 0,
    status?.availableReplicas ?? 0,
    ageOf(metadata.creationTimestamp, nowMs),
    ...containerCells(spec.template),
    selectorText(spec.selector ?? {}),
  ],
}

export const deploymentStrategy: KindStrategy<Deployment> = {
  ...resources.deployments,
  table: deploymentTable,
  selectableFields: [],
  subresources: {
    status: { access: 'update', writes: 'status', change: withStatusOf, validateUpdate: statusProblems },
    scale: scaleView(({ spec }) => selectorText(spec.selector ?? {})),
  },
  resetFields: { '': ['status'], status: ['spec', 'metadata.labels'], scale: ['status'] },
  withDefaults: withDeploymentDefaults,
  emptyStatus: {},
  prepareForCreate: ({ status: _, ...deployment }) => deployment,
  validateCreate: deploymentProblems,
  ...namedTemplateWarnings,
  podSecurity: templateSecurity,
  validateUpdate: (old, now) => [...deploymentProblems(now), ...selectorChangeProblems(old, now)],
}

/** A write of the status leaves the labels as they are (deploymentStatusStrategy.PrepareForUpdate). */
function withStatusOf(stored: AnyObject, { metadata, status }: AnyObject): AnyObject {
  const { labels: _, ...written } = metadata
  const { labels } = stored.metadata
  return replaceStatus(
    withWrittenMetadata(stored, { ...stored, metadata: { ...written, ...(labels && { labels }) } }),
    status,
  )
}

/** SetDefaults_Deployment (pkg/apis/apps/v1/defaults.go). */
function withDeploymentDefaults({ spec, ...deployment }: Deployment): Deployment {
  return {
    ...deployment,
    spec: {
      ...spec,
      replicas: spec.replicas ?? 1,
      template: withTemplateDefaults(spec.template),
      strategy: withUpdateDefaults(spec.strategy, { maxUnavailable: '25%', maxSurge: '25%' }),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
      progressDeadlineSeconds: spec.progressDeadlineSeconds ?? 600,
    },
  }
}

function deploymentProblems({ spec }: Deployment): readonly Problem[] {
  const place = { field: 'spec.template', selectorField: 'spec.selector', kind: 'ReplicaSet' }
  const { minReadySeconds = 0, progressDeadlineSeconds } = spec
  const isShort = progressDeadlineSeconds !== undefined && progressDeadlineSeconds <= minReadySeconds
  return [
    ...countProblems('spec.replicas', spec.replicas),
    ...workloadSelectorProblems('spec.selector', spec.selector, 'deployment'),
    ...lastingTemplateProblems(place, spec.template, spec.selector),
    ...updateStrategyProblems('spec.strategy', spec.strategy ?? {}),
    ...countProblems('spec.minReadySeconds', minReadySeconds),
    ...countProblems('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ...countProblems('spec.progressDeadlineSeconds', progressDeadlineSeconds),
    ...(isShort
      ? [invalid('spec.progressDeadlineSeconds', progressDeadlineSeconds, 'must be greater than minReadySeconds')]
      : []),
  ]
}

const strategyTypes = ['Recreate', 'RollingUpdate']

function updateStrategyProblems(field: string, strategy: NonNullable<DeploymentSpec['strategy']>): readonly Problem[] {
  const { type = '', rollingUpdate } = strategy
  const at = `${field}.rollingUpdate`
  if (!strategyTypes.includes(type)) return [notSupported(field, strategy, strategyTypes)]
  if (type === 'Recreate') {
    const because = "may not be specified when strategy `type` is 'Recreate'"
    return rollingUpdate === undefined ? [] : [forbidden(at, because)]
  }
  if (rollingUpdate === undefined) return [required(at, 'this should be defaulted and never be nil')]
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate
  const isStuck = shareValue(maxUnavailable) === 0 && shareValue(maxSurge) === 0
  return [
    ...shareProblems(`${at}.maxUnavailable`, maxUnavailable),
    ...shareProblems(`${at}.maxSurge`, maxSurge, Infinity),
    ...(isStuck ? [invalid(`${at}.maxUnavailable`, maxUnavailable, 'may not be 0 when `maxSurge` is 0')] : []),
  ]
}

function statusProblems(old: Deployment, { status = {} }: Deployment): readonly Problem[] {
  const { updatedReplicas, unavailableReplicas, observedGeneration, collisionCount } = status
  const more = { updatedReplicas, unavailableReplicas, observedGeneration, collisionCount }
  const isLess = (collisionCount ?? 0) < (old.status?.collisionCount ?? 0)
  return [
    ...statusCountProblems(status, more, ['updatedReplicas', 'readyReplicas', 'availableReplicas']),
    ...(isLess ? [invalid('status.collisionCount', collisionCount ?? 0, 'cannot be decremented')] : []),
  ]
}
