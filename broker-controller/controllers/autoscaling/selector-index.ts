/** Which autoscalers select a pod: two of them would scale each other's target (hpaSelectors in pkg/controller/podautoscaler/horizontal.go). */
import type { Labels } from '../../../api/selectors.ts'

type Matches = (labels: Labels | undefined) => boolean
type Labelled = { readonly metadata: { readonly labels?: Labels | undefined } }

export interface SelectorIndex {
  /** What the target of the autoscaler selected last. */
  set(key: string, namespace: string, matches: Matches): void
  remove(key: string): void
  /** The keys of all autoscalers of the namespace that select one of the pods, sorted. */
  selecting(namespace: string, pods: readonly Labelled[]): readonly string[]
}

export function selectorIndex(): SelectorIndex {
  const known = new Map<string, { readonly namespace: string; readonly matches: Matches }>()
  return {
    set: (key, namespace, matches) => void known.set(key, { namespace, matches }),
    remove: (key) => void known.delete(key),
    selecting(namespace, pods) {
      const all = [...known].filter(([, one]) => one.namespace === namespace)
      return all
        .filter(([, { matches }]) => pods.some(({ metadata }) => matches(metadata.labels)))
        .map(([key]) => key)
        .sort()
    },
  }
}
