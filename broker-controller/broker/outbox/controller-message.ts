/** The `controller` message: every node reads it. It is retained, so a node that connects later receives it too. */
import type { ControllerMessage } from '../../../api/topics.ts'
import { rfc3339 } from '../../../daemon/clock.ts'

export type ControllerFacts = {
  /** New at each start of the controller. */
  readonly epoch: string
  readonly storeID?: string | undefined
  /** Identifies the authorities that are trusted now. */
  readonly trust?: string | undefined
  /** How long the node lifecycle controller waits for a silent node. */
  readonly nodeMonitorGraceMs?: number | undefined
  /** The longest lease that it grants a node. */
  readonly nodeLeaseLimitMs?: number | undefined
  /** Are leases on `shortLeaseTopic` accepted? */
  readonly shortLeases: boolean
  /** Addresses of all controllers, those of this one first; undefined: it is the only one. */
  readonly servers?: Pick<ControllerMessage, 'apiServers' | 'mqttServers'> | undefined
  /** Are the messages of the fleet's network published? */
  readonly network?: boolean | undefined
}

/** Its time lets nodes check their clocks. */
export function controllerMessage(
  state: ControllerMessage['state'],
  { epoch, storeID, trust, nodeMonitorGraceMs, nodeLeaseLimitMs, shortLeases, servers, network }: ControllerFacts,
  nowMs: number,
): ControllerMessage {
  return {
    state,
    epoch,
    time: rfc3339(nowMs),
    ...(storeID !== undefined && { store: storeID }),
    ...(trust !== undefined && { trust }),
    ...(nodeMonitorGraceMs !== undefined && { nodeMonitorGraceSeconds: nodeMonitorGraceMs / 1000 }),
    ...(nodeLeaseLimitMs !== undefined && { nodeLeaseLimitSeconds: nodeLeaseLimitMs / 1000 }),
    ...(shortLeases && { shortLeases }),
    ...servers,
    ...(network && { network, policies: true }),
    contents: true,
    ...(storeID !== undefined && { volumes: true }),
  }
}
