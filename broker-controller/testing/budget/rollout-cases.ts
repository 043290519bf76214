/** The rollout of the agent, and the maintenance of machines, over a large fleet. */

import { rolloutKey } from '../../../api/node/agent-rollout.ts'
import {
  type AgentUpdateReport,
  agentReleaseAnnotation,
  agentUpdateAnnotation,
} from '../../../api/node/agent-update.ts'
import { maintenanceKey } from '../../../api/node/fleet-maintenance.ts'
import { type OsReport, osUpdatesAnnotation } from '../../../api/node/os-updates.ts'
import { evictionAnswer } from '../../../api/pod/eviction-answer.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { maintenanceController } from '../../controllers/maintenance/maintenance-controller.ts'
import { maintenanceMetrics } from '../../controllers/maintenance/maintenance-metrics.ts'
import { maintenanceCommands } from '../../controllers/maintenance/maintenance-object.ts'
import { usualMaintenance } from '../../controllers/maintenance/maintenance-rules.ts'
import { rolloutController } from '../../controllers/rollouts/rollout-controller.ts'
import { rolloutMetrics } from '../../controllers/rollouts/rollout-metrics.ts'
import { type RolloutWish, rolloutCommands } from '../../controllers/rollouts/rollout-object.ts'
import { usualRules } from '../../controllers/rollouts/rollout-rules.ts'
import type { StoredObject } from '../../store/store.ts'
import { type ControllerCase, each } from './controller-cases.ts'

const nodes = 10_000
const perLink = 50
const target = { version: '2.0.0', sequence: 20, digest: 'b'.repeat(64), floor: 1 }
const rings: RolloutWish['rules']['rings'] = [
  { name: 'canary', count: 10, soakSeconds: 0 },
  { name: 'early', percent: 1, soakSeconds: 0 },
  { name: 'tenth', percent: 10, soakSeconds: 0 },
]
const wish: RolloutWish = {
  target,
  releases: [target],
  rules: { ...usualRules, rings, perLink: 10, failureCount: 100, failurePercent: 10 },
}

/** Every fourth node has the release, every fourth is on trial, and the others wait for it. */
function updating(at: number): StoredObject<'nodes'> {
  const name = `pi-${at}`
  const outcome = (['committed', 'trial'] as const)[at % 4]
  const [version, sequence] = outcome === 'committed' ? [target.version, target.sequence] : ['1.0.0', 10]
  const release = outcome && { version: target.version, sequence: target.sequence, outcome }
  const report: AgentUpdateReport = { version, sequence, ...(release && { release }) }
  const { floor: _, ...own } = target
  const admission = { ...own, admittedAt: '2026-01-01T00:00:00Z', outcome, outcomeAt: '2026-01-01T00:00:00Z' }
  return aNode({
    name,
    labels: { 'bramble.dev/link': `link-${Math.floor(at / perLink)}` },
    annotations: {
      [agentUpdateAnnotation]: JSON.stringify(report),
      ...(outcome && { [agentReleaseAnnotation]: JSON.stringify(admission) }),
    },
  })
}

export const rolloutCases: readonly ControllerCase[] = [
  {
    what: 'a rollout over 10,000 nodes begins',
    loops: (needs) => [rolloutController({ ...needs, metrics: rolloutMetrics(metricsRegistry()) })],
    fill: ({ store }) => each(nodes, (at) => store.create('nodes', updating(at))),
    act: ({ store }) =>
      store.create('configmaps', {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: rolloutKey,
        data: { rollout: rolloutCommands.start(wish).rollout },
      }),
  },
  {
    what: 'a maintenance over 10,000 nodes begins',
    loops: (needs) => [
      maintenanceController({
        ...needs,
        metrics: maintenanceMetrics(metricsRegistry()),
        evict: async () => evictionAnswer(429),
      }),
    ],
    fill: ({ store }) => each(nodes, (at) => store.create('nodes', needy(at))),
    act: ({ store }) =>
      store.create('configmaps', {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: maintenanceKey,
        data: maintenanceCommands.start({ ...usualMaintenance, atOnce: 1_000 }),
      }),
  },
]

/** Every third node has security updates, every third requires a reboot and does not allow it. */
function needy(at: number): StoredObject<'nodes'> {
  const report: OsReport = {
    ...{ upgrades: true, security: at % 3 === 0 ? 5 : 0, others: 9, packages: ['openssl'] },
    ...{ rebootRequired: at % 3 === 1, rebootBecause: [] },
  }
  return aNode({
    name: `pi-${at}`,
    labels: { 'bramble.dev/link': `link-${Math.floor(at / perLink)}` },
    annotations: { [osUpdatesAnnotation]: JSON.stringify(report) },
  })
}
