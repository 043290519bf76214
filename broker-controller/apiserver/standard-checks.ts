/** Health checks by the names that clients of Kubernetes look for, of what this API has as well. */
import type { BuiltInName } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Store } from '../store/store.ts'
import { checkWithin, type ReadinessCheck } from './system-paths.ts'

export type StandardCheckNeeds = {
  readonly store: Pick<Store, 'get' | 'version'>
  readonly clock: Clock
  /** It has a check of that name of its own. */
  readonly isEtcd: boolean
  /**
   * True: of the objects of a fleet that exists, those that are missing were refused by a store without room, or are for another controller
   * to make.
   */
  readonly isLeftForLater: () => boolean
}

const deadlineMs = 2_000

/** What hooks of kube-apiserver make after its start, and an object of each. */
const madeAtStart: { readonly [hook: string]: readonly [BuiltInName, string] } = {
  'start-system-namespaces-controller': ['namespaces', 'kube-system'],
  'rbac/bootstrap-roles': ['clusterroles', 'cluster-admin'],
  'scheduling/bootstrap-system-priority-classes': ['priorityclasses', 'system-node-critical'],
  'priority-and-fairness-config-producer': ['flowschemas', 'catch-all'],
}

/**
 * `etcd` is the store, whichever it is. None of them is of `livez`: a controller that is started again finds no other store, and meanwhile
 * this one answers reads.
 */
export function standardChecks({
  store,
  clock,
  isEtcd,
  isLeftForLater,
}: StandardCheckNeeds): readonly ReadinessCheck[] {
  const checkOf = (name: string, check: () => Promise<unknown>): ReadinessCheck => ({
    ...checkWithin(name, check, clock, deadlineMs),
    of: ['healthz', 'readyz'],
  })
  const hooks = Object.entries(madeAtStart).map(([hook, [resource, name]]) => {
    let isMade = false
    return checkOf(`poststarthook/${hook}`, async () => {
      // Who deletes it later does not make the API unready.
      isMade ||= (await store.get(resource, { namespace: '', name })) !== undefined
      // A release adds objects to a fleet whose store may be full: those who would free space need the API, and no fleet has no namespaces.
      if (!isMade && (resource === 'namespaces' || !isLeftForLater())) throw new Error('not finished')
    })
  })
  const version = () => store.version()
  return [
    ...(isEtcd ? [] : [checkOf('etcd', version)]),
    { ...checkOf('informer-sync', version), of: ['readyz'] },
    ...hooks,
  ]
}
