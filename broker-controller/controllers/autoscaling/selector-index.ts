/** Which autoscalers select a pod: two of them would scale each other's target (hpaSelectors in pkg/controller/podautoscaler/horizontal.go). */
import type { Labels } from '../../../api/selectors.ts'
import { finishedInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'

type Matches = (labels: Labels | undefined) => boolean
type Labelled = { readonly metadata: { readonly labels?: Labels | undefined } }

export interface SelectorIndex {
  /** What the target of the autoscaler selected last. */
  set(key: string, namespace: string, matches: Matches): void
  remove(key: string): void
  /** The keys of all autoscalers of the namespace that select one of the pods, sorted. Very many take several turns. */
  selecting(namespace: string, pods: readonly Labelled[]): Promise<readonly string[]>
}

export function selectorIndex(): SelectorIndex {
  const known = new Map<string, { readonly namespace: string; readonly matches: Matches }>()
  return {
    set: (key, namespace, matches) => void known.set(key, { namespace, matches }),
    remove: (key) => void known.delete(key),
    async selecting(namespace, pods) {
      const found: string[] = []
      for (const [key, one] of [...known]) {
        if (one.namespace === namespace && (await finishedInTurns(selectsAny(one.matches, pods)))) found.push(key)
      }
      return found.sort()
    },
  }
}

function* selectsAny(matches: Matches, pods: readonly Labelled[]): Steps<boolean> {
  for (const { metadata } of pods) {
    yield
    if (matches(metadata.labels)) return true
  }
  return false
}
