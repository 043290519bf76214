/** scheduling.k8s.io/v1 PriorityClass (pkg/registry/scheduling/priorityclass/strategy.go). */
import { highestUserPriority, type PriorityClass, systemPriorityClasses } from '../../../api/priority-class.ts'
import { forbidden, type Problem } from '../../../api/problem.ts'
import { resources } from '../../../api/resources.ts'
import { policyProblems } from '../../../api/validation/scheduling-validation.ts'
import { ageOf, type TableOf, tableColumns } from '../handlers/cells.ts'
import { forbid } from '../handlers/resource-request.ts'
import type { KindStrategy } from '../handlers/strategy.ts'

const priorityClassTable: TableOf<PriorityClass> = {
  columns: [
    ...tableColumns('Name'),
    { name: 'Value', type: 'integer', priority: 0 },
    { name: 'Global-Default', type: 'boolean', priority: 0 },
    ...tableColumns('Age', 'PreemptionPolicy'),
  ],
  cells: ({ metadata, value = 0, globalDefault = false, preemptionPolicy = '' }, nowMs) => [
    metadata.name ?? '',
    value,
    globalDefault,
    ageOf(metadata.creationTimestamp, nowMs),
    preemptionPolicy,
  ],
}

export const priorityClassStrategy: KindStrategy<PriorityClass> = {
  ...resources.priorityclasses,
  table: priorityClassTable,
  selectableFields: [],
  subresources: {},
  withDefaults: (one) => ({
    ...one,
    value: one.value ?? 0,
    preemptionPolicy: one.preemptionPolicy || 'PreemptLowerPriority',
  }),
  validateCreate: priorityClassProblems,
  validateUpdate: changeProblems,
  async admitCreate(_, __, { store }) {
    const classes = (await store.list('priorityclasses')).items
    return { mutate: (one) => onlyDefault(one, classes) }
  },
  async admitUpdate(one, { store }) {
    onlyDefault(one, (await store.list('priorityclasses')).items)
  },
  undeletable: {
    names: systemPriorityClasses.map(({ metadata }) => metadata.name ?? ''),
    because: 'this is a system priority class and cannot be deleted',
  },
}

/** One class at a time is the default (plugin/pkg/admission/priority/admission.go). Throws Forbidden. */
function onlyDefault(one: PriorityClass, classes: readonly PriorityClass[]): PriorityClass {
  const name = one.metadata.name ?? ''
  const other = classes.find(({ globalDefault, metadata }) => globalDefault === true && metadata.name !== name)
  if (one.globalDefault !== true || other === undefined) return one
  const because = `PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`
  throw forbid(resources.priorityclasses, name, because)
}

function priorityClassProblems({ metadata, value = 0, preemptionPolicy = '' }: PriorityClass): readonly Problem[] {
  return [...rankProblems(metadata.name ?? '', value), ...policyProblems('preemptionPolicy', preemptionPolicy)]
}

function changeProblems(old: PriorityClass, now: PriorityClass): readonly Problem[] {
  const because = 'may not be changed in an update.'
  return [
    ...(old.value === now.value ? [] : [forbidden('value', because)]),
    ...(old.preemptionPolicy === now.preemptionPolicy ? [] : [forbidden('preemptionPolicy', because)]),
  ]
}

const systemPrefix = 'system-'

/** The prefix is for the built-in classes, and so are the highest values. */
function rankProblems(name: string, value: number): readonly Problem[] {
  if (!name.startsWith(systemPrefix)) {
    if (value <= highestUserPriority) return []
    return [forbidden('value', `maximum allowed value of a user defined priority is ${highestUserPriority}`)]
  }
  const known = systemPriorityClasses.find(({ metadata }) => metadata.name === name)
  if (known?.value === value) return []
  const reserved = `priority class names with '${systemPrefix}' prefix are reserved for system use only`
  const error =
    known === undefined
      ? `${name} is not a known system priority class`
      : `value of ${name} PriorityClass must be ${known.value}`
  return [forbidden('metadata.name', `${reserved}. error: ${error}`)]
}
