/** A message to a channel of any type. */
import { openHousehold } from '../household/open-household.ts'
import type { Notification } from './messages.ts'
import type { Channel } from './notify-settings.ts'
import { publishMessage } from './publish-message.ts'
import { sendMessage } from './send-message.ts'

/** Rejects with a SendError. */
export function sendNotification(channel: Channel, message: Notification, signal: AbortSignal): Promise<void> {
  return channel.type === 'mqtt'
    ? publishMessage(channel, message, openHousehold, signal)
    : sendMessage(channel, message, signal)
}
