/** Which files of the data directory are put back when a version on trial is taken back. */

/**
 * What an agent reads at its start and changes while it runs. Not the data of pods, nor what a later version reads as an earlier one
 * wrote it and only ever grows: `last-known-time`, `boot-seconds`, the private key of the tunnel.
 */
export const agentStateNames: readonly string[] = [
  'identity.json',
  'identity.json.copy',
  'desired.json',
  'desired.json.contents',
  'desired.json.copy',
  'desired.json.copy.contents',
  'network',
  'ipv6-forwarding.json',
]
