/** What a rollout of a release is to do, of the releases that are served. */
import type { FleetRelease } from './rollout-facts.ts'
import type { RolloutWish } from './rollout-object.ts'
import { type RolloutRules, usualRules } from './rollout-rules.ts'

/** A release that the controller serves, of an agent or of a controller. */
export type OfferedRelease = FleetRelease & { readonly program: string }

/**
 * Throws if the controller does not serve the version. Where its own release of this version is kept, that comes first, unless
 * `isForAgents`.
 */
export function wishFor(
  version: string,
  served: readonly OfferedRelease[],
  rules: RolloutRules,
  isForAgents = false,
): RolloutWish {
  const releases = ofAgents(served)
  const target = releases.find((one) => one.version === version)
  if (target === undefined)
    throw new Error(`Release ${version} is not served here: add it with bramble-controller updates add FOLDER`)
  const isFirst = served.some((one) => one.program === 'bramble-controller' && one.version === version)
  return {
    target,
    releases: releases.filter(({ sequence }) => sequence <= target.sequence),
    rules,
    ...(isFirst && !isForAgents && { controller: { version } }),
  }
}

/** A rollout of the newest release of the agent, as `updates start VERSION` without options. Undefined: none is served. */
export function newestWish(served: readonly OfferedRelease[]): RolloutWish | undefined {
  const [first, ...others] = ofAgents(served)
  if (first === undefined) return undefined
  const newest = others.reduce((best, one) => (one.sequence > best.sequence ? one : best), first)
  return wishFor(newest.version, served, usualRules)
}

function ofAgents(served: readonly OfferedRelease[]): readonly FleetRelease[] {
  return served.flatMap(({ program, version, sequence, digest, floor }) =>
    program === 'bramble-agent' ? [{ version, sequence, digest, floor }] : [],
  )
}
