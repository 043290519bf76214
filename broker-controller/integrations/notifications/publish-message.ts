/** MQTT to a channel: a connection for each message, since there is at most one a minute. */
import { randomUUID } from 'node:crypto'
import { unlessAborted } from '../../../daemon/aborted.ts'
import { withDeadline } from '../../../daemon/deadline.ts'
import { SecretFileError } from '../../../daemon/process/secret-file.ts'
import type { openHousehold } from '../household/open-household.ts'
import type { Notification } from './messages.ts'
import type { MqttChannel } from './notify-settings.ts'
import { SendError } from './send-message.ts'

const deadlineMs = 20_000

/** Never retained: a problem that is over must not meet a client that subscribes later. Rejects with a SendError. */
export async function publishMessage(
  { name, broker, topic, qos }: MqttChannel,
  { status, title, text, count }: Notification,
  open: typeof openHousehold,
  signal: AbortSignal,
): Promise<void> {
  const body = JSON.stringify({ status, title, message: text, count })
  const publish = async (own: AbortSignal) => {
    const link = await open({ broker, clientId: `bramble-notify-${randomUUID().slice(0, 8)}` }, own)
    try {
      await unlessAborted(link.publish(topic, body, { qos, retain: false }), own)
      own.throwIfAborted()
    } finally {
      await link.close()
    }
  }
  try {
    await withDeadline(deadlineMs, signal, publish, `${broker.host}:${broker.port} does not answer`)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown error'
    throw new SendError(`Cannot notify ${name}: ${why}`, error instanceof SecretFileError && error.isFinal)
  }
}
