/** `bramble-controller notify test`: sends a message to the channels of the configuration. */
import { ConfigurationError, readConfigurationFile } from '../../daemon/process/configuration-file.ts'
import { ControllerConfigurationSchema } from '../configuration/configuration.ts'
import { homeAssistantSettings } from '../integrations/home-assistant/home-assistant-settings.ts'
import { testMessage } from '../integrations/notifications/messages.ts'
import { type Channel, notifySettings } from '../integrations/notifications/notify-settings.ts'
import { sendNotification } from '../integrations/notifications/send-notification.ts'
import { notifyRow } from './command-table.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

/** `argv`: what follows `notify`. The exit code: an error if one channel failed. */
export async function notifyCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(notifyRow, argv, output, ({ values: { config, channel } }) => {
    if (config === undefined) return 'Name the configuration of the controller with --config'
    return async () => testChannels(await channelsIn(config, channel), output)
  })
}

async function channelsIn(path: string, name: string | undefined): Promise<readonly Channel[]> {
  const { notify, homeAssistant } = await readConfigurationFile(path, ControllerConfigurationSchema)
  const problems: string[] = []
  const settings = notifySettings(notify, problems, homeAssistantSettings(homeAssistant, problems)?.broker)
  if (problems.length > 0) throw new ConfigurationError('The configuration is not valid:', problems)
  const channels = (settings?.channels ?? []).filter((channel) => name === undefined || channel.name === name)
  if (channels.length > 0) return channels
  throw new Error(
    name === undefined
      ? `There is no channel in ${path}: add notify.channels`
      : `There is no channel ${name} in ${path}`,
  )
}

async function testChannels(channels: readonly Channel[], { signal, stderr }: CommandOutput): Promise<string> {
  const failed: string[] = []
  let sent = ''
  for (const channel of channels) {
    try {
      await sendNotification(channel, testMessage, signal)
      sent += `${channel.name}: sent\n`
    } catch (error) {
      failed.push(channel.name)
      stderr(`${error instanceof Error ? error.message : String(error)}\n`)
    }
  }
  if (failed.length > 0) throw new Error(`Not sent: ${failed.join(', ')}`)
  return sent
}
