/**
 * The priority of a pod: its class states it, and what its author writes beside that may only repeat it
 * (plugin/pkg/admission/priority/admission.go).
 */
import type { Pod } from '../../../api/pod.ts'
import type { PriorityClass } from '../../../api/priority-class.ts'

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

/** The default class with the lowest value. */
function defaultClass(classes: readonly PriorityClass[]): PriorityClass | undefined {
  const defaults = classes.filter(({ globalDefault }) => globalDefault === true)
  return defaults.reduce<PriorityClass | undefined>(
    (least, one) => (least === undefined || (one.value ?? 0) < (least.value ?? 0) ? one : least),
    undefined,
  )
}

function no(because: string): { readonly ok: false; readonly because: string } {
  return { ok: false, because }
}
