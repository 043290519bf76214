/** Labels of nodes that are deprecated (pkg/api/node/util.go). */
import type { NodeSelectorTerm } from '../pod.ts'

const deprecated: { readonly [label: string]: string } = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'app.kubernetes.io/created-by': 'deprecated since v1.9',
  'scheduler.alpha.kubernetes.io/preferAvoidPods': 'deprecated since v1.22; use Taints and Tolerations instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
}

/** What to use in the place of the label; undefined: it is not deprecated. */
export function deprecatedNodeLabel(label: string): string | undefined {
  return Object.hasOwn(deprecated, label) ? deprecated[label] : undefined
}

/** Warnings of a term at the path `at`. */
export function nodeTermWarnings(at: string, { matchExpressions = [] }: NodeSelectorTerm): readonly string[] {
  return matchExpressions.flatMap(({ key }, index) => {
    const message = deprecatedNodeLabel(key)
    return message === undefined ? [] : [`${at}.matchExpressions[${index}].key: ${key} is ${message}`]
  })
}
