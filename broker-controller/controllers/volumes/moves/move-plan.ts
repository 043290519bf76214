/**
 * What the move of a volume to another pool needs next. Its state is an annotation of the volume, so that a controller that ends at any point
 * goes on, or rolls back. Until the volume is rewritten the copy at the source is the data; from then on it is the one at the target. Pure.
 */

import type { CopyResult } from '../../../../api/storage/volume-messages.ts'
import type { VolumeMove } from '../../../../api/storage/volume-move.ts'

/**
 * `copy`: while its pods run. `hold`: they stop, and none starts. `delta`: what has changed since. `place`: the volume is rewritten, and the copy gets
 * its folder. `clean`: the old copy goes to the trash. `rollback`: what is left at the target is removed, and pods start at the source again.
 * `round`: of copies: the first one has 1, and each that follows is one more.
 */
export type MoveState = Pick<VolumeMove, 'id' | 'phase' | 'round'>
export type MovePhase = MoveState['phase']

/** What the node with the data reports of this move; undefined: nothing since the controller started. */
export type SourceReport = {
  readonly id: string
  /** It starts no pod with the volume, and none has it. Kept on its disk. */
  readonly isFenced: boolean
  /** The last round that it has sent whole since it is fenced. */
  readonly sent?: CopyResult
  /** Pods may have the volume again. */
  readonly isReleased: boolean
  /** The old copy is in the trash. */
  readonly isDiscarded: boolean
}

export type TargetReport = {
  readonly id: string
  /** The last round that is on its disk. */
  readonly received?: CopyResult
  /** The copy is the folder of the volume. */
  readonly isPlaced: boolean
  /** Nothing of the move is left there. */
  readonly isRemoved: boolean
  /** Why it cannot receive, such as the space that is missing. */
  readonly refusal?: string
}

export type MoveFacts = {
  readonly move: MoveState
  /** A person has ended it, or the claim or the volume is being deleted. */
  readonly isCancelled: boolean
  readonly source: SourceReport | undefined
  readonly target: TargetReport | undefined
}

export type MoveStep =
  | { readonly step: 'wait' }
  /** Written over the version that was decided on. `rollback` has a reason. */
  | {
      readonly step: 'enter'
      readonly phase: Exclude<MovePhase, 'copy' | 'place'>
      readonly round: number
      readonly why?: string
    }
  /** One write: path, pool, affinity, and the phase `place`. */
  | { readonly step: 'rewrite' }
  /** The annotation is removed. */
  | { readonly step: 'end'; readonly isMoved: boolean }

const wait: MoveStep = { step: 'wait' }
/** The first copy, and those after the pods have stopped. */
const mostRounds = 4

export function planMove({ move, isCancelled, source, target }: MoveFacts): MoveStep {
  const { phase, round } = move
  const [from, to] = [ofThis(source, move), ofThis(target, move)]
  // From the rewrite on the new copy is the data: only forwards. The old one stays until the new one has its place.
  if (phase === 'place') return to?.isPlaced ? { step: 'enter', phase: 'clean', round } : wait
  if (phase === 'clean') return from?.isDiscarded ? { step: 'end', isMoved: true } : wait
  if (phase === 'rollback') return to?.isRemoved && from?.isReleased ? { step: 'end', isMoved: false } : wait
  if (isCancelled) return rollback(round, 'it was cancelled')
  if (to?.refusal !== undefined) return rollback(round, to.refusal)
  return planCopy({ phase, round }, from, to)
}

/** Until the rewrite. */
function planCopy(
  { phase, round }: { readonly phase: 'copy' | 'hold' | 'delta'; readonly round: number },
  from: SourceReport | undefined,
  to: TargetReport | undefined,
): MoveStep {
  switch (phase) {
    case 'copy':
      return to?.received?.round === round ? { step: 'enter', phase: 'hold', round } : wait
    case 'hold':
      return from?.isFenced ? { step: 'enter', phase: 'delta', round: round + 1 } : wait
    case 'delta': {
      // A source that was reinstalled has lost its fence: a pod may have written since.
      if (from?.isFenced === false) return again('hold', round, round)
      const [sent, received] = [from?.sent, to?.received]
      if (sent?.round !== round || received?.round !== round) return wait
      return isSame(sent, received) ? { step: 'rewrite' } : again('delta', round, round + 1)
    }
  }
}

function again(phase: 'hold' | 'delta', round: number, nextRound: number): MoveStep {
  if (round >= mostRounds) return rollback(round, 'the copy differs from the data')
  return { step: 'enter', phase, round: nextRound }
}

function rollback(round: number, why: string): MoveStep {
  return { step: 'enter', phase: 'rollback', round, why }
}

function ofThis<R extends { readonly id: string }>(report: R | undefined, { id }: MoveState): R | undefined {
  return report?.id === id ? report : undefined
}

function isSame(one: CopyResult, other: CopyResult): boolean {
  return one.files === other.files && one.bytes === other.bytes && one.digest === other.digest
}
