/** The update entity of the fleet: what it shows, and what its button does. Decides only. */
import type { StoredStatus } from '../../../api/node/agent-rollout.ts'
import type { RolloutWish, StoredRollout } from '../../controllers/rollouts/rollout-object.ts'
import type { CommittedVersion } from './committed-versions.ts'
import { shortLine } from './device-ids.ts'
import type { fleetUpdateKeys } from './machine-entities.ts'

export type WatchedRollout = StoredRollout & {
  /** Undefined: the controller has not decided yet. */
  readonly status: StoredStatus | undefined
  readonly isPausedByOperator: boolean
}

export type FleetUpdateFacts = {
  /** The oldest version that a connected node runs. */
  readonly installed: CommittedVersion | undefined
  /** A rollout of the newest release that is served; undefined: none is. */
  readonly newest: RolloutWish | undefined
  /** Undefined: there is none, or it cannot be used. */
  readonly rollout: WatchedRollout | undefined
}

/** `agents_percent` null: nothing is in progress. */
export type FleetUpdateValues = {
  readonly [K in (typeof fleetUpdateKeys)[number]]: K extends 'agents_percent' ? number | null : string
}

export type InstallStep =
  | { readonly step: 'start'; readonly wish: RolloutWish }
  | { readonly step: 'resume'; readonly version: string }
  | { readonly step: 'none'; readonly because: string }

const longestVersion = 64
/** Home Assistant refuses a summary of more than 255 characters, and with it the whole state. */
const longestSummary = 250

/** Undefined: there is nothing to update to, or no agent that updates itself, so the fleet has no such entity. */
export function fleetUpdateValues({ installed, newest, rollout }: FleetUpdateFacts): FleetUpdateValues | undefined {
  const latest = newer(newest?.target, rollout?.wish.target)
  if (installed === undefined || latest === undefined) return undefined
  const version = installed.sequence >= latest.sequence ? installed.version : latest.version
  return {
    agents_update: shortLine(installed.version, longestVersion),
    agents_latest: shortLine(version, longestVersion),
    agents_percent: rollout?.wish.target.digest === latest.digest ? percentOf(rollout) : null,
    agents_summary: shortLine(rollout === undefined ? '' : summaryOf(rollout), longestSummary),
  }
}

/** A rollout of the newest release begins, or goes on after failures. What an operator pauses only an operator resumes. */
export function installStep({ installed, newest, rollout }: FleetUpdateFacts): InstallStep {
  if (rollout?.isPausedByOperator) return { step: 'none', because: 'an operator pauses the rollout' }
  const target = rollout?.wish.target
  if (newest !== undefined && (target === undefined || target.sequence < newest.target.sequence))
    return installed === undefined || installed.sequence >= newest.target.sequence
      ? { step: 'none', because: 'no node that updates itself runs an older version' }
      : { step: 'start', wish: newest }
  if (rollout === undefined) return { step: 'none', because: 'no release is served' }
  const { version } = rollout.wish.target
  if (rollout.state.paused !== undefined) return { step: 'resume', version }
  return { step: 'none', because: `the rollout of ${version} is under way or complete` }
}

type Target = RolloutWish['target']

function newer(one: Target | undefined, other: Target | undefined): Target | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one.sequence > other.sequence ? one : other
}

/** The nodes that have the release, of all; null: it does not go on. */
function percentOf({ state, status }: WatchedRollout): number | null {
  if (state.paused !== undefined || status?.phase === 'Complete') return null
  const { nodes, committed } = countsOf(status)
  return nodes === 0 ? 0 : Math.min(100, Math.floor((committed * 100) / nodes))
}

function summaryOf({ wish, state, status }: WatchedRollout): string {
  const { version } = wish.target
  const { nodes, committed, failed } = countsOf(status)
  const have = `${committed} of ${nodes} nodes have ${version}${failed > 0 ? `, ${failed} failed with it` : ''}`
  if (state.paused !== undefined) return `Paused: ${state.paused}. ${have}.`
  return status === undefined ? `The rollout of ${version} begins.` : `${have}. ${status.message}.`
}

function countsOf(status: StoredStatus | undefined) {
  const sum = (of: 'nodes' | 'committed' | 'failed') =>
    (status?.rings ?? []).reduce((all, ring) => all + Math.max(0, ring[of]), 0)
  return { nodes: sum('nodes'), committed: sum('committed'), failed: sum('failed') }
}
