/** Validates what a claim asks for (ValidatePersistentVolumeClaimSpec of Kubernetes): also that of a template of claims. */
import { amountNamed } from '../limits/resource-amounts.ts'
import { dnsSubdomainProblem } from '../names.ts'
import { invalid, type Problem, required } from '../problem.ts'
import { problemsWith } from '../validation/metadata-validation.ts'
import { selectorProblems } from '../validation/scheduling-validation.ts'
import type { PersistentVolumeClaimSpec } from './persistent-volume-claim.ts'
import { accessModeProblems, classNameProblems, positiveAmountProblems, volumeModeProblems } from './volume-problems.ts'

/** `at`: the path of the specification. */
export function claimSpecProblems(at: string, spec: PersistentVolumeClaimSpec): readonly Problem[] {
  const { accessModes = [], dataSource, dataSourceRef } = spec
  const storage = `${at}.resources[storage]`
  const asked = amountNamed(spec.resources?.requests ?? {}, 'storage')
  return [
    ...(accessModes.length === 0 ? [required(`${at}.accessModes`, 'at least 1 access mode is required')] : []),
    ...selectorProblems(`${at}.selector`, spec.selector),
    ...accessModeProblems(`${at}.accessModes`, accessModes),
    ...(asked === undefined ? [required(storage)] : positiveAmountProblems(storage, asked)),
    ...classNameProblems(`${at}.storageClassName`, spec.storageClassName),
    ...volumeModeProblems(`${at}.volumeMode`, spec.volumeMode),
    ...sourceProblems(`${at}.dataSource`, dataSource),
    ...sourceProblems(`${at}.dataSourceRef`, dataSourceRef),
    ...(dataSource && dataSourceRef && !isSame(dataSource, dataSourceRef)
      ? [invalid(at, `${at}.dataSource`, 'must match dataSourceRef')]
      : []),
  ]
}

type Source = NonNullable<PersistentVolumeClaimSpec['dataSource']>

function sourceProblems(field: string, source: Source | undefined): readonly Problem[] {
  if (source === undefined) return []
  const { apiGroup = '', kind, name } = source
  const inCore = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
  return [
    ...(name === '' ? [required(`${field}.name`)] : []),
    ...(kind === '' ? [required(`${field}.kind`)] : []),
    ...(apiGroup === '' && kind !== 'PersistentVolumeClaim' ? [invalid(field, kind, inCore)] : []),
    ...(apiGroup === '' ? [] : problemsWith(`${field}.apiGroup`, apiGroup, dnsSubdomainProblem)),
  ]
}

function isSame(one: Source, other: Source): boolean {
  return one.apiGroup === other.apiGroup && one.kind === other.kind && one.name === other.name
}
