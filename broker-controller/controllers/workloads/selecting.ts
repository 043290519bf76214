/** What the selectors of owners select, each read once. */
import type { LabelSelector } from '../../../api/meta.ts'
import { type Labels, matchesLabels, requirementsOf } from '../../../api/selectors.ts'

export type Selects = (labels: Labels | undefined) => boolean

/** Of each owner; undefined: its selector is absent or wrong, and selects nothing. */
export function selecting<O extends { readonly spec?: object }>(
  selectorOf: (owner: O) => LabelSelector | undefined,
): (owner: O) => Selects | undefined {
  const known = new WeakMap<object, Selects | 'nothing'>()
  const read = (owner: O): Selects | 'nothing' => {
    const requirements = requirementsOf(selectorOf(owner))
    if (requirements?.ok !== true) return 'nothing'
    const { value } = requirements
    return (labels) => matchesLabels(value, labels)
  }
  return (owner) => {
    const { spec } = owner
    if (spec === undefined) return undefined
    const selects = known.get(spec) ?? read(owner)
    known.set(spec, selects)
    return selects === 'nothing' ? undefined : selects
  }
}
