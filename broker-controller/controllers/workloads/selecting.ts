/** What the selectors of owners select, each read once. */
import type { LabelSelector } from '../../../api/meta.ts'
import { type LabelMatcher, labelMatcher, requirementsOf } from '../../../api/selectors.ts'

/** Matcher of each owner's selector; undefined: the selector is absent or invalid, and selects nothing. */
export function selecting<O extends { readonly spec?: object }>(
  selectorOf: (owner: O) => LabelSelector | undefined,
): (owner: O) => LabelMatcher | undefined {
  const known = new WeakMap<object, LabelMatcher | 'nothing'>()
  const read = (owner: O): LabelMatcher | 'nothing' => {
    const requirements = requirementsOf(selectorOf(owner))
    return requirements?.ok === true ? labelMatcher(requirements.value) : 'nothing'
  }
  return (owner) => {
    const { spec } = owner
    if (spec === undefined) return undefined
    const selects = known.get(spec) ?? read(owner)
    known.set(spec, selects)
    return selects === 'nothing' ? undefined : selects
  }
}
