/** Ends the connection of a node at an external MQTT server: the server keeps one for each certificate's name, the last. */
import { topicName } from '../../../api/topics.ts'
import type { Authority } from '../../../certs/authority.ts'
import { issueNode } from '../../../certs/issue.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { withDeadline } from '../../../daemon/deadline.ts'
import { openMqttClient } from './mqtt-client.ts'

export type MqttServerPlace = { readonly host: string; readonly port: number }

const displaceMs = 10_000
const certificateMs = 10 * 60_000

/**
 * Connects as the node, with a certificate of its own, and leaves again. Mosquitto does not look at the certificates of open
 * connections when its revocation lists change. Rejects where the server cannot be reached: it may have the connection still.
 */
export async function displaceConnection(
  nodeName: string,
  { host, port }: MqttServerPlace,
  { authority, clock }: { readonly authority: Authority; readonly clock: Clock },
): Promise<void> {
  const own = issueNode(authority, { nodeName, nowMs: clock.wallMs(), lifeMs: certificateMs })
  const will = { topic: topicName({ kind: 'connection', node: nodeName }), body: '' }
  const settings = { host, port, clientId: nodeName, tls: { ca: authority.trusted, ...own }, will }
  const opened = withDeadline(displaceMs, undefined, (signal) =>
    openMqttClient(settings, () => undefined, clock, signal),
  )
  await (await opened).close()
}
