/** Text from messages that becomes a part of a rule: what is not exactly of the expected form is left out. */
import { dnsLabelProblem } from '../../../api/names.ts'
import { isAddressOf, isRangeOf, type RuleFamily } from '../rule-family.ts'

/** Those of the family, each once: others among them are not for its table. */
export function addressesOf(family: RuleFamily, addresses: readonly string[] | undefined): readonly string[] {
  return [...new Set(addresses?.filter((address) => isAddressOf(family, address)))]
}

/** The ranges of the family among `ranges`. kube-proxy accepts blanks around them, as the API does. */
export function rangesOf(family: RuleFamily, ranges: readonly string[] | undefined): readonly string[] {
  const trimmed = (ranges ?? []).map((range) => range.trim())
  return [...new Set(trimmed.filter((range) => isRangeOf(family, range)))]
}

/** Names of namespaces and Services are DNS labels: together they fit in the 255 characters of a chain's name. */
export function isLabel(text: string): boolean {
  return dnsLabelProblem(text) === undefined
}
