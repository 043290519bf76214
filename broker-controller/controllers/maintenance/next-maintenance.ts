/**
 * How the machines of a fleet are maintained, one after the other: which begins now, what comes next for those that have begun, and why
 * it pauses. Decides only. The flow of data:
 *
 * - The agent reports pending security updates and a required reboot in an annotation of its Node (`api/node/os-updates.ts`).
 * - An operator writes the rules into a ConfigMap (`api/node/fleet-maintenance.ts`); without them nothing begins.
 * - The controller writes a record on each Node that has its turn (`api/node/node-maintenance.ts`). The records are the lock, and all
 *   that is remembered: another controller continues where this one ended. The cordon and the record are one write.
 * - Draining: pods are evicted by the API, so that disruption budgets and policies decide as they do for `kubectl drain`.
 * - Upgrading: the node receives the id of the record in its `desired` message, installs, and reports the id with the outcome.
 * - Rebooting: the request is that of an operator (`api/node/remote-reboot.ts`). It is over with another boot ID.
 * - Checking: the node is Ready and has no fault that it did not have before, for a while. Then its own cordon is taken back.
 * - A node that fails pauses all until an operator resumes: those that are in the middle of it finish, and none begins.
 */
import type { MaintenanceRow, MaintenanceStatus } from '../../../api/node/fleet-maintenance.ts'
import { isWindowOpen, readDailyWindow, windowOpensMs, windowStartText } from '../../../api/text/daily-window.ts'
import { freePlaces } from '../rollouts/node-places.ts'
import type { ResumedState } from '../rollouts/operator-resume.ts'
import type { MaintenanceRules } from './maintenance-rules.ts'
import {
  firstStep,
  isUnderMaintenance,
  type MaintenanceNode,
  type NodeStep,
  needOf,
  nodeStep,
  sinceMsOf,
  stepDueMs,
} from './node-step.ts'

export type MaintenanceState = ResumedState & {
  /** Why nothing begins until an operator resumes it. */
  readonly paused?: string
}

export type MaintenanceFacts = {
  readonly rules: MaintenanceRules
  readonly nodes: readonly MaintenanceNode[]
  readonly nowMs: number
}

export type MaintenancePlan = {
  readonly state: MaintenanceState
  readonly steps: readonly NodeStep[]
  /** When time alone changes the decision; undefined: never. */
  readonly dueMs: number | undefined
  readonly status: MaintenanceStatus
}

const mostRows = 50

export function nextMaintenance(before: MaintenanceState, facts: MaintenanceFacts): MaintenancePlan {
  const { rules, nodes, nowMs } = facts
  const { resumedMs = Number.NEGATIVE_INFINITY } = before
  const paused = before.paused ?? failureOf(nodes, resumedMs)
  const steps = nodes.flatMap(
    (node) => nodeStep(node, { rules, isPaused: paused !== undefined, resumedMs, nowMs }) ?? [],
  )
  const waiting = nodes.filter((node) => isDue(node, facts)).sort(inTurn)
  const closedUntilMs = closedUntil(rules, nowMs)
  const begin = paused === undefined && closedUntilMs === undefined ? beginning(waiting, facts) : []
  const state = paused === undefined ? before : { ...before, paused }
  return {
    state,
    steps: [...steps, ...begin.map((node) => firstStep(node, nowMs))],
    dueMs: dueOf(facts, paused === undefined ? closedUntilMs : undefined),
    status: statusOf(facts, { paused, waiting: waiting.length, begun: begin.length, closedUntilMs }),
  }
}

/** Why the maintenance must pause: the first node that failed and no operator has looked at. */
function failureOf(nodes: readonly MaintenanceNode[], resumedMs: number): string | undefined {
  const failures = nodes
    .filter(({ record }) => record?.phase === 'Failed' && sinceMsOf(record) > resumedMs)
    .sort((one, other) => timeOf(one) - timeOf(other))
  const [first] = failures
  if (first === undefined) return undefined
  const more = failures.length === 1 ? '' : `, and ${failures.length - 1} more nodes failed`
  return `The maintenance of ${first.name} failed: ${first.record?.reason ?? 'no reason is kept'}${more}`
}

/** When the node's record changed last; never: long ago. */
function timeOf({ record }: MaintenanceNode): number {
  return record === undefined ? 0 : sinceMsOf(record)
}

/** Why a node that needs maintenance cannot have it now. Undefined: it can. */
function obstacleOf(node: MaintenanceNode): string | undefined {
  const { report, canReboot, isCordoned, isReady, isOnTrial } = node
  if (needOf(node) === 'reboot' && !canReboot)
    return 'it requires a reboot, and the configuration of its agent does not have enableRemoteReboot: true'
  if (report?.upgrades !== true && needOf(node) === undefined)
    return 'it has security updates, and the configuration of its agent does not have osUpgrades: true'
  if (!isReady) return 'it is not Ready'
  if (isCordoned) return 'it is cordoned by somebody'
  return isOnTrial ? 'a release of its agent is on trial' : undefined
}

/** It has pending security updates or requires a reboot, and is not under maintenance. */
function isNeedy(node: MaintenanceNode): boolean {
  const { report, record } = node
  const isNeeded = report !== undefined && (report.rebootRequired || (report.security ?? 0) > 0)
  return isNeeded && !isUnderMaintenance(node) && record?.phase !== 'Failed'
}

function isDue(node: MaintenanceNode, { rules, nowMs }: MaintenanceFacts): boolean {
  const { record } = node
  const isEnd = record !== undefined && record.phase !== 'Postponed'
  const hasHad = isEnd && nowMs - sinceMsOf(record) < rules.againSeconds * 1000
  return isNeedy(node) && !hasHad && needOf(node) !== undefined && obstacleOf(node) === undefined
}

/** The machines of controllers last, and of the others the one first whose last maintenance is the longest ago. */
function inTurn(one: MaintenanceNode, other: MaintenanceNode): number {
  return (
    Number(one.isController) - Number(other.isController) ||
    timeOf(one) - timeOf(other) ||
    (one.name < other.name ? -1 : 1)
  )
}

/** As many as the limits leave. */
function beginning(
  waiting: readonly MaintenanceNode[],
  { rules, nodes }: MaintenanceFacts,
): readonly MaintenanceNode[] {
  const free = freePlaces(rules)
  for (const node of nodes) if (isUnderMaintenance(node)) free.take(node)
  return waiting.filter((node) => {
    if (!free.has(node)) return false
    free.take(node)
    return true
  })
}

/** When the window opens; undefined: it is open, or there is none. */
function closedUntil({ window }: MaintenanceRules, nowMs: number): number | undefined {
  const read = window === undefined ? undefined : readDailyWindow(window)
  return read === undefined || isWindowOpen(read, nowMs) ? undefined : windowOpensMs(read, nowMs)
}

/** The first time after now at which time alone changes the decision. */
function dueOf({ rules, nodes, nowMs }: MaintenanceFacts, closedUntilMs: number | undefined): number | undefined {
  let least = closedUntilMs ?? Number.POSITIVE_INFINITY
  for (const node of nodes) {
    const dueMs = stepDueMs(node, rules)
    if (dueMs !== undefined && dueMs > nowMs) least = Math.min(least, dueMs)
  }
  return least === Number.POSITIVE_INFINITY ? undefined : least
}

type Outline = {
  readonly paused: string | undefined
  readonly waiting: number
  readonly begun: number
  readonly closedUntilMs: number | undefined
}

function statusOf({ rules, nodes }: MaintenanceFacts, outline: Outline): MaintenanceStatus {
  const active = nodes.filter(isUnderMaintenance)
  const failed = nodes.filter(({ record }) => record?.phase === 'Failed')
  const unable = nodes.flatMap((node) => {
    const because = isNeedy(node) ? obstacleOf(node) : undefined
    return because === undefined ? [] : [{ node: node.name, phase: '', since: '', message: because }]
  })
  return {
    ...summaryOf(rules, active.length, outline),
    counts: {
      nodes: nodes.length,
      securityUpdates: nodes.filter(({ report }) => (report?.security ?? 0) > 0).length,
      rebootRequired: nodes.filter(({ report }) => report?.rebootRequired === true).length,
      due: outline.waiting - outline.begun,
      ...{ active: active.length + outline.begun, failed: failed.length, unable: unable.length },
    },
    active: active.slice(0, mostRows).map((node) => rowOf(node, waitText(node))),
    failed: failed.slice(0, mostRows).map((node) => rowOf(node, node.record?.reason ?? '')),
    unable: unable.slice(0, mostRows),
  }
}

function summaryOf(
  { window }: MaintenanceRules,
  active: number,
  { paused, waiting, begun, closedUntilMs }: Outline,
): Pick<MaintenanceStatus, 'phase' | 'message'> {
  if (paused !== undefined) return { phase: 'Paused', message: paused }
  if (active + begun > 0) return { phase: 'Working', message: `${active + begun} nodes are under maintenance` }
  if (waiting === 0) return { phase: 'Idle', message: 'No node waits for maintenance' }
  const read = window === undefined ? undefined : readDailyWindow(window)
  const opens =
    read === undefined || closedUntilMs === undefined ? '' : `: the window opens at ${windowStartText(read)} UTC`
  return { phase: 'Waiting', message: `${waiting} nodes wait for maintenance${opens}` }
}

function waitText({ podsLeft, report, record }: MaintenanceNode): string {
  const [first, ...more] = podsLeft
  if (first !== undefined) return `waits for ${first}${more.length === 0 ? '' : ` and ${more.length} more`}`
  if (record?.phase !== 'Upgrading' || report?.upgrade?.id !== record.id) return ''
  return report.upgrade.outcome === 'running' ? 'the upgrade runs' : ''
}

function rowOf({ name, record }: MaintenanceNode, message: string): MaintenanceRow {
  return { node: name, phase: record?.phase ?? '', since: record?.since ?? '', message }
}
