/**
 * Loop: gives every ClusterRole with an aggregation rule the rules of the ClusterRoles that it selects
 * (pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go).
 */
import { isDeepStrictEqual } from 'node:util'
import type { ClusterRole } from '../../../api/access/cluster-role.ts'
import type { PolicyRule } from '../../../api/access/role.ts'
import { matchesLabels, requirementsOf } from '../../../api/selectors.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store } from '../../store/store.ts'

export type RoleAggregationNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/** A manifest brings several roles within moments. */
const debounceMs = 20

export function roleAggregationController({ store, clock, log }: RoleAggregationNeeds): Loop {
  const run = async (signal: AbortSignal) => {
    const queue = workQueue(clock)
    const roles = informer({ store, clock, log }, 'clusterroles', () => {
      for (const { metadata, aggregationRule } of roles.all()) {
        if (aggregationRule !== undefined) queue.addAfter(keyText(metadata), debounceMs)
      }
    })
    const reconcile = async (key: string) => {
      await rewrite({ store, clock }, 'clusterroles', {
        key: keyFrom(key),
        change: (role) => {
          const rules = aggregatedRules(role, [...roles.all()])
          return rules === undefined || isDeepStrictEqual(rules, role.rules ?? []) ? undefined : { ...role, rules }
        },
      })
      return undefined
    }
    const aggregate = async (until: AbortSignal) => {
      await roles.listed
      if (!until.aborted) await runController({ name: 'role-aggregation', reconcile }, queue, log, until)
    }
    await runLoops(
      [
        { name: 'cluster-roles', run: roles.run },
        { name: 'aggregate', run: aggregate },
      ],
      signal,
      log,
    )
  }
  return { name: 'role-aggregation', run }
}

/**
 * The rules of the roles that `role` selects, by name, each rule once; undefined for a role without an aggregation rule,
 * whose rules are its author's.
 */
export function aggregatedRules(
  { metadata, aggregationRule }: ClusterRole,
  roles: readonly ClusterRole[],
): readonly PolicyRule[] | undefined {
  if (aggregationRule === undefined) return undefined
  const others = roles
    .filter((other) => other.metadata.name !== metadata.name)
    .sort((one, other) => ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1))
  const rules = new Map<string, PolicyRule>()
  for (const selector of aggregationRule.clusterRoleSelectors ?? []) {
    const requirements = requirementsOf(selector)
    if (requirements?.ok !== true) continue
    for (const other of others) {
      if (!matchesLabels(requirements.value, other.metadata.labels)) continue
      for (const rule of other.rules ?? []) rules.set(ruleText(rule), rule)
    }
  }
  return [...rules.values()]
}

/** Equal for equal rules, whatever the order of their fields. */
function ruleText({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): string {
  return JSON.stringify([verbs, apiGroups, resources, resourceNames, nonResourceURLs].map((list) => list ?? []))
}
