/** What joining needs, and where it leads. */
import type { TokenParts } from '../../api/node/bootstrap-token.ts'
import type { HardwareIdentity } from '../../api/node/hardware-identity.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { NetworkObstacle } from '../network/gate/network-obstacle.ts'
import type { FleetRanges } from '../network/peers/home-networks.ts'

export type JoinRequest = {
  /** `https://host:6443` */
  readonly url: URL
  readonly token: TokenParts
  /** `sha256:…` */
  readonly caHash: string
  readonly nodeName: string
  readonly dataDir: string
}

export type JoinNeeds = {
  readonly hardware: HardwareIdentity
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Progress and warnings, a line each, for the person who waits. */
  readonly print: (line: string) => void
  /** Gets the text about the request that waits for an operator, and what to do about it. Default: `print`. */
  readonly waits?: (text: string) => void
  /** Why this machine cannot take part in a network with these ranges. */
  readonly obstacleTo: (ranges: FleetRanges) => Promise<NetworkObstacle | undefined>
  /** Gets problems of this machine for the fleet that do not prevent joining. Default: `print`. */
  readonly warns?: (text: string) => void
  /** How long to wait for the approval. */
  readonly approvalMs?: number
}
