/** The kinds of worlds: who acts in them, what is watched, and which faults only they have. */
import {
  forgottenChanges,
  lateRestore,
  lostNode,
  type MoreFaults,
  reinstalledNode,
  removalOfCompleted,
  restoredBackup,
  sharedFaults,
} from './faults.ts'
import { simulatedKeeper } from './people/keeper.ts'
import { simulatedOperator } from './people/operator.ts'
import type { User, UserNeeds } from './people/user.ts'
import { podsOfFleet, type WatchedPath } from './people/watcher.ts'

export type WorldKind =
  | 'workloads'
  | 'budgets'
  | 'controllers'
  | 'restores'
  | 'losses'
  | 'late-nodes'
  | 'claims'
  | 'shared-claims'

export type WorldPlan = {
  /** Who acts besides the user. */
  readonly others: readonly ((needs: UserNeeds) => User)[]
  readonly watched: readonly WatchedPath[]
  readonly faults: MoreFaults
  readonly controllers: number
  /** Machines keep the data of claims. */
  readonly hasVolumes?: boolean
}

export const worldPlans: { readonly [kind in WorldKind]: WorldPlan } = {
  /** Deployments, StatefulSets and Jobs that a user changes. */
  workloads: { others: [], watched: [podsOfFleet], faults: [], controllers: 1 },
  /** Besides, Secrets, a disruption budget and evictions; changes are forgotten before all have read them. */
  budgets: {
    others: [simulatedOperator],
    watched: [
      podsOfFleet,
      { resource: 'nodes', path: '/api/v1/nodes' },
      { resource: 'secrets', path: '/api/v1/secrets' },
      { resource: 'deployments', path: '/apis/apps/v1/deployments' },
      { resource: 'replicasets', path: '/apis/apps/v1/replicasets' },
    ],
    faults: [forgottenChanges, forgottenChanges, removalOfCompleted, removalOfCompleted],
    controllers: 1,
  },
  /** Two controllers share a store in etcd: one leads, the other one answers reads. */
  controllers: { others: [], watched: [podsOfFleet], faults: sharedFaults, controllers: 2 },
  /** The store is replaced by an older backup while pods run. */
  restores: {
    ...{ others: [], watched: [podsOfFleet], controllers: 1 },
    faults: [restoredBackup, restoredBackup, restoredBackup],
  },
  /** One node after another is lost for so long that its pods are evicted. Most draws are of these: others would give a new grace period. */
  losses: { others: [], watched: [podsOfFleet], faults: Array.from({ length: 60 }, () => lostNode), controllers: 1 },
  /** A backup replaces the store while a node is cut off that runs newer pods. Most draws are of these. */
  'late-nodes': {
    ...{ others: [], watched: [podsOfFleet], controllers: 1 },
    faults: Array.from({ length: 60 }, () => lateRestore),
  },
  /** A second person has workloads with claims, and deletes and undeletes them. Machines are installed again, and the store is restored. */
  claims: {
    ...{ others: [simulatedKeeper], watched: [podsOfFleet], controllers: 1, hasVolumes: true },
    faults: [lostNode, reinstalledNode, reinstalledNode, restoredBackup, restoredBackup],
  },
  /** The same with two controllers. */
  'shared-claims': {
    ...{ others: [simulatedKeeper], watched: [podsOfFleet], controllers: 2, hasVolumes: true },
    faults: [lostNode, reinstalledNode, ...sharedFaults],
  },
}

export const worldKinds = Object.keys(worldPlans) as readonly WorldKind[]

const drawnKinds: readonly WorldKind[] = ['workloads', 'budgets', 'controllers', 'restores']

/** The world of a seed, where no other one is asked for. */
export function worldOf(seed: number): WorldKind {
  return drawnKinds[seed % drawnKinds.length] ?? 'workloads'
}

export function isWorldKind(text: string): text is WorldKind {
  return worldKinds.some((kind) => kind === text)
}
