/** Answers the challenges of other nodes: this machine has the address, and the key of its node. */
import type { Clock } from '../../../daemon/clock.ts'
import { sourceLimit } from '../names/source-limit.ts'
import type { Prover } from './node-proof.ts'
import { readChallenge, writeProof } from './probe-message.ts'

export type ChallengeNeeds = {
  readonly prover: Prover
  /** The machine has this address now. */
  readonly isOwn: (address: string) => Promise<boolean>
  readonly clock: Clock
}

/** A node asks once, and again a second later. A flood with the forged sources of nodes costs 250 signatures a second, and delays proofs. */
const ofSource = { perSecond: 2, atOnce: 8 }
const ofAll = { perSecond: 250, atOnce: 500 }
/**
 * Shared by all sources that are not the address of a node: a node with several addresses on a link may send from
 * another one.
 */
const ofStrangers = { perSecond: 5, atOnce: 20 }

/**
 * `isNode`: the source is the address of a node. Resolves with the proof; undefined: none is sent. The answer is not longer than the challenge, so that a forged source gains nothing.
 * Rejects if the credentials are invalid.
 */
export type ChallengeAnswerer = (message: Buffer, source: string, isNode: boolean) => Promise<Buffer | undefined>

export function challengeAnswerer({ prover, isOwn, clock }: ChallengeNeeds): ChallengeAnswerer {
  const [sources, strangers, all] = [
    sourceLimit(clock, ofSource),
    sourceLimit(clock, ofStrangers),
    sourceLimit(clock, ofAll),
  ]
  return async (message, source, isNode) => {
    const challenge = readChallenge(message)
    const isWithin = isNode ? sources.take(source) : strangers.take('')
    if (challenge === undefined || !isWithin || !all.take('')) return undefined
    // A machine in between cannot pass a challenge for its own address on to the node that had it.
    return (await isOwn(challenge.address)) ? writeProof(prover.prove(challenge)) : undefined
  }
}
