/** storage.k8s.io/v1 StorageClass (pkg/registry/storage/storageclass/strategy.go, pkg/apis/storage/validation/validation.go). */
import { labelKeyProblem, labelValueProblem, qualifiedNameProblem } from '../../../../api/names.ts'
import { duplicate, forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { defaultStorageClass, type StorageClass } from '../../../../api/storage/storage-class.ts'
import { problemsWith, tooLong } from '../../../../api/validation/metadata-validation.ts'
import { repeatedPlaces } from '../../../../api/validation/repeated.ts'
import { storageClassWarnings } from '../../../../api/warnings/storage-warnings.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

const storageClassTable: TableOf<StorageClass> = {
  columns: tableColumns('Name', 'Provisioner', 'ReclaimPolicy', 'VolumeBindingMode', 'AllowVolumeExpansion', 'Age'),
  cells: ({ metadata, provisioner, reclaimPolicy, volumeBindingMode, allowVolumeExpansion }, nowMs) => [
    `${metadata.name ?? ''}${defaultStorageClass([{ metadata }]) === undefined ? '' : ' (default)'}`,
    provisioner,
    reclaimPolicy ?? 'Delete',
    volumeBindingMode ?? 'Immediate',
    allowVolumeExpansion ?? false,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const storageClassStrategy: KindStrategy<StorageClass> = {
  ...resources.storageclasses,
  returnsDeletedObject: true,
  table: storageClassTable,
  selectableFields: [],
  subresources: {},
  withDefaults: (one) => ({
    ...one,
    reclaimPolicy: one.reclaimPolicy ?? 'Delete',
    volumeBindingMode: one.volumeBindingMode ?? 'Immediate',
  }),
  validateCreate: storageClassProblems,
  validateUpdate: changeProblems,
  warningsOnCreate: storageClassWarnings,
  warningsOnUpdate: (_, now) => storageClassWarnings(now),
}

const reclaimPolicies = ['Delete', 'Retain']
const bindingModes = ['Immediate', 'WaitForFirstConsumer']
const mostParameters = 512
const mostParameterBytes = 256 * 1024

function storageClassProblems(one: StorageClass): readonly Problem[] {
  const { provisioner, reclaimPolicy = '', volumeBindingMode, allowedTopologies = [] } = one
  return [
    ...(provisioner === ''
      ? [required('provisioner')]
      : problemsWith('provisioner', provisioner.toLowerCase(), qualifiedNameProblem)),
    ...parameterProblems('parameters', one.parameters ?? {}),
    ...(reclaimPolicy === '' || reclaimPolicies.includes(reclaimPolicy)
      ? []
      : [notSupported('reclaimPolicy', reclaimPolicy, reclaimPolicies)]),
    ...(bindingModes.includes(volumeBindingMode ?? '')
      ? []
      : [notSupported('volumeBindingMode', volumeBindingMode, bindingModes)]),
    ...allowedTopologies.flatMap((term, index) => termProblems(`allowedTopologies[${index}]`, term)),
    ...[...repeatedPlaces(allowedTopologies.map(valuesByKey))].map((index) =>
      duplicate(`allowedTopologies[${index}].matchLabelExpressions`, ''),
    ),
  ]
}

function parameterProblems(field: string, parameters: { readonly [name: string]: string }): readonly Problem[] {
  const all = Object.entries(parameters)
  if (all.length > mostParameters) return [tooLong(field, mostParameters)]
  const bytes = all.reduce((sum, entry) => sum + new TextEncoder().encode(entry.join('')).length, 0)
  return [
    ...(Object.hasOwn(parameters, '') ? [invalid(field, '', 'field can not be empty.')] : []),
    ...(bytes > mostParameterBytes ? [tooLong(field, mostParameterBytes)] : []),
  ]
}

type Term = NonNullable<StorageClass['allowedTopologies']>[number]

function termProblems(at: string, { matchLabelExpressions = [] }: Term): readonly Problem[] {
  const repeated = repeatedPlaces(matchLabelExpressions.map(({ key }) => key))
  return matchLabelExpressions.flatMap(({ key, values }, index) => {
    const field = `${at}.matchLabelExpressions[${index}]`
    const same = repeatedPlaces(values)
    return [
      ...(values.length === 0 ? [required(`${field}.values`)] : []),
      ...values.flatMap((value, place) => [
        ...problemsWith(`${field}.values[${place}]`, value, labelValueProblem),
        ...(same.has(place) ? [duplicate(`${field}.values[${place}]`, value)] : []),
      ]),
      ...problemsWith(`${field}.key`, key, labelKeyProblem),
      ...(repeated.has(index) ? [duplicate(`${field}.key`, key)] : []),
    ]
  })
}

/** The same text for terms that mean the same. */
function valuesByKey({ matchLabelExpressions = [] }: Term): string {
  return JSON.stringify(matchLabelExpressions.map(({ key, values }) => [key, ...[...values].sort()]).sort())
}

function changeProblems(old: StorageClass, now: StorageClass): readonly Problem[] {
  const fixed = (field: 'parameters' | 'provisioner' | 'reclaimPolicy') =>
    equalJSON(old[field] ?? {}, now[field] ?? {}) ? [] : [forbidden(field, `updates to ${field} are forbidden.`)]
  return [
    ...storageClassProblems(now),
    ...fixed('parameters'),
    ...fixed('provisioner'),
    ...fixed('reclaimPolicy'),
    ...(old.volumeBindingMode === now.volumeBindingMode
      ? []
      : [invalid('volumeBindingMode', now.volumeBindingMode, 'field is immutable')]),
  ]
}
