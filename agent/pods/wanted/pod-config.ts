/** What is wanted here: what the control plane said last, and what the machine runs of its own accord. */

import type { Desired } from '../../../api/desired.ts'
import type { Pod } from '../../../api/pod.ts'
import { compareInstants } from '../../../daemon/clock.ts'
import { pathOf, wantedHere } from './desired-pods.ts'

export interface WantedPods {
  /** As last heard, in this life or the one before. */
  readonly desired: Desired | undefined
  /** It was heard, and is all: what the control plane does not name there it wants no more. */
  readonly isWhole: boolean
  /** The machine's own; undefined while they are not known. */
  readonly own: readonly Pod[] | undefined
  /** All that may run, by UID. */
  readonly all: ReadonlyMap<string, Pod>
  /** The machine's own, those that something is left of included. */
  readonly ownUIDs: ReadonlySet<string>
  /** Wanted, and nobody knows how: what there is of them stays as it is. */
  readonly misread: ReadonlySet<string>
  /** Where not all fit, the older ones have the older right. Each once. */
  oldestFirst(uids: Iterable<string>): readonly string[]
  /** Has everybody been heard who may want this pod, or another in its place? What nobody wants is removed only then. */
  isDecided(uid: string): boolean
  /** These three give the UIDs of the machine's own pods that may run from now on, or may no longer. */
  hear(message: Desired, isAll?: boolean): readonly string[]
  hearOwn(pods: readonly Pod[] | undefined): readonly string[]
  /** What was in the way of some may be gone. */
  lookAgain(): readonly string[]
}

const nothing: readonly never[] = []

/** `here`: what there is something of on the machine, by UID, with its namespace and name. */
export function wantedPods(here: () => ReadonlyMap<string, string>): WantedPods {
  let desired: Desired | undefined
  let isWhole = false
  let own: readonly Pod[] | undefined = nothing
  let ownUIDs: ReadonlySet<string> = new Set()
  let all: ReadonlyMap<string, Pod> = new Map()

  const lookAgain = () => {
    const before = all
    const paths = here()
    all = wantedHere(desired, own ?? nothing, paths)
    const declared = (own ?? nothing).map(({ metadata }) => metadata.uid ?? '')
    const known = new Set([...ownUIDs, ...declared])
    ownUIDs = new Set([...[...ownUIDs].filter((uid) => paths.has(uid)), ...declared])
    return [...known].filter((uid) => before.get(uid) !== all.get(uid))
  }

  const misread = () => new Set((desired?.misread ?? []).flatMap(({ uid }) => (all.has(uid) ? [] : [uid])))

  return {
    get desired() {
      return desired
    },
    get isWhole() {
      return isWhole
    },
    get own() {
      return own
    },
    get all() {
      return all
    },
    get ownUIDs() {
      return ownUIDs
    },
    get misread() {
      return misread()
    },
    oldestFirst(uids) {
      const born = (uid: string) => all.get(uid)?.metadata.creationTimestamp ?? ''
      return [...new Set(uids)].sort((a, b) => compareInstants(born(a), born(b)))
    },
    isDecided(uid) {
      if (misread().has(uid)) return false
      if (all.has(uid) || ownUIDs.has(uid) || (isWhole && own !== undefined)) return true
      const path = here().get(uid)
      return (own ?? nothing).some((pod) => pathOf(pod) === path)
    },
    hear(message, isAll = true) {
      desired = message
      isWhole = isAll
      return lookAgain()
    },
    hearOwn(pods) {
      own = pods
      return lookAgain()
    },
    lookAgain,
  }
}
