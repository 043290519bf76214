/** The judgement of a node at a moment, and the labels, taints and annotations that follow from it. */
import type { Clock } from '../../../daemon/clock.ts'
import type { StoredObject } from '../../store/store.ts'
import { evictionHold, type Hold } from './eviction-hold.ts'
import { withFlappingTaint } from './flapping.ts'
import { type Suspicion, withSuspectedLink } from './link-suspicion.ts'
import { silenceText } from './node-conditions.ts'
import { type NodeHealth, readyCondition, type Silence, silenceOf, steadyAtMs } from './node-health.ts'
import { withStableLabels } from './node-labels.ts'
import type { NodeLifecycleSettings } from './node-lifecycle-settings.ts'
import { judgedFromMs, type NodeEntry, type NodeRoster } from './node-roster.ts'
import {
  type ConditionTaintSettings,
  noExecuteStep,
  withConditionTaints,
  withNoExecuteTaint,
  withoutNoExecuteTaints,
} from './node-taints.ts'
import { type Absence, isExpectedLater, withAbsence } from './planned-absence.ts'

export type Judgement = {
  /** Why its conditions become Unknown, and their message. */
  readonly silence: { readonly is: Silence; readonly text: string } | undefined
  /** Why its pods stay although it has failed. */
  readonly hold: Hold | undefined
  /** Its pods may be evicted: not in the period in which the failure began, not for a connection that just broke, not while held. */
  readonly isProven: boolean
  readonly isFlapping: boolean
  /** Its leave, while it holds. */
  readonly absence: Absence | undefined
  readonly suspectedLink: string | undefined
}

/** Judges the node of this name at this moment; undefined for a node that does not exist. */
export type NodeJudge = (name: string) => Judgement | undefined

export function nodeJudge(
  roster: Pick<NodeRoster, 'get' | 'suspicionOf'>,
  clock: Pick<Clock, 'monotonicMs'>,
  settings: NodeLifecycleSettings,
): NodeJudge {
  return (name) => {
    const [entry, nowMs] = [roster.get(name), clock.monotonicMs()]
    return entry && judgeNode(entry, roster.suspicionOf(name, nowMs), settings, nowMs)
  }
}

export function judgeNode(
  { node, health }: NodeEntry,
  suspicion: Suspicion | undefined,
  settings: NodeLifecycleSettings,
  nowMs: number,
): Judgement {
  const is = silenceOf(health, settings, nowMs)
  const hold = evictionHold(health, suspicion, nowMs, settings)
  const isJudged = nowMs >= judgedFromMs(health, settings)
  return {
    silence: is && { is, text: silenceText(is, health) },
    hold,
    isProven: hold === undefined && isJudged && (readyCondition(node)?.status !== 'Unknown' || is === 'silent'),
    isFlapping: isFlapping(health, settings, nowMs),
    absence: isExpectedLater(health.absence, nowMs) ? health.absence : undefined,
    suspectedLink: suspicion?.link,
  }
}

/**
 * The node with the labels, taints and annotations of this judgement. NoExecute taints are removed at once, swapped when the
 * failure is proven, and never added here. Undefined: the node has all of it already.
 */
export function settledNode(
  node: StoredObject<'nodes'>,
  judgement: Judgement,
  now: string,
  { conditionTaints }: ConditionTaintSettings = { conditionTaints: [] },
): StoredObject<'nodes'> | undefined {
  const labelled = withStableLabels(node) ?? node
  const tainted = withConditionTaints(labelled, now, conditionTaints) ?? labelled
  const damped = withFlappingTaint(tainted, judgement.isFlapping, now) ?? tainted
  const noted = withAbsence(damped, judgement.absence) ?? damped
  const linked = withSuspectedLink(noted, judgement.suspectedLink) ?? noted
  const wanted = noExecuteSettled(linked, judgement, now) ?? linked
  return wanted === node ? undefined : wanted
}

function noExecuteSettled(
  node: StoredObject<'nodes'>,
  { hold, isProven }: Judgement,
  now: string,
): StoredObject<'nodes'> | undefined {
  if (hold !== undefined) return withoutNoExecuteTaints(node)
  const { step } = noExecuteStep(node)
  return step === 'clear' || (step === 'swap' && isProven) ? withNoExecuteTaint(node, now) : undefined
}

function isFlapping(health: NodeHealth, settings: NodeLifecycleSettings, nowMs: number): boolean {
  const steadyMs = steadyAtMs(health, settings)
  return health.flapping.isFlapping && (steadyMs === undefined || nowMs < steadyMs)
}
