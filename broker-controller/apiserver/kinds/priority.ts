/** How much does a pod matter? Its class says so; what its author writes beside that may only repeat it. */
import type { Pod } from '../../../api/pod.ts'
import { highestUserPriority, type PriorityClass, systemPriorityClasses } from '../../../api/priority-class.ts'
import { forbidden, type Problem } from '../../../api/problem.ts'
import { policyProblems } from '../../../api/validation/scheduling-validation.ts'

export type Admitted<T> =
  | { readonly ok: true; readonly object: T }
  /** The sentence of a 403. */
  | { readonly ok: false; readonly because: string }

/** The new pod with the priority of its class, or of the default class, or 0. */
export function withPriority(pod: Pod, classes: readonly PriorityClass[]): Admitted<Pod> {
  const asked = pod.spec.priorityClassName ?? ''
  const found = asked === '' ? defaultClass(classes) : classes.find(({ metadata }) => metadata.name === asked)
  if (found === undefined && asked !== '') return no(`no PriorityClass with name ${asked} was found`)
  const priority = found?.value ?? 0
  const preemptionPolicy = found?.preemptionPolicy ?? 'PreemptLowerPriority'
  const { priority: given = priority, preemptionPolicy: policy = preemptionPolicy } = pod.spec
  if (given !== priority) {
    return no(
      `the integer value of priority (${given}) must not be provided in pod spec; ` +
        `priority admission controller computed ${priority} from the given PriorityClass name`,
    )
  }
  if (policy !== preemptionPolicy) {
    return no(
      `the string value of PreemptionPolicy (${policy}) must not be provided in pod spec; ` +
        `priority admission controller computed ${preemptionPolicy} from the given PriorityClass name`,
    )
  }
  const name = found?.metadata.name ?? ''
  const spec = { ...pod.spec, ...(name !== '' && { priorityClassName: name }), priority, preemptionPolicy }
  return { ok: true, object: { ...pod, spec } }
}

/** Of several that say they are the default, the least. */
function defaultClass(classes: readonly PriorityClass[]): PriorityClass | undefined {
  const defaults = classes.filter(({ globalDefault }) => globalDefault === true)
  return defaults.reduce<PriorityClass | undefined>(
    (least, one) => (least === undefined || one.value < least.value ? one : least),
    undefined,
  )
}

/** One class at a time is the default. */
export function admitPriorityClass(one: PriorityClass, classes: readonly PriorityClass[]): Admitted<PriorityClass> {
  const other = classes.find(
    ({ globalDefault, metadata }) => globalDefault === true && metadata.name !== one.metadata.name,
  )
  if (one.globalDefault !== true || other === undefined) return { ok: true, object: one }
  return no(`PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`)
}

export function priorityClassProblems({ metadata, value, preemptionPolicy = '' }: PriorityClass): readonly Problem[] {
  return [...rankProblems(metadata.name ?? '', value), ...policyProblems('preemptionPolicy', preemptionPolicy)]
}

export function priorityClassChangeProblems(old: PriorityClass, now: PriorityClass): readonly Problem[] {
  const because = 'may not be changed in an update.'
  return [
    ...(old.value === now.value ? [] : [forbidden('value', because)]),
    ...(old.preemptionPolicy === now.preemptionPolicy ? [] : [forbidden('preemptionPolicy', because)]),
  ]
}

const systemPrefix = 'system-'

/** The prefix is for the classes we know, and so are the highest values. */
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

function no(because: string): { readonly ok: false; readonly because: string } {
  return { ok: false, because }
}
