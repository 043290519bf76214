/** The beta twins of a node's os and arch labels follow the stable ones: old selectors still name them. */
import type { Node } from '../../../api/node.ts'

const twins = [
  ['kubernetes.io/os', 'beta.kubernetes.io/os'],
  ['kubernetes.io/arch', 'beta.kubernetes.io/arch'],
] as const

/** Undefined: they do, or there is no stable label to follow. */
export function withStableLabels<N extends Node>(node: N): N | undefined {
  const labels = node.metadata.labels ?? {}
  const wrong = twins.filter(([stable, beta]) => labels[stable] !== undefined && labels[stable] !== labels[beta])
  if (wrong.length === 0) return undefined
  const right = Object.fromEntries(wrong.map(([stable, beta]) => [beta, labels[stable] ?? '']))
  return { ...node, metadata: { ...node.metadata, labels: { ...labels, ...right } } }
}
