/** A node receives no Secret that none of its pods names. */

import { secretsOf } from '../../api/pod/pod-references.ts'
import type { Pod } from '../../api/pod.ts'
import { secretsIn } from '../people/secrets.ts'
import type { TimedFact } from '../story/facts.ts'
import { type Invariant, withEntry, withoutEntry } from './invariant.ts'

type Needs = { readonly node: string; readonly secrets: ReadonlySet<string>; readonly goneMs: number | undefined }
/** By the name of the pod. */
type NeedsOfPods = ReadonlyMap<string, Needs>

/** The message of a node follows the end of a pod after a pause. */
const pausedMs = 5_000

export const secretsStay: Invariant<NeedsOfPods> = {
  name: 'a node receives only the Secrets that its pods name',
  initial: new Map(),
  meets: (fact) => fact.kind === 'delivered' && secretsIn(fact.body).length > 0,
  next(pods, fact) {
    if (fact.kind === 'stored' && fact.resource === 'pods') return { state: afterPod(pods, fact) }
    if (fact.kind !== 'delivered') return { state: pods }
    const named = new Set(
      [...pods.values()]
        .filter(({ node, goneMs }) => node === fact.node && (goneMs === undefined || fact.atMs - goneMs < pausedMs))
        .flatMap(({ secrets }) => [...secrets]),
    )
    const foreign = secretsIn(fact.body).find((name) => !named.has(name))
    if (foreign === undefined) return { state: pods }
    return { state: pods, violation: `${fact.node} receives Secret ${foreign}, which none of its pods names` }
  },
}

function afterPod(pods: NeedsOfPods, { name, body, atMs }: Extract<TimedFact, { kind: 'stored' }> & TimedFact) {
  const before = pods.get(name)
  if (body === undefined) return before === undefined ? pods : withEntry(pods, name, { ...before, goneMs: atMs })
  const pod = JSON.parse(body) as Pod
  const secrets = secretsOf(pod)
  if (pod.spec.nodeName === undefined || secrets.size === 0)
    return before === undefined ? pods : withoutEntry(pods, name)
  return withEntry(pods, name, { node: pod.spec.nodeName, secrets, goneMs: undefined })
}
