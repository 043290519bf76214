/** The desired pods of this node: from the controller, and static pods (PodConfig in pkg/kubelet/config/config.go). */

import type { Desired } from '../../../api/desired.ts'
import type { Pod } from '../../../api/pod.ts'
import { compareInstants } from '../../../daemon/clock.ts'
import { podPath, wantedHere } from './desired-pods.ts'

/** `copy`: the old copy of the checkpoint. */
export type DesiredSource = 'controller' | 'checkpoint' | 'copy'

export interface WantedPods {
  /** The last message of the controller, or the checkpoint's. */
  readonly desired: Desired | undefined
  /** `desired` is complete: a pod that it does not list is no longer desired. False for an old copy of the checkpoint. */
  readonly isWhole: boolean
  /**
   * This process has received `desired` from the controller. Until then more pods may be desired than it lists: the last agent may
   * have received them and, on a slow or full disk, not saved them.
   */
  readonly isConfirmed: boolean
  /** Undefined while the static pod files were not read. */
  readonly staticPods: readonly Pod[] | undefined
  /** All pods that may run, by UID. */
  readonly all: ReadonlyMap<string, Pod>
  /** Static pods, including those without a file that still have containers. */
  readonly staticUIDs: ReadonlySet<string>
  /** Pods that could not be decoded: their containers stay as they are. */
  readonly undecodable: ReadonlySet<string>
  /** Oldest first: older pods have precedence if not all fit. Without duplicates. */
  oldestFirst(uids: Iterable<string>): readonly string[]
  /** All sources that may desire this pod, or another of its name, were read. Before that, its containers and volumes are kept. */
  isDecided(uid: string): boolean
  /** These three return the UIDs of static pods that may now run, or may no longer run. */
  setDesired(message: Desired, source?: DesiredSource): readonly string[]
  setStatic(pods: readonly Pod[] | undefined): readonly string[]
  /** Checks static pods that wait until the last pod of their name is removed. */
  refresh(): readonly string[]
}

const nothing: readonly never[] = []

/** `here`: namespace and name of each pod with a record, by UID. */
export function wantedPods(here: () => ReadonlyMap<string, string>): WantedPods {
  let desired: Desired | undefined
  let source: DesiredSource = 'copy'
  let staticPods: readonly Pod[] | undefined = nothing
  let staticUIDs: ReadonlySet<string> = new Set()
  let all: ReadonlyMap<string, Pod> = new Map()

  const refresh = () => {
    const before = all
    const paths = here()
    all = wantedHere(desired, staticPods ?? nothing, paths)
    const declared = (staticPods ?? nothing).map(({ metadata }) => metadata.uid ?? '')
    const known = new Set([...staticUIDs, ...declared])
    staticUIDs = new Set([...[...staticUIDs].filter((uid) => paths.has(uid)), ...declared])
    return [...known].filter((uid) => before.get(uid) !== all.get(uid))
  }

  const misread = () => new Set((desired?.misread ?? []).flatMap(({ uid }) => (all.has(uid) ? [] : [uid])))

  return {
    get desired() {
      return desired
    },
    get isWhole() {
      return source !== 'copy'
    },
    get isConfirmed() {
      return source === 'controller'
    },
    get staticPods() {
      return staticPods
    },
    get all() {
      return all
    },
    get staticUIDs() {
      return staticUIDs
    },
    get undecodable() {
      return misread()
    },
    oldestFirst(uids) {
      const born = (uid: string) => all.get(uid)?.metadata.creationTimestamp ?? ''
      return [...new Set(uids)].sort((a, b) => compareInstants(born(a), born(b)))
    },
    isDecided(uid) {
      if (misread().has(uid)) return false
      if (all.has(uid) || staticUIDs.has(uid) || (source === 'controller' && staticPods !== undefined)) return true
      const path = here().get(uid)
      return (staticPods ?? nothing).some((pod) => podPath(pod) === path)
    },
    setDesired(message, from = 'controller') {
      desired = message
      source = from
      return refresh()
    },
    setStatic(pods) {
      staticPods = pods
      return refresh()
    },
    refresh,
  }
}
